/** How long a token is the right answer, and when the next one is due. Pure. */
import type { TokenRequest } from '../../kubernetes/objects/objects.ts';
import type { PodReference } from '../../plugins/volume.ts';

export interface TokenLife {
  readonly issuedWallMs: number;
  readonly expiresWallMs: number;
  /** From here on whoever still asks is to have another one. */
  readonly freshUntilWallMs: number;
}

/** As the API server: the life of a token whose life nobody asked for. */
export const LIFE_SECONDS_DEFAULT = 3_600;
/** A timer takes no more than this; what is due later is looked at again. */
const TIMER_MS_MAX = 3_600_000;
/** As the kubelet: a new one at 80 % of its life, or after a day, up to 10 s earlier by chance. */
const FRESH_SHARE = 0.8;
const FRESH_MS_MAX = 24 * 3_600_000;
const JITTER_MS_MAX = 10_000;

/** `random`: below 1. */
export function tokenLife(issuedWallMs: number, expiresWallMs: number, random: number): TokenLife {
  const freshMs = Math.min((expiresWallMs - issuedWallMs) * FRESH_SHARE, FRESH_MS_MAX);
  const jitterMs = random * Math.min(JITTER_MS_MAX, freshMs / 2);
  return { issuedWallMs, expiresWallMs, freshUntilWallMs: issuedWallMs + freshMs - jitterMs };
}

/** No newer one is due. A clock that was set back makes that unknown, so one is. */
export function isFresh({ issuedWallMs, freshUntilWallMs }: TokenLife, wallMs: number): boolean {
  return wallMs >= issuedWallMs && wallMs < freshUntilWallMs;
}

/** It may be shown to whoever verifies it. */
export function isValid({ issuedWallMs, expiresWallMs }: TokenLife, wallMs: number): boolean {
  return wallMs >= issuedWallMs && wallMs < expiresWallMs;
}

/** How long to wait before looking at it again. */
export function dueInMs({ freshUntilWallMs }: Pick<TokenLife, 'freshUntilWallMs'>, wallMs: number): number {
  return Math.min(Math.max(freshUntilWallMs - wallMs, 0) + 1, TIMER_MS_MAX);
}

/** Who asks for one token again asks with the same key. */
export function requestKey(pod: PodReference, { audience, expirationSeconds }: TokenRequest): string {
  return JSON.stringify([pod, audience, expirationSeconds ?? LIFE_SECONDS_DEFAULT]);
}
