/** The agent's side of a broker that runs tools. */
import { BrokerMembers } from './broker-members.ts';
import { type BrokerProcess, type BrokerStart, startBroker } from './broker-process.ts';
import { BrokerQueue } from './broker-queue.ts';
import type { ToolAnswer } from '../broker/broker-protocol.ts';
import { isRunning, killTool, type ToolProcess } from '../broker/tool-process.ts';
import { type Effect, type FailureCode, fail, type Result } from '../failure.ts';
import type { ToolRequest } from '../tool.ts';

export interface ToolBroker {
  /**
   * As runTool, in another process. Settles when the tool has ended, also when the broker dies under it: `broker-lost`,
   * effect `unknown`; at its deadline it is killed then, too. A broker that takes no request any more is killed. A
   * request that waits longer than its deadline for its turn is `deadline-passed`, effect `none`.
   */
  run(request: ToolRequest): Promise<ToolAnswer>;
  /** As `run`, before all that wait, and without a turn: for what is asked one at a time and must not wait. */
  runFirst(request: ToolRequest): Promise<ToolAnswer>;
  /** Tools that were killed at their deadline and have not ended: they sit in the kernel. */
  abandoned(): number;
  /** Pids of the brokers that are there: of one whose process is gone none, though tools of it run on. */
  pids(): readonly number[];
  /** Takes no more requests and lets the broker end when its tools have. Waits at most a second for that. */
  close(): Promise<void>;
}

/** Measured: two cores gain nothing beyond this; a tool past its deadline no longer counts. */
const RUNNING_MAX = 8;
export const ABANDONED_MAX = 64;
/** Between a tool's kill and the doubt that it will ever end. */
const KILL_MS = 1_000;
const CLOSE_MS = 1_000;
/** A broker says of each request at once that it has taken it; one that has not by then never will. */
const SILENT_MS_MAX = 60_000;
/** How often it is looked whether tools run still whose broker is gone. */
const ORPHAN_LOOK_MS = 250;
/** Starting it takes some 80 ms, and it takes 15 MB while it waits. */
const IDLE_MS_MAX = 60_000;

interface Pending {
  readonly id: number;
  readonly request: ToolRequest;
  readonly settle: (answer: ToolAnswer) => void;
  /** It fires at the deadline of the call, once that has begun. */
  timer: NodeJS.Timeout | undefined;
  overdue: boolean;
  /** Its broker is given up when it fires. */
  silentTimer: NodeJS.Timeout | undefined;
  /** Undefined until the broker has said which it is. */
  tool: ToolProcess | undefined;
}

interface Member {
  readonly broker: BrokerProcess;
  ready: boolean;
  readonly running: Map<number, Pending>;
  idleTimer: NodeJS.Timeout | undefined;
}

export interface ToolBrokerOptions extends BrokerStart {
  /** How long the broker stays when there is nothing to do; a minute unless said otherwise. */
  readonly idleMsMax?: number;
  /** How many tools run at a time. More than the default is for those that wait, and not for a processor. */
  readonly runningMax?: number;
  /** How long a broker may take no notice of a request; a minute unless said otherwise. */
  readonly silentMsMax?: number;
}

export function createToolBroker(start: ToolBrokerOptions): ToolBroker {
  return new OneToolBroker(start);
}

/** One at a time, that is: a dead one stays a member until the last of its tools has ended. */
class OneToolBroker implements ToolBroker {
  readonly #start: ToolBrokerOptions;
  readonly #members = new BrokerMembers<Member>();
  readonly #waiting = new BrokerQueue<Pending>();
  #current: Member | undefined;
  #lastId = 0;

  constructor(start: ToolBrokerOptions) {
    this.#start = start;
  }

  run(request: ToolRequest): Promise<ToolAnswer> {
    return this.#enqueue(request, 'add');
  }

  runFirst(request: ToolRequest): Promise<ToolAnswer> {
    return this.#enqueue(request, 'addFirst');
  }

  #enqueue(request: ToolRequest, add: 'add' | 'addFirst'): Promise<ToolAnswer> {
    if (this.#members.isClosing) return Promise.resolve(failTool(request, 'broker-lost', 'none'));
    return new Promise((settle) => {
      this.#lastId += 1;
      const pending: Pending = {
        id: this.#lastId,
        request,
        settle,
        timer: undefined,
        overdue: false,
        silentTimer: undefined,
        tool: undefined,
      };
      this.#waiting[add](pending, request.deadlineMs, () =>
        settle(failTool(request, 'deadline-passed', 'none')),
      );
      this.#pump();
    });
  }

  abandoned(): number {
    return this.#runningNow().filter(({ overdue }) => overdue).length;
  }

  pids(): readonly number[] {
    return this.#members.pids();
  }

  async close(): Promise<void> {
    this.#refuseAll();
    await this.#members.close(({ broker }) => broker.disconnect(), CLOSE_MS);
    for (const { broker } of this.#members) broker.keepAgentAlive(false);
  }

  #pump(): void {
    if (this.#waiting.size === 0) return;
    this.#current ??= this.#startMember();
    while (this.#current.ready) {
      const pending = this.#waiting.next(this.#hasRoom());
      if (pending === undefined) return;
      this.#begin(this.#current, pending);
    }
  }

  #hasRoom(): boolean {
    const abandoned = this.abandoned();
    const running = this.#runningNow().length - abandoned;
    return running < (this.#start.runningMax ?? RUNNING_MAX) && abandoned < ABANDONED_MAX;
  }

  #begin(member: Member, pending: Pending): void {
    clearTimeout(member.idleTimer);
    member.running.set(pending.id, pending);
    pending.timer = setTimeout(() => {
      pending.overdue = true;
      // Its broker has done so, unless that was killed itself: then nobody else would end it.
      if (pending.tool !== undefined) killTool(pending.tool);
      this.#pump();
    }, pending.request.deadlineMs + KILL_MS);
    pending.silentTimer = setTimeout(() => this.#giveUp(member), this.#start.silentMsMax ?? SILENT_MS_MAX);
    member.broker.keepAgentAlive(true);
    member.broker.send({ kind: 'tool', id: pending.id, request: pending.request });
  }

  #startMember(): Member {
    const member: Member = {
      ready: false,
      running: new Map(),
      idleTimer: undefined,
      broker: startBroker('tool', this.#start, {
        onReady: () => {
          member.ready = true;
          this.#members.started();
          this.#pump();
        },
        onSign: (id) => clearTimeout(member.running.get(id)?.silentTimer),
        onBegun: (id, tool) => {
          const pending = member.running.get(id);
          if (pending === undefined) return;
          clearTimeout(pending.silentTimer);
          pending.tool = tool;
        },
        onSettled: (id, result) => this.#settled(member, id, result as ToolAnswer),
        onDeath: () => this.#died(member),
        onLastWord: () => this.#lookAtOrphans(member),
        onEnded: () => this.#ended(member),
      }),
    };
    this.#members.add(member);
    return member;
  }

  #settled(member: Member, id: number, answer: ToolAnswer): void {
    const pending = member.running.get(id);
    if (pending === undefined) return;
    member.running.delete(id);
    clearTimeout(pending.timer);
    clearTimeout(pending.silentTimer);
    if (member.running.size === 0) member.broker.keepAgentAlive(false);
    pending.settle(answer);
    this.#pump();
    if (member.running.size === 0) this.#rest(member);
  }

  #rest(member: Member): void {
    member.idleTimer = setTimeout(() => {
      if (this.#current === member) this.#current = undefined;
      member.broker.disconnect();
    }, this.#start.idleMsMax ?? IDLE_MS_MAX).unref();
  }

  /** One that was stopped, or hangs. Its tools run on; it may never end, and others are not to wait for that. */
  #giveUp(member: Member): void {
    if (this.#current === member) this.#current = undefined;
    member.broker.kill();
    this.#pump();
  }

  /** Its tools may still run; new ones need a new broker at once. */
  #died(member: Member): void {
    if (this.#current === member) this.#current = undefined;
    if (!member.ready && this.#members.failedToStart()) this.#refuseAll();
    this.#pump();
  }

  /** Each by itself: that all have ended, as the lifeline tells, may come hours after most of them have. */
  #lookAtOrphans(member: Member): void {
    for (const pending of [...member.running.values()])
      if (pending.tool !== undefined && !isRunning(pending.tool)) this.#lose(member, pending);
    if (member.running.size > 0) setTimeout(() => this.#lookAtOrphans(member), ORPHAN_LOOK_MS).unref();
  }

  #ended(member: Member): void {
    this.#members.ended(member);
    for (const pending of [...member.running.values()]) this.#lose(member, pending);
    clearTimeout(member.idleTimer);
    this.#pump();
  }

  #lose(member: Member, { id, request }: Pending): void {
    this.#settled(member, id, failTool(request, 'broker-lost', 'unknown'));
  }

  #refuseAll(): void {
    for (const { request, settle } of this.#waiting.takeAll())
      settle(failTool(request, 'broker-lost', 'none'));
  }

  #runningNow(): readonly Pending[] {
    return [...this.#members].flatMap(({ running }) => [...running.values()]);
  }
}

function failTool({ tool }: ToolRequest, code: FailureCode, effect: Effect): Result<never> {
  return fail({
    code,
    message: `${tool} ${code === 'deadline-passed' ? 'waited too long' : 'lost its broker'}`,
    effect,
  });
}
