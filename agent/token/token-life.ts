/** How long a token is the right answer, and when the next one is due. Pure. */
import type { TokenRequest } from '../../kubernetes/objects/objects.ts';
import type { Clock } from '../../mount/host.ts';
import type { PodReference } from '../../plugins/volume.ts';

type TokenClock = Pick<Clock, 'nowMs' | 'wallMs'>;

/** A moment by both clocks of this machine. */
export interface Moment {
  readonly nowMs: number;
  readonly wallMs: number;
}

export interface TokenLife {
  readonly issuedAt: Moment;
  readonly lifeMs: number;
  /** When it is older than this, whoever still asks is to have another one. */
  readonly freshMs: number;
}

/** As the API server: the life of a token whose life nobody asked for. */
export const LIFE_SECONDS_DEFAULT = 3_600;
/** No timer tells that the clock of the wall was set, or that the machine slept: so often is looked whether it was. */
const LOOK_MS_MAX = 60_000;
/** As the kubelet: a new one at 80 % of its life, or after a day, up to 10 s earlier by chance. */
const FRESH_SHARE = 0.8;
const FRESH_MS_MAX = 24 * 3_600_000;
const JITTER_MS_MAX = 10_000;

export function momentOf(clock: TokenClock): Moment {
  return { nowMs: clock.nowMs(), wallMs: clock.wallMs() };
}

/** `random`: below 1. */
export function tokenLife(issuedAt: Moment, lifeMs: number, random: number): TokenLife {
  const freshMs = Math.min(lifeMs * FRESH_SHARE, FRESH_MS_MAX);
  const jitterMs = random * Math.min(JITTER_MS_MAX, freshMs / 2);
  return { issuedAt, lifeMs, freshMs: freshMs - jitterMs };
}

/** No newer one is due. */
export function isFresh(life: TokenLife, clock: TokenClock): boolean {
  return ageMs(life, clock) < life.freshMs;
}

/** It may be shown to whoever verifies it. */
export function isValid(life: TokenLife, clock: TokenClock): boolean {
  return ageMs(life, clock) < life.lifeMs;
}

/** How long to wait before looking at it again. */
export function dueInMs(life: TokenLife, clock: TokenClock): number {
  return Math.min(Math.max(life.freshMs - ageMs(life, clock), 0) + 1, LOOK_MS_MAX);
}

/**
 * The monotonic clock stands still while the machine sleeps, and the one on the wall may be set: what more has passed
 * by counts. Set back to before the issue, it makes the age unknown, and whoever verifies by that clock refuses it.
 */
function ageMs({ issuedAt }: TokenLife, clock: TokenClock): number {
  const shownMs = clock.wallMs() - issuedAt.wallMs;
  return shownMs < 0 ? Number.POSITIVE_INFINITY : Math.max(shownMs, clock.nowMs() - issuedAt.nowMs);
}

/** Who asks for one token again asks with the same key. */
export function requestKey(pod: PodReference, { audience, expirationSeconds }: TokenRequest): string {
  return JSON.stringify([pod, audience, expirationSeconds ?? LIFE_SECONDS_DEFAULT]);
}
