/** In which form the agent's records lie in one seed: in files, in a journal, or in turn in its lives. */
import type { RecordForm } from '../../reconciler/journal/record-forms.ts';
import type { Plan } from './swarm.ts';
import type { Random } from './random.ts';

export interface RecordsPlan {
  readonly form: RecordForm;
  /** Probability that a life begins with the form that is not the one of the life before. */
  readonly changes: number;
  /** The smallest journal, small enough to be written anew often. */
  readonly journalBytes: number;
}

export const RECORD_FILES: RecordsPlan = { form: 'files', changes: 0, journalBytes: 32_768 };

const JOURNAL_SHARE = 0.8;
const CHANGING_SHARE = 0.3;

/** `random` is a stream of its own, so that the other seeds keep their stories. */
export function drawRecords(random: Random): RecordsPlan {
  if (!random.chance(JOURNAL_SHARE)) return RECORD_FILES;
  const changes = random.chance(CHANGING_SHARE) ? 0.4 : 0;
  return { form: 'journal', changes, journalBytes: random.pick([32_768, 262_144]) };
}

/** All of any story with its records in a journal, on a machine whose disk often does not answer and is often full. */
export function inJournal(plan: Plan): Plan {
  return { ...plan, records: { ...RECORD_FILES, form: 'journal', changes: 0.05 } };
}

/** The same, and the weather of files and the crashes that a journal is for. */
export function aboutJournal(plan: Plan): Plan {
  const effects = new Map(plan.weather.effects);
  effects.set('writeFile', { refused: 0.05, doubtful: 0.1, slow: 0.01, hung: 0 });
  return {
    ...inJournal(plan),
    weather: { ...plan.weather, effects },
    crashAtBoundary: 0.01,
    crashesMax: 12,
    safetyMs: Math.max(plan.safetyMs, 60_000),
    events: { ...plan.events, podComes: 4, podGoes: 4, agentCrashes: 2, reboots: 2 },
  };
}
