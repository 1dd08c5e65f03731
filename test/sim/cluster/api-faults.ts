/** What goes wrong between a node and its API server, as rates; all off unless a seed draws them. */
import type { Random } from '../random.ts';

/** What becomes of one request. Every write but a `refused` one may have had its effect. */
export type RequestFate =
  | 'plain'
  /** 429 with Retry-After: nothing was done. */
  | 'busy'
  /** 500: nothing was done, and nobody can tell. */
  | 'failed'
  /** 500, and it was done. */
  | 'failed-done'
  /** It was done, and the answer is lost. */
  | 'lost'
  /** No answer until the deadline, and it was not done. */
  | 'hung'
  /** No answer until the deadline, and it is done after that. */
  | 'late'
  /** A right that is missing for a moment, as while the authorizer lags. */
  | 'denied';

export interface ApiFaults {
  readonly requests: Readonly<Partial<Record<Exclude<RequestFate, 'plain'>, number>>>;
  /** Probability that a read which allows it is answered from a cache that lags. */
  readonly staleRead: number;
  /** How late an event of a watch comes. */
  readonly watchLagMsMax: number;
  /** Probability that an event comes only after a pause of up to a minute, and all others behind it. */
  readonly watchStall: number;
  /** Each way. */
  readonly latencyMsMax: number;
  /** A page with more objects than this is too large to be heard, when all is healed, too; by default none is. */
  readonly pageObjectsMax?: number;
  /** Probability that an event of a watch is too large to be heard; by default none is. */
  readonly largeEvent?: number;
}

export const NO_API_FAULTS: ApiFaults = {
  requests: {},
  staleRead: 0,
  watchLagMsMax: 0,
  watchStall: 0,
  latencyMsMax: 2,
};

export const WATCH_STALL_MS_MAX = 60_000;

export function drawRequestFate({ requests }: ApiFaults, random: Random): RequestFate {
  for (const [fate, rate] of Object.entries(requests) as [RequestFate, number][])
    if (random.chance(rate)) return fate;
  return 'plain';
}

/** Most are off: one alone, again and again, finds more than all at once. */
export function drawApiFaults(random: Random): ApiFaults {
  const rate = (share: number, rates: readonly number[]): number =>
    random.chance(share) ? random.pick(rates) : 0;
  return {
    requests: {
      busy: rate(0.3, [0.05, 0.3]),
      failed: rate(0.3, [0.05, 0.2]),
      'failed-done': rate(0.3, [0.05, 0.2]),
      lost: rate(0.4, [0.05, 0.3]),
      hung: rate(0.2, [0.02, 0.1]),
      late: rate(0.3, [0.02, 0.1]),
      denied: rate(0.3, [0.05, 0.2]),
    },
    staleRead: rate(0.5, [0.5]),
    watchLagMsMax: random.pick([0, 20, 1_500]),
    watchStall: rate(0.3, [0.02, 0.1]),
    latencyMsMax: random.pick([2, 20, 200]),
  };
}
