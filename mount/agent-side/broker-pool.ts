/** The path brokers: one call at a time each, more of them while calls wait, and a kill for a call that is overdue. */
import { startBroker } from './broker-process.ts';
import { type BrokerPoolOptions, POOL_BOUNDS, type PoolBounds } from './broker-pool-options.ts';
import { failLost, failUnasked, failUnbegun } from './lost-call.ts';
import { BrokerQueue } from './broker-queue.ts';
import { type CallCompany, type Member, PathMembers, type Pending } from './broker-pool-members.ts';
import type { PathCall, PathCallKind, PathCalls } from '../broker/broker-protocol.ts';
import { done, type Result } from '../failure.ts';
import type { AbsolutePath } from '../host.ts';

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
  /** Does a broker answer a question about `/`? Before all calls that wait, by one broker more if need be. */
  answers(): Promise<Result<void>>;
  /** Killed brokers that have not ended: they sit in the kernel, and so do their calls. */
  abandoned(): number;
  /** Pids of all brokers that are there: of one whose process is gone none, though its call is not settled. */
  pids(): readonly number[];
  /** Takes no more calls, lets the brokers end, kills those that do not within a second. Settles soon in any case. */
  close(): Promise<void>;
}

/** A call waits this long for a busy broker before another is started (a start costs some 50 ms). */
const PATIENCE_MS = 50;
const CLOSE_MS = 1_000;
const ROOT = '/' as AbsolutePath;

export function createBrokerPool(options: BrokerPoolOptions): BrokerPool {
  return new PathBrokers(options);
}

class PathBrokers implements BrokerPool {
  readonly #options: BrokerPoolOptions & PoolBounds;
  readonly #members = new PathMembers();
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
    const answer = this.#ask({ kind, args } as PathCall, 'add', company);
    return answer as Promise<PathCalls[Kind]['result']>;
  }

  async answers(): Promise<Result<void>> {
    const answer = await this.#ask({ kind: 'inspect', args: { path: ROOT } }, 'addFirst');
    return answer.ok ? done : answer;
  }

  #ask(call: PathCall, add: 'add' | 'addFirst', company?: CallCompany): Promise<Result<unknown>> {
    if (this.#members.isClosing) return Promise.resolve(failUnbegun(call, 'broker-lost'));
    if (company?.signal?.aborted) return Promise.resolve(failUnbegun(call, 'no-longer-wanted'));
    const { removeTreeDeadlineMs, waitsForEver, deadlinesMs } = this.#options;
    const deadlineMs = deadlinesMs?.[call.kind] ?? this.#options.deadlineMs;
    return new Promise((resolve) => {
      this.#lastId += 1;
      const onAbort = (): void => this.#abort(pending);
      const pending: Pending = {
        id: this.#lastId,
        call,
        deadlineMs: removesTrees(call) ? removeTreeDeadlineMs : deadlineMs,
        company,
        settle: (result) => {
          company?.signal?.removeEventListener('abort', onAbort);
          resolve(result);
        },
        timer: undefined,
      };
      company?.signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting[add](pending, waitsForEver ? undefined : deadlineMs, () =>
        pending.settle(failUnasked(call, this.#taken() > 0)),
      );
      this.#pump();
    });
  }

  abandoned(): number {
    return this.#members.count('overdue');
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
      signMs: 0,
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
    this.#give();
    if (this.#waiting.size === 0) return;
    if (this.#members.working() === 0) this.#grow();
    else this.#growth ??= setTimeout(() => this.#grow(), PATIENCE_MS);
  }

  #give(): void {
    for (const member of this.#members) {
      if (this.#waiting.size === 0) return;
      if (member.phase === 'idle') this.#begin(member);
    }
  }

  /** One at a time. The queue is looked at again when it listens, when a call is overdue, and when one is silent. */
  #grow(): void {
    clearTimeout(this.#growth);
    this.#growth = undefined;
    this.#give();
    if (this.#waiting.size === 0 || this.#members.isClosing || this.#members.count('starting') > 0) return;
    if (this.#mayGrow()) this.#start();
    else this.#growth = setTimeout(() => this.#grow(), PATIENCE_MS);
  }

  #mayGrow(): boolean {
    const { pathBrokersMax, crowdBrokersMax, abandonedMax } = this.#options;
    const more = this.#waiting.hasFirst ? 1 : 0;
    const [silent, working] = [this.#members.silent(), this.#members.working()];
    if (working - silent >= pathBrokersMax + more) return false;
    // One of those that are left over serves the calls, and another one the question whether a broker answers.
    if (this.#taken() >= abandonedMax + 2 * more) return false;
    return working < crowdBrokersMax || this.#members.allStuck();
  }

  /** Who is busy counts with those that hang: calls that begin together may all turn out to hang. */
  #taken(): number {
    return this.#members.count('busy', 'overdue');
  }

  #begin(member: Member): void {
    const { pathBrokersMax, abandonedMax } = this.#options;
    // The one broker more is for what needs no turn.
    const isFree = this.#members.count('busy') - this.#members.silent() < pathBrokersMax;
    const isTurn = isFree && this.#taken() <= abandonedMax;
    const pending = this.#waiting.next(isTurn);
    if (pending === undefined) return;
    clearTimeout(member.idleTimer);
    member.phase = 'busy';
    member.begunMs = performance.now();
    member.signMs = member.begunMs;
    member.pending = pending;
    pending.timer = setTimeout(() => this.#overdue(member), pending.deadlineMs);
    member.broker.keepAgentAlive(true);
    member.broker.send({ kind: 'path', id: pending.id, call: pending.call });
    pending.company?.onBegin?.();
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
    member.signMs = performance.now();
    pending.timer = setTimeout(() => this.#overdue(member), pending.deadlineMs);
    pending.company?.onSign?.(seen);
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
      if (this.#members.working() > this.#options.idleBrokersMin) this.#leave(member);
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
      const aborted = pending.company?.signal?.aborted === true;
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
}

function removesTrees({ kind, args }: PathCall): boolean {
  return kind === 'removeTree' || (kind === 'transition' && args.removesTrees);
}
