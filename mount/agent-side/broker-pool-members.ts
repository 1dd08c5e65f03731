/** The path brokers of one pool: what each of them does, and how many do not seem to come back. */
import { BrokerMembers } from './broker-members.ts';
import type { BrokerProcess } from './broker-process.ts';
import type { PathCall } from '../broker/broker-protocol.ts';
import type { Result } from '../failure.ts';

/** How the caller goes along with a long call. */
export interface CallCompany {
  /** A broker has taken it, and its deadline begins. */
  readonly onBegin?: () => void;
  /** The call goes on and has seen so many entries; its deadline begins anew. */
  readonly onSign?: (seen: number) => void;
  /** Ends the call: `no-longer-wanted`, with effect `unknown` once it has begun. */
  readonly signal?: AbortSignal;
}

export interface Pending {
  readonly id: number;
  readonly call: PathCall;
  readonly deadlineMs: number;
  readonly settle: (result: Result<unknown>) => void;
  readonly company: CallCompany | undefined;
  /** It fires at the deadline of the call, once that has begun. */
  timer: NodeJS.Timeout | undefined;
}

export type Phase = 'starting' | 'idle' | 'busy' | 'overdue' | 'leaving';

export interface Member {
  readonly broker: BrokerProcess;
  phase: Phase;
  begunMs: number;
  /** When its call was begun, or gave a sign. */
  signMs: number;
  pending: Pending | undefined;
  idleTimer: NodeJS.Timeout | undefined;
}

/** A call that runs longer seems to hang. On a busy machine each further broker makes all calls slower. */
const STUCK_MS = 500;
/** One that gives no sign for so long waits for its volume, and no longer counts: 30 s is long for all that wait. */
const SILENT_MS = 5_000;

export class PathMembers extends BrokerMembers<Member> {
  working(): number {
    return this.count('starting', 'idle', 'busy');
  }

  /** So many hang, and are not killed yet. */
  silent(): number {
    const sinceMs = performance.now() - SILENT_MS;
    return [...this].filter(({ phase, signMs }) => phase === 'busy' && signMs <= sinceMs).length;
  }

  /** Every call that runs seems to hang. */
  allStuck(): boolean {
    const sinceMs = performance.now() - STUCK_MS;
    return [...this].every(({ phase, begunMs }) => phase !== 'busy' || begunMs <= sinceMs);
  }

  count(...phases: readonly Phase[]): number {
    let found = 0;
    for (const { phase } of this) if (phases.includes(phase)) found += 1;
    return found;
  }
}
