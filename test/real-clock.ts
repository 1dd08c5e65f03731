import type { Clock } from '../mount/host.ts';

/** The time of this machine, where a test talks to a process or a socket of it. */
export const REAL_CLOCK: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  timer: (delayMs, fire) => {
    const timer = setTimeout(fire, delayMs);
    return () => clearTimeout(timer);
  },
};
