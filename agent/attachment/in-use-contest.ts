/** Somebody else who writes this node's list of volumes in use: two writers of one list undo each other. */
import type { Failure } from '../../mount/failure.ts';
import type { Clock } from '../../mount/host.ts';

export interface Contest {
  /** Names of ours were taken off the list, by this writer as far as the server says. */
  note(writer: string | undefined): void;
  isContested(): boolean;
  /** Why nothing new is set up now; undefined while nobody else writes. */
  failure(): Failure | undefined;
  /** Between two writes while it is contested. */
  readonly paceMs: number;
}

const TIMES = 3;
const WITHIN_MS = 60_000;
const PACE_MS = 1_000;

/** Contested from the third time within a minute until nothing was taken away for a minute. */
export function createContest(clock: Pick<Clock, 'nowMs'>): Contest {
  let times: number[] = [];
  let by: string | undefined;
  const isContested = (): boolean => {
    times = times.filter((atMs) => clock.nowMs() - atMs < WITHIN_MS);
    return times.length >= TIMES;
  };
  return {
    paceMs: PACE_MS,
    isContested,
    note(writer) {
      times = [...times, clock.nowMs()].slice(-TIMES);
      by = writer ?? by;
    },
    failure() {
      if (!isContested()) return undefined;
      const who = by === undefined ? 'somebody' : `the writer ${by}`;
      const message =
        `${who} takes volumes of ours off status.volumesInUse of this Node, again and again: is a kubelet running ` +
        'for the same node? Nothing that is to be attached is set up until that has ended for a minute';
      return { code: 'in-use-contested', message, effect: 'unknown', blocker: by ?? 'another writer' };
    },
  };
}
