/** What comes in its own time is waited for with words: no wait is silent, and each says how long it may still take. */
import { spanText } from '../../../mount/text/duration.ts';
import type { DriverProcess } from './driver-child.ts';
import { CLOCK, pause } from './machine.ts';

/** One look at what is waited for: it is there, or what is there instead. */
export type Look<T> =
  | { readonly kind: 'there'; readonly value: T }
  | { readonly kind: 'missing'; readonly because: string };

/** What is waited for, why it is not there, how long it may still take; undefined: nothing is waited for any more. */
export type OnWait = (
  wait: { readonly what: string; readonly because: string; readonly leftMs: number } | undefined,
) => void;

export interface Patience {
  /** Undefined: the driver runs elsewhere, and nobody knows whether it still does. */
  readonly driver: DriverProcess | undefined;
  readonly interrupted: AbortSignal;
  /** Called once a second. */
  readonly onWait: OnWait;
}

/** A registrar dials its driver with a growing back-off: where the driver started slowly, it comes a minute later. */
const WAIT_MS_MAX = 120_000;
const LOOK_MS = 50;
const TOLD_MS = 1_000;
/** A mkfs takes some seconds. */
const SLOW_MS = 5_000;

/** Looks until it is there; a sentence when it does not come to that. `what` has its article. */
export async function waitWithWords<T>(
  what: string,
  look: () => Promise<Look<T>>,
  { driver, interrupted, onWait }: Patience,
): Promise<Look<T>> {
  const untilMs = CLOCK.nowMs() + WAIT_MS_MAX;
  let nextMs = CLOCK.nowMs() + TOLD_MS;
  for (;;) {
    const seen = await look();
    if (seen.kind === 'there') {
      onWait(undefined);
      return seen;
    }
    const { because } = seen;
    const nowMs = CLOCK.nowMs();
    const ending = driver?.ending();
    if (ending !== undefined) return missing(`${ending} (waited for ${what}: ${because})`);
    if (interrupted.aborted) return missing(`interrupted (waited for ${what}: ${because})`);
    if (nowMs > untilMs) return missing(`waited ${WAIT_MS_MAX / 1_000} s for ${what}: ${because}`);
    if (nowMs >= nextMs) {
      nextMs = nowMs + TOLD_MS;
      onWait({ what, because, leftMs: untilMs - nowMs });
    }
    await pause(LOOK_MS);
  }
}

/** Tells of a call that takes long, until the function that it answers is called. */
export function tellWhileSlow(method: string, deadlineMs: number, onWait: OnWait): () => void {
  const startMs = CLOCK.nowMs();
  const tell = (): void => {
    const forMs = CLOCK.nowMs() - startMs;
    const because = `it was asked ${spanText(forMs)} ago`;
    onWait({ what: `the answer to ${method}`, because, leftMs: Math.max(0, deadlineMs - forMs) });
    cancel = CLOCK.timer(TOLD_MS, tell);
  };
  let cancel = CLOCK.timer(SLOW_MS, tell);
  return () => {
    cancel();
    if (CLOCK.nowMs() - startMs >= SLOW_MS) onWait(undefined);
  };
}

export function missing(because: string): { readonly kind: 'missing'; readonly because: string } {
  return { kind: 'missing', because };
}

/** What is in the place of a socket. */
export function insteadOfSocket(kind: string): string {
  if (kind === 'absent') return 'nothing is there';
  return kind === kind.toUpperCase()
    ? `it cannot be looked at (${kind})`
    : `a ${kind} is there, and no socket`;
}
