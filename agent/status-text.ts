/** The status document as text for people. Pure. */
import { spanText } from './duration.ts';
import { type ExplanationDocument, sentenceOf } from './explain.ts';
import type {
  DriverStatus,
  PodStatus,
  PodVolumeStatus,
  StatusDocument,
  VolumeState,
} from './status-document.ts';
import {
  type Cell,
  type Colour,
  type Column,
  type Look,
  paint,
  renderTable,
  type Row,
  wrap,
} from './table.ts';

export interface StatusTextOptions {
  readonly look: Look;
  /** Adds rungs, access, uid and path; lines may then be longer than the terminal. */
  readonly wide: boolean;
}

/** An operation that has just begun needs no sentence of its own. */
const RUNNING_WORTH_TELLING_MS = 5_000;
const SENTENCE_INDENT = 4;

const STATES = {
  mounted: { colour: 'green', mark: '●', plainMark: '+' },
  mounting: { colour: 'cyan', mark: '◐', plainMark: '~' },
  waiting: { colour: 'yellow', mark: '◌', plainMark: '?' },
  blocked: { colour: 'red', mark: '✗', plainMark: '!' },
  unmounting: { colour: 'cyan', mark: '◑', plainMark: '~' },
  kept: { colour: 'dim', mark: '◍', plainMark: '=' },
} as const satisfies Record<VolumeState, { colour: Colour; mark: string; plainMark: string }>;

/** Ends with a line end. */
export function statusText(status: StatusDocument, options: StatusTextOptions): string {
  const blocks = [
    headOf(status, options.look),
    placesTable(status.pods, options),
    driversTable(status.drivers, options.look),
    remarksOf(status, options.look),
  ];
  return `${blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

export function explanationText(explanation: ExplanationDocument, look: Look): string {
  const bullet = look.unicode ? '•' : '-';
  const paragraph = (text: string, colour: Colour): readonly string[] => {
    const lines =
      look.widthMax === undefined ? [text] : wrap(text, Math.max(20, look.widthMax - SENTENCE_INDENT));
    return lines.map((line, index) => `  ${index === 0 ? bullet : ' '} ${paint(line, colour, look)}`);
  };
  const summary =
    look.widthMax === undefined ? [explanation.summary] : wrap(explanation.summary, look.widthMax);
  return [
    ...summary.map((line) => paint(line, explanation.obstacles.length === 0 ? 'green' : 'bold', look)),
    ...explanation.obstacles.flatMap(({ sentence }) => paragraph(sentence, 'plain')),
    ...explanation.notes.flatMap((note) => paragraph(note, 'dim')),
    '',
  ].join('\n');
}

function headOf({ agent, summary }: StatusDocument, look: Look): readonly string[] {
  const dot = look.unicode ? ' · ' : ', ';
  const allWell = summary.podsReady === summary.podsWanted && summary.blocked + summary.waiting === 0;
  const state = STATES[allWell ? 'mounted' : summary.blocked > 0 ? 'blocked' : 'waiting'];
  const mark = paint(look.unicode ? state.mark : state.plainMark, state.colour, look);
  const ready = `${summary.podsReady} of ${summary.podsWanted} pods ready`;
  const first = [
    paint(agent.node, 'bold', look),
    ready,
    `up ${spanText(agent.uptimeMs)}`,
    `mooring ${agent.version}`,
  ];
  const counts = (Object.keys(STATES) as VolumeState[])
    .filter((one) => summary[one] > 0)
    .map((one) => {
      return `${summary[one]} ${paint(one, STATES[one].colour, look)}`;
    });
  const running = summary.operationsRunning + summary.operationsQueued;
  if (running > 0) counts.push(`${running} ${running === 1 ? 'operation' : 'operations'} under way`);
  const lines = [`${mark} ${first.join(dot)}`];
  if (counts.length > 0) lines.push(`  ${counts.join(dot)}`);
  return lines;
}

const COLUMNS: readonly Column[] = [
  { title: 'POD', charactersMin: 12 },
  { title: 'VOLUME', charactersMin: 10 },
  { title: 'DRIVER', charactersMin: 10 },
  { title: 'STATE' },
];
const WIDE_COLUMNS: readonly Column[] = [
  ...COLUMNS,
  ...['ATTACHED', 'STAGED', 'PUBLISHED', 'ACCESS', 'UID', 'PATH'].map((title) => ({ title })),
];

function placesTable(pods: readonly PodStatus[], { look, wide }: StatusTextOptions): readonly string[] {
  if (pods.length === 0) return ['No pods and no volumes.'];
  const rows: Row[] = pods.flatMap((pod) => rowsOf(pod, look, wide));
  return renderTable(wide ? WIDE_COLUMNS : COLUMNS, rows, wide ? { ...look, widthMax: undefined } : look);
}

function rowsOf(pod: PodStatus, look: Look, wide: boolean): readonly Row[] {
  const name = `${pod.namespace}/${pod.name}`;
  if (pod.volumes.length === 0) return [[{ text: name }, { text: 'none', colour: 'dim' }]];
  return pod.volumes.flatMap((volume, index): Row[] => {
    const head: Cell = { text: index === 0 ? name : '' };
    const cells = [head, ...cellsOf(volume, look), ...(wide ? wideCellsOf(pod, volume) : [])];
    return tellsMore(volume) ? [cells, sentenceBelow(volume, look)] : [cells];
  });
}

function cellsOf(volume: PodVolumeStatus, { unicode }: Look): readonly Cell[] {
  const { colour, mark, plainMark } = STATES[volume.state];
  return [
    { text: volume.name },
    { text: kindOf(volume), colour: 'dim' },
    { text: `${unicode ? mark : plainMark} ${volume.state}`, colour },
  ];
}

function wideCellsOf(pod: PodStatus, { rungs, readOnly, path }: PodVolumeStatus): readonly Cell[] {
  const texts = [rungs.attached, rungs.staged, rungs.published].map((one) =>
    one === 'not-needed' ? '-' : one,
  );
  return [...texts, readOnly ? 'ro' : 'rw', pod.uid, path ?? '-'].map((text) => ({ text }));
}

function kindOf({ driver, plugin }: PodVolumeStatus): string {
  return driver ?? plugin?.replace('kubernetes.io/', '') ?? '-';
}

function tellsMore({ reason }: PodVolumeStatus): boolean {
  return reason !== null && (reason.kind !== 'running' || (reason.forMs ?? 0) >= RUNNING_WORTH_TELLING_MS);
}

function sentenceBelow({ reason, driver, state }: PodVolumeStatus, look: Look): Row {
  return lineBelow(reason === null ? '' : sentenceOf(reason, driver), STATES[state].colour, look);
}

function lineBelow(text: string, colour: Colour, { unicode }: Look): Row {
  return { below: { text: `${unicode ? '└' : '\\_'} ${text}`, colour }, indent: SENTENCE_INDENT };
}

function driversTable(drivers: readonly DriverStatus[], look: Look): readonly string[] {
  if (drivers.length === 0) return [];
  const columns: readonly Column[] = [
    { title: 'DRIVER', charactersMin: 12 },
    { title: 'VERSION', charactersMin: 7 },
    { title: 'VOLUMES', align: 'right' },
    { title: 'STATE' },
  ];
  const rows: Row[] = drivers.flatMap((driver): Row[] => {
    const limit = driver.volumesMax === null ? '' : ` of ${driver.volumesMax}`;
    const fine = driver.state === 'registered';
    const state = STATES[fine ? 'mounted' : 'blocked'];
    const cells: Row = [
      { text: driver.name ?? driver.socket },
      { text: driver.version ?? '-', colour: 'dim' },
      { text: fine ? `${driver.volumes}${limit}` : '-' },
      { text: `${look.unicode ? state.mark : state.plainMark} ${driver.state}`, colour: state.colour },
    ];
    if (driver.reason === null) return [cells];
    return [cells, lineBelow(driver.reason, 'red', look)];
  });
  return renderTable(columns, rows, look);
}

/** What is wrong beside the volumes: each in a line of its own. */
function remarksOf(status: StatusDocument, look: Look): readonly string[] {
  const { agent, sources, unreadableRecords, summary } = status;
  const remarks: { readonly text: string; readonly colour: Colour }[] = [];
  if (!agent.complete) {
    const text = 'Not everything that is wanted has been read yet; nothing is taken down before.';
    remarks.push({ text, colour: 'yellow' });
  }
  for (const { subject, origin, field, message } of sources.rejected) {
    const what = subject === null ? origin : `${subject} in ${origin}`;
    remarks.push({
      text: `Rejected: ${what}: ${field === null ? '' : `${field}: `}${message}`,
      colour: 'red',
    });
  }
  for (const origin of sources.unknown) {
    remarks.push({ text: `Cannot be read now, what came from it is kept: ${origin}`, colour: 'yellow' });
  }
  for (const { file, message } of unreadableRecords) {
    remarks.push({ text: `Record cannot be read back: ${file}: ${message}`, colour: 'red' });
  }
  if (summary.abandonedCalls > 0) {
    const calls = summary.abandonedCalls === 1 ? 'call that does' : 'calls that do';
    remarks.push({ text: `${summary.abandonedCalls} ${calls} not end and cannot be killed.`, colour: 'red' });
  }
  return remarks.flatMap(({ text, colour }) => {
    const lines = look.widthMax === undefined ? [text] : wrap(text, look.widthMax);
    return lines.map((line, index) => `${index === 0 ? '' : '  '}${paint(line, colour, look)}`);
  });
}
