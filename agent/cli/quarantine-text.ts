/** Quarantine for people. Pure. */
import type { QuarantineDocument, QuarantinedVolume } from '../status/quarantine-document.ts';
import { type Column, type Look, paint, renderTable, type Row, wrap } from '../../mount/text/table.ts';

const COLUMNS: readonly Column[] = [
  { title: 'VOLUME', charactersMin: 12 },
  { title: 'DRIVER', charactersMin: 10 },
  { title: 'REASON' },
  { title: 'SINCE' },
  { title: 'CLEAN' },
];
const INDENT = 4;

/** Ends with a line end. */
export function quarantineText({ volumes }: QuarantineDocument, look: Look): string {
  if (volumes.length === 0) return 'No volume is in quarantine.\n';
  return `${renderTable(
    COLUMNS,
    volumes.flatMap((volume) => rowsOf(volume, look)),
    look,
  ).join('\n')}\n`;
}

function rowsOf(volume: QuarantinedVolume, { unicode }: Look): readonly Row[] {
  const { name, driver, reason, since, verified, sentence, obstacles } = volume;
  const lines = [sentence, ...obstacles.map((one) => one.sentence)];
  return [
    [
      { text: name },
      { text: driver ?? '-', colour: 'dim' },
      { text: reason },
      { text: since ?? '-' },
      { text: verified ? 'yes' : 'no', colour: verified ? 'green' : 'red' },
    ],
    ...lines.map((text) => ({ below: { text: `${unicode ? '└' : '\\_'} ${text}` }, indent: INDENT })),
  ];
}

/** A paragraph, wrapped to the terminal where there is one. */
export function paragraph(text: string, look: Look, emphasis = false): string {
  const lines = look.widthMax === undefined ? [text] : wrap(text, look.widthMax);
  return lines.map((line) => `${paint(line, emphasis ? 'bold' : 'plain', look)}\n`).join('');
}
