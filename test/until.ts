/** Waits for what no event tells; where there is one, it is waited for instead. */
import { setTimeout as pause } from 'node:timers/promises';

const WAIT_MS_MAX = 120_000;
const LOOK_EVERY_MS = 5;

export interface Patience {
  readonly waitMsMax?: number;
  readonly lookEveryMs?: number;
}

/**
 * Settles with the first answer that is neither undefined nor false. Rejects with `what` after `waitMsMax`, two minutes
 * unless said otherwise.
 */
export async function until<Found>(
  what: string,
  look: () => Found | undefined | false | Promise<Found | undefined | false>,
  { waitMsMax = WAIT_MS_MAX, lookEveryMs = LOOK_EVERY_MS }: Patience = {},
): Promise<Found> {
  const endMs = performance.now() + waitMsMax;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > endMs)
      throw new Error(`it did not come about in ${waitMsMax / 1_000} s: ${what}`);
    await pause(lookEveryMs);
  }
}
