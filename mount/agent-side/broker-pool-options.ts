/** How many brokers a pool has, and how long what takes too long may take. */
import type { PathCallKind } from '../broker/broker-protocol.ts';
import type { BrokerStart } from './broker-process.ts';

export interface BrokerPoolOptions extends BrokerStart {
  /** From when a broker takes the call; also the longest wait for a broker. */
  readonly deadlineMs: number;
  /** For removeTree, whose work has no bound. */
  readonly removeTreeDeadlineMs: number;
  /** The deadlines of kinds of calls that have their own; also their longest wait for a broker. */
  readonly deadlinesMs?: Partial<Record<PathCallKind, number>>;
  readonly pathBrokersMax?: number;
  /** Without it a call waits at most `deadlineMs` for a broker. */
  readonly waitsForEver?: boolean;
  /** How many stay when there is nothing to do. */
  readonly idleBrokersMin?: number;
  /** How long one that need not stay does. */
  readonly idleMsMax?: number;
  /** So many for many quick calls; more only when every call under way is slow. */
  readonly crowdBrokersMax?: number;
  /** Brokers that hang are replaced up to so many; a machine with more dead file systems has to wait for them. */
  readonly abandonedMax?: number;
}

export type PoolBounds = Required<
  Pick<
    BrokerPoolOptions,
    'pathBrokersMax' | 'idleBrokersMin' | 'idleMsMax' | 'crowdBrokersMax' | 'abandonedMax'
  >
>;

/** What a pool has that was told nothing else. */
export const POOL_BOUNDS: PoolBounds = {
  pathBrokersMax: 8,
  idleBrokersMin: 1,
  // Each takes some 10 MB. With 2 s a drain that followed its set-up by some seconds took a fifth more processor time.
  idleMsMax: 10_000,
  // They wait for the disk together.
  crowdBrokersMax: 3,
  abandonedMax: 64,
};
