/** A clock that goes when it is told to, and gives every promise a turn between two timers. */
import type { Cancel, Clock } from '../../../mount/host.ts';

export interface HandClock extends Clock {
  random(): number;
  /** All timers of that span fire, in order, and what they begin has had its turns. */
  go(spanMs: number): Promise<void>;
  /** Lets what has begun go on until it waits for a timer. */
  settle(): Promise<void>;
  /** Somebody sets the clock of the wall, by so much; timers do not notice. */
  setWall(byMs: number): void;
}

const BEGIN_MS = 1_000_000;
const BEGIN_WALL_MS = Date.UTC(2026, 0, 1);
const TURNS = 12;
/** More timers than these in one millisecond are one that waits for nothing, and plans itself again. */
const AT_ONCE_MAX = 1_000;

export function handClock(random: () => number = () => 0.5): HandClock {
  let nowMs = BEGIN_MS;
  let setByMs = 0;
  const timers = new Set<{ readonly atMs: number; readonly fire: () => void }>();

  async function settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  return {
    nowMs: () => nowMs,
    wallMs: () => BEGIN_WALL_MS + setByMs + nowMs - BEGIN_MS,
    random,
    timer(delayMs, fire): Cancel {
      const timer = { atMs: nowMs + delayMs, fire };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    settle,
    setWall(byMs) {
      setByMs += byMs;
    },
    async go(spanMs) {
      const endMs = nowMs + spanMs;
      let atOnce = 0;
      await settle();
      for (;;) {
        const [next] = [...timers].filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs);
        if (next === undefined) break;
        timers.delete(next);
        atOnce = next.atMs > nowMs ? 0 : atOnce + 1;
        if (atOnce > AT_ONCE_MAX)
          throw new Error(`time stands still: ${AT_ONCE_MAX} timers in a millisecond`);
        nowMs = Math.max(nowMs, next.atMs);
        next.fire();
        await settle();
      }
      nowMs = endMs;
    },
  };
}
