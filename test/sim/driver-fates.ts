/** What goes wrong with one call inside a driver. */
import type { Random } from './random.ts';

export type Fate =
  | { readonly kind: 'plain' }
  /** Answers this status; the effect has happened before, or not at all. */
  | { readonly kind: 'status'; readonly status: number; readonly effect: boolean }
  /** Takes `delayMs`, mostly beyond the caller's deadline, and has its effect then. */
  | { readonly kind: 'late'; readonly delayMs: number }
  /**
   * Is never answered. The handler ends with its caller's deadline and lets go of the volume, and what it has started,
   * as a mount(8) does, has its effect minutes later, whatever was asked and answered meanwhile and whether or not the
   * driver is still there.
   */
  | { readonly kind: 'straggler' }
  /** Works for ever: no effect, no answer, the volume locked until the driver is restarted or healed. */
  | { readonly kind: 'hung' }
  /** Says OK and has done nothing. */
  | { readonly kind: 'lie' }
  /** Mounts one layer too many. */
  | { readonly kind: 'stack' }
  /** The driver dies, with or without the effect. */
  | { readonly kind: 'crash'; readonly effect: boolean };

export type FateKind = Fate['kind'];

/** Probability of each fate per call; the rest is `plain`. */
export type FateRates = Readonly<Partial<Record<Exclude<FateKind, 'plain'>, number>>>;

/** Every code of gRPC but OK, and one that no table knows. */
const STATUSES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 42] as const;
const UNIMPLEMENTED = 12;
const LATE_MS_MAX = 200_000;

/** Codes that promise "nothing happened"; a driver that breaks even this is beyond help (GR-03). */
const HARMLESS: ReadonlySet<number> = new Set([3, 5, 7, 9, 11, 12, 16]);

export function drawFate(rates: FateRates, random: Random): Fate {
  let left = random.next();
  for (const [kind, rate] of Object.entries(rates) as [Exclude<FateKind, 'plain'>, number][]) {
    left -= rate;
    if (left < 0) return fateOf(kind, random);
  }
  return { kind: 'plain' };
}

function fateOf(kind: Exclude<FateKind, 'plain'>, random: Random): Fate {
  switch (kind) {
    case 'status': {
      const status = random.pick(STATUSES);
      if (status === UNIMPLEMENTED && random.chance(0.7))
        return { kind, status: 13, effect: random.chance(0.5) };
      return { kind, status, effect: !HARMLESS.has(status) && random.chance(0.5) };
    }
    case 'late':
      return { kind, delayMs: random.between(500, LATE_MS_MAX) };
    case 'crash':
      return { kind, effect: random.chance(0.5) };
    case 'straggler':
    case 'hung':
    case 'lie':
    case 'stack':
      return { kind };
  }
}
