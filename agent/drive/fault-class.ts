/** The ways a proxy makes calls go wrong, and how it chooses which. */
import type { ArrivingCall, Injection } from './proxy/proxy.ts';

export const FAULT_CLASSES = ['delay', 'lost-reply', 'unreached', 'refused', 'aborted'] as const;
export type FaultClass = (typeof FAULT_CLASSES)[number];

/** What `--only` takes for it. */
export function faultDutyName(one: FaultClass): string {
  return `fault-${one}`;
}

export const FAULT_TITLES: Readonly<Record<FaultClass, string>> = {
  delay: 'slow answers',
  'lost-reply': 'done, and the answer lost',
  unreached: 'never reached the driver',
  refused: 'refused with a final code before the driver',
  aborted: 'another operation is pending',
};

const DELAY_MS_MAX = 600;
const CANCELLED = 1;
const DEADLINE_EXCEEDED = 4;
const INTERNAL = 13;
const RESOURCE_EXHAUSTED = 8;
const ABORTED = 10;
const UNAVAILABLE = 14;

/** The calls that change something on the way up and down; the others go through. */
const AFFLICTED: ReadonlySet<string> = new Set([
  'ControllerPublishVolume',
  'ControllerUnpublishVolume',
  'NodeStageVolume',
  'NodePublishVolume',
  'NodeUnpublishVolume',
  'NodeUnstageVolume',
]);
/** How many calls of each method are harmed before it is left in peace. */
const TIMES_MAX = 2;

/** Harms the first one or two calls of every method of each life of the agent, by chance of the seed. */
export function createFaults(
  fault: FaultClass,
  chance: () => number,
): { readonly inject: (call: ArrivingCall) => Injection | undefined; injected(): number; renew(): void } {
  const left = new Map<string, number>();
  let injected = 0;
  const pick = <T>(...from: readonly [T, ...T[]]): T => from[Math.floor(chance() * from.length)] ?? from[0];
  return {
    inject({ method }) {
      if (!AFFLICTED.has(method)) return undefined;
      const times = left.get(method) ?? 1 + Math.floor(chance() * TIMES_MAX);
      left.set(method, times - 1);
      if (times <= 0) return undefined;
      injected += 1;
      switch (fault) {
        case 'delay':
          return { kind: 'delay', delayMs: Math.ceil(chance() * DELAY_MS_MAX) };
        case 'lost-reply':
          return { kind: 'lose', code: pick(DEADLINE_EXCEEDED, UNAVAILABLE, CANCELLED, INTERNAL) };
        case 'unreached':
          return { kind: 'refuse', code: pick(UNAVAILABLE, DEADLINE_EXCEEDED) };
        case 'refused':
          return { kind: 'refuse', code: pick(INTERNAL, RESOURCE_EXHAUSTED) };
        case 'aborted':
          return { kind: 'refuse', code: ABORTED };
      }
    },
    injected: () => injected,
    renew: () => left.clear(),
  };
}
