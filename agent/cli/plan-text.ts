/** A plan for people. Pure. */
import { type Cell, type Column, type Look, renderTable, type Row } from '../../mount/text/table.ts';
import type { PlanDocument, PlannedPlace, PlannedVolume, PlanReason } from '../plan/plan-document.ts';
import type { PlannedAction } from '../plan/planned-action.ts';
import { problemText } from '../../mount/text/problem-text.ts';
import { paragraph } from './quarantine-text.ts';

const COLUMNS: readonly Column[] = [
  { title: 'POD', charactersMin: 12 },
  { title: 'VOLUME', charactersMin: 12 },
  { title: 'DRIVER', charactersMin: 10 },
  { title: 'WOULD' },
];
const INDENT = 4;
const WORDS: Readonly<Record<PlannedAction, Cell>> = {
  keep: { text: 'keep', colour: 'green' },
  repeat: { text: 'take over', colour: 'green' },
  mount: { text: 'mount', colour: 'cyan' },
  wait: { text: 'wait', colour: 'yellow' },
  'leave-alone': { text: 'leave alone', colour: 'yellow' },
  'take-down': { text: 'take down', colour: 'red' },
};

/** Ends with a line end. */
export function planText(plan: PlanDocument, look: Look): string {
  const rows = plan.volumes.flatMap((volume) => rowsOf(volume, look));
  const unresolved = plan.unresolved.flatMap(({ pod, name, reason }) => [
    [{ text: podText(pod) }, { text: name }, { text: '-' }, WORDS.wait],
    ...below(reason, look),
  ]);
  const all: readonly Row[] = [...rows, ...unresolved];
  const table = all.length === 0 ? '' : `${renderTable(COLUMNS, all, look).join('\n')}\n\n`;
  return (
    table +
    summary(plan)
      .map((line) => paragraph(line, look))
      .join('')
  );
}

function rowsOf(volume: PlannedVolume, look: Look): readonly Row[] {
  const driver: Cell = { text: volume.driver ?? volume.kind, colour: 'dim' };
  const places = volume.places.flatMap((place): Row[] => [
    [{ text: podText(place.pod) }, { text: place.name }, driver, WORDS[place.action]],
    ...below(place.reason, look),
  ]);
  const unexplained =
    volume.unexplained === null ? null : { code: 'not-attached', message: volume.unexplained, blocker: null };
  const stage = ownStageOf(volume).flatMap((action): Row[] => [
    [{ text: '(staged)', colour: 'dim' }, { text: volume.id }, driver, WORDS[action]],
    ...below(volume.reason, look),
  ]);
  return [...places, ...stage, ...below(unexplained, look)];
}

/** What becomes of its stage is news where no place tells it. */
function ownStageOf({ stage, places }: PlannedVolume): readonly PlannedAction[] {
  return stage === null || places.some(({ action }) => action === stage) ? [] : [stage];
}

function below(reason: PlanReason | null, { unicode }: Look): readonly Row[] {
  if (reason === null) return [];
  const code = reason.code === null ? '' : `${reason.code}: `;
  return [{ below: { text: `${unicode ? '└' : '\\_'} ${code}${reason.message}` }, indent: INDENT }];
}

/** A pod that nothing but the disk tells of has no name. */
function podText({ namespace, name, uid }: PlannedPlace['pod']): string {
  return name === '' ? uid : `${namespace}/${name}`;
}

function summary({
  volumes,
  unresolved,
  disturbed,
  whole,
  refusal,
  sources,
  node,
  root,
}: PlanDocument): readonly string[] {
  const counts = new Map<string, number>();
  const actions = [
    ...volumes.flatMap((one) => [...one.places.map(({ action }) => action), ...ownStageOf(one)]),
    ...unresolved.map(() => 'wait' as const),
  ];
  for (const action of actions) counts.set(WORDS[action].text, (counts.get(WORDS[action].text) ?? 0) + 1);
  const told = [...counts].map(([word, count]) => `${word} ${count}`).join(', ');
  const lines = [`Node ${node}, ${root}: ${told === '' ? 'nothing is there, and nothing is wanted' : told}.`];
  for (const rejected of sources.rejected) {
    const { subject, origin } = rejected;
    lines.push(`${subject === null ? origin : `${subject} in ${origin}`}: ${problemText(rejected)}`);
  }
  if (sources.cluster !== null && sources.cluster.message !== null)
    lines.push(`${sources.cluster.server}: ${sources.cluster.message}`);
  if (!whole)
    lines.push('Not all has been read: there may be more, and nothing is taken down before it was.');
  if (refusal !== null) {
    const blocker = refusal.blocker === null ? '' : ` (${refusal.blocker})`;
    lines.push(`An agent would not start now: ${refusal.code}: ${refusal.message}${blocker}.`);
  }
  if (disturbed > 0)
    lines.push(
      `${disturbed === 1 ? 'One volume' : `${disturbed} volumes`} would be taken from pods that are wanted.`,
    );
  return lines;
}
