/** Logs what of the sources is not taken, once for as long as it is so, and when it is refused no longer. */
import type { Log } from '../../mount/process/log.ts';
import type { DesiredObjects } from './desired-objects.ts';
import type { Rejection } from './objects-source.ts';

export interface RejectionLog {
  /** What is refused as it is now. */
  note(desired: Pick<DesiredObjects, 'rejected'>): void;
}

/** At one look; `mooring status` has all of them. */
const LINES_MAX = 32;

export function createRejectionLog(log: Log): RejectionLog {
  let known: ReadonlyMap<string, Rejection> = new Map();
  return {
    note(desired) {
      const isUnsure = unsureAmong(desired.rejected);
      const rejected = desired.rejected.filter(({ isPassing }) => isPassing !== true);
      const before = known;
      const kept = [...before].filter(([, one]) => isUnsure(one));
      known = new Map([...kept, ...rejected.map((one) => [keyOf(one), one] as const)]);
      const refused = bySubject(known);
      const news = [...known].filter(([key]) => !before.has(key));
      const mended = [...bySubject(before)].filter(([subject]) => !refused.has(subject));
      for (const [, { attachment: _, pod: __, ...one }] of news.slice(0, LINES_MAX))
        log.warn('not taken', { ...one });
      if (news.length > LINES_MAX)
        log.warn('more is not taken', { objects: news.length - LINES_MAX, command: 'mooring status' });
      for (const [, { origin, subject }] of mended.slice(0, LINES_MAX))
        log.info('no longer refused', { origin, ...(subject === undefined ? {} : { subject }) });
      if (mended.length > LINES_MAX)
        log.info('more is no longer refused', { objects: mended.length - LINES_MAX });
    },
  };
}

/** Whoever mends one field of an object may have another one to mend. */
function subjectOf({ origin, subject }: Rejection): string {
  return JSON.stringify([origin, subject]);
}

function bySubject(known: ReadonlyMap<string, Rejection>): ReadonlyMap<string, Rejection> {
  return new Map([...known.values()].map((one) => [subjectOf(one), one]));
}

function keyOf(one: Rejection): string {
  return JSON.stringify([subjectOf(one), one.field, one.message]);
}

/** Nobody knows whether something is mended of which the file cannot be read as a whole, or which is being read. */
function unsureAmong(rejected: readonly Rejection[]): (one: Rejection) => boolean {
  const whole = new Set(rejected.flatMap(({ origin, subject }) => (subject === undefined ? [origin] : [])));
  const passing = new Set(rejected.flatMap((one) => (one.isPassing === true ? [subjectOf(one)] : [])));
  return (one) => passing.has(subjectOf(one)) || (one.subject !== undefined && whole.has(fileOf(one)));
}

/** `web.yaml` of `web.yaml#1`. */
function fileOf({ origin }: Rejection): string {
  const at = origin.lastIndexOf('#');
  return at < 0 ? origin : origin.slice(0, at);
}
