/** What the containers of a pod are given, as a table. Pure. */
import { printable } from '../../mount/text/printable.ts';
import { type Look, renderTable, type Row } from '../../mount/text/table.ts';
import type { ContainerMount, MountsDocument, PlaceInContainer } from '../mounts/mounts-document.ts';

const PATH_BYTES_MAX = 4_096;
const PATH_CHARACTERS_MIN = 20;

const COLUMNS = [
  { title: 'CONTAINER' },
  { title: 'VOLUME' },
  { title: 'IN THE CONTAINER', charactersMin: PATH_CHARACTERS_MIN },
  { title: 'ACCESS' },
  { title: 'ON THE HOST', charactersMin: PATH_CHARACTERS_MIN },
];

/** A row for each place; below one that is not ready, why. */
export function mountsText({ containers }: MountsDocument, look: Look): string {
  const rows = containers.flatMap(({ name, mounts, devices }) => [
    ...mounts.flatMap((mount) => rowsOf(name, mount, accessOf(mount), look)),
    ...devices.flatMap((device) => rowsOf(name, device, `${device.readOnly ? 'ro' : 'rw'} device`, look)),
  ]);
  if (rows.length === 0) return 'The containers of this pod are given no volumes.\n';
  return `${renderTable(COLUMNS, rows, look).join('\n')}\n`;
}

function rowsOf(
  container: string,
  place: PlaceInContainer,
  access: string,
  { unicode }: Look,
): readonly Row[] {
  const { volume, containerPath, hostPath, sentence } = place;
  const cells = [container, volume, shown(containerPath), access].map((text) => ({ text }));
  if (hostPath !== null) return [[...cells, { text: shown(hostPath) }]];
  const row: Row = [...cells, { text: unicode ? '—' : '-' }];
  const below = { text: printable(sentence ?? '', PATH_BYTES_MAX), colour: 'yellow' } as const;
  return [row, { below, indent: 2 }];
}

function accessOf({ readOnly, recursiveReadOnly, propagation }: ContainerMount): string {
  const access = readOnly ? READ_ONLY[recursiveReadOnly] : 'rw';
  return propagation === 'None' ? access : `${access} ${propagation}`;
}

const READ_ONLY = { no: 'ro', 'if-possible': 'ro, below if possible', required: 'ro, below too' } as const;

function shown(path: string): string {
  return printable(path, PATH_BYTES_MAX);
}
