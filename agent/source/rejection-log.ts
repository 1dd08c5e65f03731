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
  let refused: ReadonlyMap<string, Rejection> = new Map();
  return {
    note(desired) {
      const rejected = desired.rejected.filter(({ isPassing }) => isPassing !== true);
      const [knownBefore, refusedBefore] = [known, refused];
      known = new Map(rejected.map((one) => [JSON.stringify([subjectOf(one), one.field, one.message]), one]));
      refused = new Map(rejected.map((one) => [subjectOf(one), one]));
      const news = [...known].filter(([key]) => !knownBefore.has(key));
      const mended = [...refusedBefore].filter(([subject]) => !refused.has(subject));
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
