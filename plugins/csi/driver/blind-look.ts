/** A look that saw nothing, as the disk or a broker failed, is no news: what was known stays, and it is made again. */
import type { FailureCode } from '../../../mount/failure.ts';
import type { Cancel, Clock } from '../../../mount/host.ts';

const AGAIN_MS_MIN = 500;
const AGAIN_MS_MAX = 30_000;

/** What a look that did see says of a path; after any other failure nobody knows. */
const SEEN: ReadonlySet<FailureCode> = new Set([
  'path-missing',
  'path-wrong-kind',
  'path-unsafe',
  'endpoint-unsafe',
]);

export function isBlind(code: FailureCode): boolean {
  return !SEEN.has(code);
}

export interface BlindLook {
  /** Looks again later; each time in a row twice as late, up to half a minute. */
  again(): void;
  /** Something was seen. */
  end(): void;
}

export function createBlindLook(clock: Pick<Clock, 'timer'>, look: () => void): BlindLook {
  let waitMs = AGAIN_MS_MIN;
  let cancel: Cancel | undefined;
  return {
    again() {
      cancel?.();
      cancel = clock.timer(waitMs, look);
      waitMs = Math.min(2 * waitMs, AGAIN_MS_MAX);
    },
    end() {
      cancel?.();
      waitMs = AGAIN_MS_MIN;
    },
  };
}
