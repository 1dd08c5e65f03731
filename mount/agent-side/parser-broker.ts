/**
 * The agent's side of the one child process that parses texts, which may be made to be slow: what one costs is bounded
 * by the processor time and the memory that it takes, so a busy machine never makes a good text a costly one.
 */
import { BrokerMembers } from './broker-members.ts';
import { type BrokerProcess, type BrokerStart, startBroker } from './broker-process.ts';
import { readProcessFile, statFieldsOf } from '../broker/process-file.ts';
import { assert } from '../failure.ts';

export interface ParserBrokerOptions extends BrokerStart {
  /** How much processor time one text may take. */
  readonly processorMsMax?: number;
}

/**
 * `exhausted`: this text takes more than it may of the one or the other, and would again. `lost`: the process ended, or
 * did not start, for a reason that need not be the text's.
 */
export type Parsing =
  | { readonly kind: 'parsed'; readonly parts: readonly unknown[] }
  | { readonly kind: 'exhausted'; readonly bound: string }
  | { readonly kind: 'lost' };

export interface ParserBroker {
  /** Starts the process, so that the first text need not wait for it. */
  begin(): void;
  /** Settles when the process has answered or ended. One at a time. */
  parse(request: unknown): Promise<Parsing>;
  /** Pids of what has not ended. */
  pids(): readonly number[];
  /** Takes no more requests; ends the process, whatever it does. */
  close(): Promise<void>;
}

/** A dense text of 1 MiB takes two to three seconds on a slow core. */
const PROCESSOR_MS_MAX = 15_000;
/** Such a text takes some 150 MB. */
const HEAP_MB_MAX = 320;
const LOST: Parsing = { kind: 'lost' };
const LOOK_MS = 500;
/** A process that gets no processor, or is stopped, is given up after that long. */
const WALL_MS_MAX = 600_000;
/** Starting it takes some 80 ms, and it takes 45 MB while it waits. */
const IDLE_MS_MAX = 60_000;
/** What grew large for one text is not kept for the next. */
const RESIDENT_BYTES_MAX = 128 * 1024 * 1024;
const PAGE_BYTES = 4_096;
/** The unit of the times in /proc: USER_HZ, the same on every Linux. */
const TICK_MS = 10;

interface Pending {
  readonly id: number;
  readonly member: Member;
  readonly parts: unknown[];
  readonly sinceMs: number;
  /** The processor time that the process had taken when it got the text. */
  readonly processorMs: number;
  readonly settle: (parsing: Parsing) => void;
  timer: NodeJS.Timeout | undefined;
  exhausted: string | undefined;
}

interface Member {
  readonly broker: BrokerProcess;
  readonly ready: Promise<boolean>;
  idleTimer: NodeJS.Timeout | undefined;
}

export function createParserBroker(options: ParserBrokerOptions): ParserBroker {
  return new OneParserBroker(options);
}

class OneParserBroker implements ParserBroker {
  readonly #options: Required<Pick<ParserBrokerOptions, 'processorMsMax' | 'heapMbMax'>> & BrokerStart;
  readonly #members = new BrokerMembers<Member>();
  #current: Member | undefined;
  #pending: Pending | undefined;
  #lastId = 0;
  #busy = false;

  constructor(options: ParserBrokerOptions) {
    this.#options = { processorMsMax: PROCESSOR_MS_MAX, heapMbMax: HEAP_MB_MAX, ...options };
  }

  begin(): void {
    if (this.#members.isClosing || this.#current !== undefined) return;
    this.#current = this.#start();
    this.#rest(this.#current);
  }

  async parse(request: unknown): Promise<Parsing> {
    assert(!this.#busy, 'one text is parsed at a time');
    if (this.#members.isClosing) return LOST;
    this.#busy = true;
    this.#current ??= this.#start();
    const member = this.#current;
    clearTimeout(member.idleTimer);
    member.broker.keepAgentAlive(true);
    try {
      if (!(await member.ready)) return LOST;
      return await this.#ask(member, request);
    } finally {
      this.#busy = false;
      this.#rest(member);
    }
  }

  pids(): readonly number[] {
    return this.#members.pids();
  }

  close(): Promise<void> {
    return this.#members.close(({ broker, idleTimer }) => {
      clearTimeout(idleTimer);
      broker.keepAgentAlive(true);
      broker.kill();
    });
  }

  #ask(member: Member, request: unknown): Promise<Parsing> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((settle) => {
      const processorMs = processorMsOf(member.broker.pid) ?? 0;
      const sinceMs = performance.now();
      const pending: Pending = {
        id,
        member,
        parts: [],
        sinceMs,
        processorMs,
        settle,
        timer: undefined,
        exhausted: undefined,
      };
      this.#pending = pending;
      this.#watch(member, pending);
      member.broker.send({ kind: 'parse', id, request });
    });
  }

  #watch(member: Member, pending: Pending): void {
    pending.timer = setTimeout(() => {
      const { processorMsMax } = this.#options;
      const usedMs = (processorMsOf(member.broker.pid) ?? 0) - pending.processorMs;
      if (usedMs > processorMsMax) pending.exhausted = `${processorMsMax / 1_000} s of processor time`;
      if (pending.exhausted === undefined && performance.now() - pending.sinceMs < WALL_MS_MAX)
        this.#watch(member, pending);
      else member.broker.kill();
    }, LOOK_MS);
  }

  #start(): Member {
    let answerReady = (_ready: boolean): void => {};
    const ready = new Promise<boolean>((resolve) => {
      answerReady = resolve;
    });
    const member: Member = {
      ready,
      idleTimer: undefined,
      broker: startBroker('parser', this.#options, {
        onReady: () => answerReady(true),
        onSettled: () => {},
        onPart: (id, part, last) => this.#took(member, id, part, last),
        onDeath: (signal) => {
          answerReady(false);
          if (this.#current === member) this.#current = undefined;
          const pending = this.#pendingOf(member);
          if (pending !== undefined && signal === 'SIGABRT')
            pending.exhausted ??= `${this.#options.heapMbMax} MB of memory`;
        },
        onEnded: () => this.#ended(member),
      }),
    };
    this.#members.add(member);
    return member;
  }

  #took(member: Member, id: number, part: unknown, last: boolean): void {
    const pending = this.#pendingOf(member);
    if (pending?.id !== id) return;
    pending.parts.push(part);
    if (last) this.#settle(pending, { kind: 'parsed', parts: pending.parts });
    else member.broker.send({ kind: 'more', id });
  }

  #ended(member: Member): void {
    this.#members.ended(member);
    clearTimeout(member.idleTimer);
    const pending = this.#pendingOf(member);
    if (pending !== undefined) {
      const { exhausted } = pending;
      this.#settle(pending, exhausted === undefined ? LOST : { kind: 'exhausted', bound: exhausted });
    }
  }

  #pendingOf(member: Member): Pending | undefined {
    return this.#pending?.member === member ? this.#pending : undefined;
  }

  #settle(pending: Pending, parsing: Parsing): void {
    this.#pending = undefined;
    clearTimeout(pending.timer);
    pending.settle(parsing);
  }

  #rest(member: Member): void {
    member.broker.keepAgentAlive(false);
    if (this.#current !== member) return;
    const isLarge = (residentBytesOf(member.broker.pid) ?? 0) > RESIDENT_BYTES_MAX;
    if (isLarge) this.#leave(member);
    else member.idleTimer = setTimeout(() => this.#leave(member), IDLE_MS_MAX).unref();
  }

  #leave(member: Member): void {
    if (this.#current === member) this.#current = undefined;
    member.broker.disconnect();
  }
}

/** User and system time of a process. */
function processorMsOf(pid: number | undefined): number | undefined {
  const fields = pid === undefined ? undefined : statFieldsOf(pid);
  const ticks = Number(fields?.[11]) + Number(fields?.[12]);
  return Number.isNaN(ticks) ? undefined : ticks * TICK_MS;
}

function residentBytesOf(pid: number | undefined): number | undefined {
  const sizes = pid === undefined ? undefined : readProcessFile(pid, 'statm');
  const pages = Number(sizes?.split(' ')[1]);
  return Number.isNaN(pages) ? undefined : pages * PAGE_BYTES;
}
