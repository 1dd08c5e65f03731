/** The status document as text for people. Pure. */
import { isWorthTelling, remarksOf } from './status-remarks.ts';
import type { ExplanationDocument } from '../status/explain.ts';
import {
  changedSentence,
  expansionSentence,
  healthSentence,
  healthText,
  quarantineSentence,
  questionSentence,
  reasonSentence,
} from '../status/sentence.ts';
import type { DriverStatus, PodStatus, PodVolumeStatus, StatusDocument } from '../status/status-document.ts';
import { fullName } from '../status/subject.ts';
import type { ExpansionState, VolumeState, VolumeStatus } from '../status/volume-status.ts';
import { spanText } from '../../mount/text/duration.ts';
import { sizeText } from '../../mount/text/size-text.ts';
import {
  type Cell,
  type Colour,
  type Column,
  type Look,
  paint,
  renderTable,
  type Row,
  wrap,
} from '../../mount/text/table.ts';

export interface StatusTextOptions {
  readonly look: Look;
  /** Adds rungs, access, mode, size, uid and path; lines may then be longer than the terminal. */
  readonly wide: boolean;
}

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
    placesTable(status, options),
    driversTable(status.drivers, options.look),
    remarksOf(status, options.look),
  ];
  return `${blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

export function explanationText(explanation: ExplanationDocument, look: Look): string {
  const { obstacles, conditions } = explanation;
  const bullet = look.unicode ? '•' : '-';
  const paragraph = (text: string, colour: Colour): readonly string[] => {
    const lines =
      look.widthMax === undefined ? [text] : wrap(text, Math.max(20, look.widthMax - SENTENCE_INDENT));
    return lines.map((line, index) => `  ${index === 0 ? bullet : ' '} ${paint(line, colour, look)}`);
  };
  const summary =
    look.widthMax === undefined ? [explanation.summary] : wrap(explanation.summary, look.widthMax);
  return [
    ...summary.map((line) =>
      paint(line, obstacles.length + conditions.length === 0 ? 'green' : 'bold', look),
    ),
    ...obstacles.flatMap(({ sentence }) => paragraph(sentence, 'plain')),
    ...conditions.flatMap(({ sentence }) => paragraph(sentence, 'yellow')),
    ...explanation.notes.flatMap((note) => paragraph(note, 'dim')),
    '',
  ].join('\n');
}

function headOf({ agent, summary }: StatusDocument, look: Look): readonly string[] {
  const dot = look.unicode ? ' · ' : ', ';
  const troubled = summary.blocked + summary.waiting + summary.quarantined + summary.unhealthy;
  const allWell = summary.podsReady === summary.podsWanted && troubled === 0;
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
  for (const one of ['quarantined', 'unhealthy'] as const) {
    if (summary[one] > 0) counts.push(`${summary[one]} ${paint(one, 'red', look)}`);
  }
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
  ...['ATTACHED', 'STAGED', 'PUBLISHED', 'ACCESS', 'MODE', 'SIZE', 'UID', 'PATH'].map((title) => ({ title })),
];

function placesTable(
  { pods, volumes }: StatusDocument,
  { look, wide }: StatusTextOptions,
): readonly string[] {
  if (pods.length === 0) return [nobodysVolumes(volumes.length)];
  const byId = new Map(volumes.map((volume) => [volume.id, volume]));
  const rows: Row[] = pods.flatMap((pod) => rowsOf(pod, byId, look, wide));
  return renderTable(wide ? WIDE_COLUMNS : COLUMNS, rows, wide ? { ...look, widthMax: undefined } : look);
}

/** Without pods there is no row for the volumes that are still to be taken down. */
function nobodysVolumes(count: number): string {
  if (count === 0) return 'No pods and no volumes.';
  const left =
    count === 1 ? '1 volume of pods that have gone is' : `${count} volumes of pods that have gone are`;
  return `No pods; ${left} not down yet.`;
}

function rowsOf(
  pod: PodStatus,
  volumes: ReadonlyMap<string, VolumeStatus>,
  look: Look,
  wide: boolean,
): readonly Row[] {
  const name = fullName(pod);
  if (pod.volumes.length === 0) return [[{ text: name }, { text: 'none', colour: 'dim' }]];
  return pod.volumes.flatMap((place, index): Row[] => {
    const volume = place.id === null ? undefined : volumes.get(place.id);
    const head: Cell = { text: index === 0 ? name : '' };
    const cells = [head, ...cellsOf(place, volume, look), ...(wide ? wideCellsOf(pod, place, volume) : [])];
    return [cells, ...linesBelow(place, volume, look)];
  });
}

function cellsOf(
  place: PodVolumeStatus,
  volume: VolumeStatus | undefined,
  { unicode }: Look,
): readonly Cell[] {
  const { colour, mark, plainMark } = STATES[place.state];
  const words: string[] = [place.state];
  if (volume !== undefined && volume.quarantine !== null) words.push('quarantined');
  if (isUnhealthy(volume)) words.push('unhealthy');
  return [
    { text: place.name },
    { text: kindOf(place), colour: 'dim' },
    {
      text: `${unicode ? mark : plainMark} ${words.join(', ')}`,
      colour: words.length > 1 ? 'red' : colour,
    },
  ];
}

function wideCellsOf(
  pod: PodStatus,
  { rungs, readOnly, path, image }: PodVolumeStatus,
  volume: VolumeStatus | undefined,
): readonly Cell[] {
  const texts = [rungs.attached, rungs.staged, rungs.published].map((one) =>
    one === 'not-needed' ? '-' : one,
  );
  const mode = volume?.mode ?? '-';
  const where = path ?? (image === null ? '-' : `image ${image}`);
  return [...texts, readOnly ? 'ro' : 'rw', mode, sizeOf(volume), pod.uid, where].map((text) => ({ text }));
}

/** What it has, and what it is to have where that is another size. */
function sizeOf(volume: VolumeStatus | undefined): string {
  const { current = null, wanted = null } = volume?.size ?? {};
  if (current === null) return wanted === null ? '-' : sizeText(wanted);
  const grows = wanted !== null && !AS_LARGE_AS_IT_IS.has(volume?.expansion.state);
  return `${sizeText(current)}${grows ? ` of ${sizeText(wanted)}` : ''}`;
}

function isUnhealthy(volume: VolumeStatus | undefined): boolean {
  return (volume?.health ?? []).length > 0;
}

/** Quarantine and health always, the obstacle when worth telling, an expansion when something is in its way. */
function linesBelow(place: PodVolumeStatus, volume: VolumeStatus | undefined, look: Look): readonly Row[] {
  const { reason, driver, state } = place;
  const lines: Row[] = [];
  const quarantine = volume === undefined ? undefined : quarantineSentence(volume);
  if (quarantine !== undefined) lines.push(lineBelow(quarantine, 'red', look));
  if (reason !== null && reason.kind !== 'quarantined' && isWorthTelling(reason))
    lines.push(lineBelow(reasonSentence(reason, driver), STATES[state].colour, look));
  for (const one of volume?.health ?? []) lines.push(lineBelow(healthSentence(one, driver), 'red', look));
  const question = volume === undefined ? undefined : questionSentence(volume);
  const isOwed = (volume?.question?.unansweredSince ?? null) !== null;
  if (question !== undefined && isOwed) lines.push(lineBelow(question, 'yellow', look));
  const expansion = volume === undefined ? undefined : expansionSentence(volume);
  const goesOn = GROWS_BY_ITSELF.has(volume?.expansion.state) && volume?.expansion.message === null;
  if (expansion !== undefined && !goesOn) lines.push(lineBelow(expansion, 'yellow', look));
  const changed = volume === undefined ? undefined : changedSentence(volume);
  if (changed !== undefined) lines.push(lineBelow(changed, 'yellow', look));
  return lines;
}

const AS_LARGE_AS_IT_IS: ReadonlySet<ExpansionState | undefined> = new Set(['none', 'claim-larger']);
const GROWS_BY_ITSELF: ReadonlySet<ExpansionState | undefined> = new Set(['pending', 'in-progress']);

function kindOf({ driver, plugin }: PodVolumeStatus): string {
  return driver ?? plugin?.replace('kubernetes.io/', '') ?? '-';
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
    const words = (driver.health ?? []).map((one) => `the storage behind it is, it says, ${healthText(one)}`);
    if (driver.reason !== null) words.push(driver.reason);
    return [cells, ...words.map((text) => lineBelow(text, 'red', look))];
  });
  return renderTable(columns, rows, look);
}
