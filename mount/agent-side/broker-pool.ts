/** The path brokers: one call at a time each, more of them while calls wait, and a kill for a call that is overdue. */
import { BrokerMembers } from './broker-members.ts';
import { type BrokerProcess, startBroker } from './broker-process.ts';
import { type BrokerPoolOptions, POOL_BOUNDS, type PoolBounds } from './broker-pool-options.ts';
import { failLost, failUnbegun } from './lost-call.ts';
import { BrokerQueue } from './broker-queue.ts';
import type { PathCall, PathCallKind, PathCalls } from '../broker/broker-protocol.ts';
import type { Result } from '../failure.ts';

/** How the caller goes along with a long call. */
export interface CallCompany {
  /** The call goes on and has seen so many entries; its deadline begins anew. */
  readonly onSign: (seen: number) => void;
  /** Ends the call: `no-longer-wanted`, with effect `unknown` once it has begun. */
  readonly signal: AbortSignal;
}

export interface BrokerPool {
  /**
   * Settles when the call has ended. Past its deadline its broker is killed and it settles when that has ended:
   * `deadline-passed`, with effect `unknown` for a call that changes the world. Never, while the kernel holds on to the
   * broker. `broker-lost` when the broker dies under it.
   */
  call<Kind extends PathCallKind>(
    kind: Kind,
    args: PathCalls[Kind]['args'],
    company?: CallCompany,
  ): Promise<PathCalls[Kind]['result']>;
  /** Killed brokers that have not ended: they sit in the kernel, and so do their calls. */
  abandoned(): number;
  /** Pids of all brokers that have not ended, for tests and status. */
  pids(): readonly number[];
  /** Takes no more calls, lets the brokers end, kills those that do not within a second. Settles soon in any case. */
  close(): Promise<void>;
}

/** Abandoned brokers are replaced up to this many; a machine with more dead file systems has to wait for them. */
const ABANDONED_MAX = 64;
/** A call waits this long for a busy broker before another is started (a start costs some 50 ms). */
const PATIENCE_MS = 50;
/** A call that runs longer seems to hang. On a busy machine each further broker makes all calls slower. */
const STUCK_MS = 500;
const CLOSE_MS = 1_000;

interface Pending {
  readonly id: number;
  readonly call: PathCall;
  readonly deadlineMs: number;
  readonly settle: (result: Result<unknown>) => void;
  readonly company: CallCompany | undefined;
  /** It fires at the deadline of the call, once that has begun. */
  timer: NodeJS.Timeout | undefined;
}

type Phase = 'starting' | 'idle' | 'busy' | 'overdue' | 'leaving';

interface Member {
  readonly broker: BrokerProcess;
  phase: Phase;
  begunMs: number;
  pending: Pending | undefined;
  idleTimer: NodeJS.Timeout | undefined;
}

export function createBrokerPool(options: BrokerPoolOptions): BrokerPool {
  return new PathBrokers(options);
}

class PathBrokers implements BrokerPool {
  readonly #options: BrokerPoolOptions & PoolBounds;
  readonly #members = new BrokerMembers<Member>();
  readonly #waiting = new BrokerQueue<Pending>();
  #lastId = 0;
  #growth: NodeJS.Timeout | undefined;

  constructor(options: BrokerPoolOptions) {
    this.#options = { ...POOL_BOUNDS, ...options };
  }

  call<Kind extends PathCallKind>(
    kind: Kind,
    args: PathCalls[Kind]['args'],
    company?: CallCompany,
  ): Promise<PathCalls[Kind]['result']> {
    const call = { kind, args } as PathCall;
    if (this.#members.isClosing) return Promise.resolve(failUnbegun(call, 'broker-lost'));
    if (company?.signal.aborted) return Promise.resolve(failUnbegun(call, 'no-longer-wanted'));
    const { removeTreeDeadlineMs, waitsForEver, deadlinesMs } = this.#options;
    const deadlineMs = deadlinesMs?.[kind] ?? this.#options.deadlineMs;
    return new Promise((resolve) => {
      this.#lastId += 1;
      const onAbort = (): void => this.#abort(pending);
      const pending: Pending = {
        id: this.#lastId,
        call,
        deadlineMs: removesTrees(call) ? removeTreeDeadlineMs : deadlineMs,
        company,
        settle: (result) => {
          company?.signal.removeEventListener('abort', onAbort);
          (resolve as (result: Result<unknown>) => void)(result);
        },
        timer: undefined,
      };
      company?.signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(pending, waitsForEver ? undefined : deadlineMs, () =>
        pending.settle(failUnbegun(call, 'deadline-passed')),
      );
      this.#pump();
    });
  }

  abandoned(): number {
    return this.#count('overdue');
  }

  pids(): readonly number[] {
    return this.#members.pids();
  }

  async close(): Promise<void> {
    this.#refuseAll();
    clearTimeout(this.#growth);
    const leave = (member: Member): void => {
      if (member.phase === 'starting' || member.phase === 'idle') this.#leave(member);
    };
    await this.#members.close(leave, CLOSE_MS);
    for (const { broker } of this.#members) {
      broker.kill();
      broker.keepAgentAlive(false);
    }
  }

  #start(): void {
    const member: Member = {
      phase: 'starting',
      begunMs: 0,
      pending: undefined,
      idleTimer: undefined,
      broker: startBroker('path', this.#options, {
        onReady: () => {
          this.#members.started();
          if (member.phase === 'starting') this.#rest(member);
        },
        onSettled: (id, result) => this.#settled(member, id, result),
        onSign: (id, seen) => this.#signed(member, id, seen),
        onEnded: () => this.#ended(member),
      }),
    };
    this.#members.add(member);
  }

  /** Gives waiting calls to idle brokers, and sees to it that there will be one for the rest. */
  #pump(): void {
    for (const member of this.#members) {
      if (this.#waiting.size === 0) return;
      if (member.phase === 'idle') this.#begin(member);
    }
    if (this.#waiting.size === 0) return;
    if (this.#working() === 0) this.#grow();
    else this.#growth ??= setTimeout(() => this.#grow(), PATIENCE_MS);
  }

  /** One at a time: when it listens, or another call is overdue, the queue is looked at again. */
  #grow(): void {
    clearTimeout(this.#growth);
    this.#growth = undefined;
    if (this.#waiting.size === 0 || this.#members.isClosing || this.#count('starting') > 0) return;
    if (this.#working() >= this.#options.pathBrokersMax || this.#count('overdue') >= ABANDONED_MAX) return;
    if (this.#working() < this.#options.crowdBrokersMax || this.#allStuck()) this.#start();
    else this.#growth = setTimeout(() => this.#grow(), PATIENCE_MS);
  }

  /** Every call that runs seems to hang. */
  #allStuck(): boolean {
    const sinceMs = performance.now() - STUCK_MS;
    return [...this.#members].every(({ phase, begunMs }) => phase !== 'busy' || begunMs <= sinceMs);
  }

  #begin(member: Member): void {
    const pending = this.#waiting.next();
    if (pending === undefined) return;
    clearTimeout(member.idleTimer);
    member.phase = 'busy';
    member.begunMs = performance.now();
    member.pending = pending;
    pending.timer = setTimeout(() => this.#overdue(member), pending.deadlineMs);
    member.broker.keepAgentAlive(true);
    member.broker.send({ kind: 'path', id: pending.id, call: pending.call });
  }

  #overdue(member: Member): void {
    member.phase = 'overdue';
    member.broker.kill();
    this.#pump();
  }

  #signed(member: Member, id: number, seen: number): void {
    const { pending } = member;
    if (pending?.id !== id || member.phase !== 'busy') return;
    clearTimeout(pending.timer);
    pending.timer = setTimeout(() => this.#overdue(member), pending.deadlineMs);
    pending.company?.onSign(seen);
  }

  /** A call that has begun is ended as an overdue one is; one that waits has not begun. */
  #abort(pending: Pending): void {
    for (const member of this.#members) {
      if (member.pending !== pending) continue;
      clearTimeout(pending.timer);
      if (member.phase === 'busy') this.#overdue(member);
      return;
    }
    if (this.#waiting.remove(pending)) pending.settle(failUnbegun(pending.call, 'no-longer-wanted'));
  }

  #settled(member: Member, id: number, result: Result<unknown>): void {
    const { pending } = member;
    if (pending === undefined || pending.id !== id) return;
    clearTimeout(pending.timer);
    member.pending = undefined;
    pending.settle(result);
    // An overdue one has been killed: the answer was on its way and counts, the broker goes nevertheless.
    if (member.phase === 'busy') this.#rest(member);
  }

  #rest(member: Member): void {
    member.phase = 'idle';
    member.broker.keepAgentAlive(false);
    if (this.#members.isClosing) this.#leave(member);
    else this.#pump();
    if (member.phase !== 'idle') return;
    member.idleTimer = setTimeout(() => {
      if (this.#working() > this.#options.idleBrokersMin) this.#leave(member);
    }, this.#options.idleMsMax).unref();
  }

  #leave(member: Member): void {
    member.phase = 'leaving';
    clearTimeout(member.idleTimer);
    member.broker.disconnect();
  }

  #ended(member: Member): void {
    this.#members.ended(member);
    clearTimeout(member.idleTimer);
    const { pending, phase } = member;
    if (pending !== undefined) {
      clearTimeout(pending.timer);
      const aborted = pending.company?.signal.aborted === true;
      const overdue = aborted ? 'no-longer-wanted' : 'deadline-passed';
      const code = phase === 'overdue' ? overdue : 'broker-lost';
      pending.settle(failLost(pending.call, code));
    }
    if (phase === 'starting' && this.#members.failedToStart()) this.#refuseAll();
    this.#pump();
  }

  #refuseAll(): void {
    for (const pending of this.#waiting.takeAll()) pending.settle(failUnbegun(pending.call, 'broker-lost'));
  }

  #working(): number {
    return this.#count('starting', 'idle', 'busy');
  }

  #count(...phases: readonly Phase[]): number {
    let found = 0;
    for (const { phase } of this.#members) if (phases.includes(phase)) found += 1;
    return found;
  }
}

function removesTrees({ kind, args }: PathCall): boolean {
  return kind === 'removeTree' || (kind === 'transition' && args.removesTrees);
}
