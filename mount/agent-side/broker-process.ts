/** The agent's handle on one broker child. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import type { BrokerKind, BrokerPrograms, FromBroker, ToBroker } from '../broker/broker-protocol.ts';
import type { ToolProcess } from '../broker/tool-process.ts';
import { assert, type Result } from '../failure.ts';
import { refuseWithoutDescriptors } from '../path-tool.ts';
import { DEAF_NODE_FLAGS } from '../process/node-start.ts';

export interface BrokerStart {
  /**
   * How a broker is started, without its kind: `[process.execPath, bundle, 'broker']`. The first entry is node; flags
   * that keep it small and deaf are put behind it.
   */
  readonly command: readonly string[];
  /**
   * What runs in place of all of the command but node itself. Such a program has nothing that its kind does not need,
   * and stays the agent's own when the file that the agent was started from is replaced by a newer version.
   */
  readonly programs?: BrokerPrograms | undefined;
  /** The helpers lock of instance-lock.ts: held until the last broker and the last tool have ended. */
  readonly helpersDescriptor?: number | undefined;
  /** What it is told on its command line, before its kind. */
  readonly words?: readonly string[] | undefined;
  /** How large its JavaScript heap may be; it dies of SIGABRT when it needs more. */
  readonly heapMbMax?: number;
  /**
   * Told what it said on standard error, or the end of that, when it is gone. Without it, standard error is inherited:
   * each such child makes a pipe or socket blocking when it starts, for this process, too.
   */
  readonly onLastWords?: ((words: string) => void) | undefined;
}

export interface BrokerEvents {
  /** It listens. */
  readonly onReady: () => void;
  readonly onSettled: (id: number, result: Result<unknown>) => void;
  /** A sign of life of a long call. */
  readonly onSign?: (id: number, seen: number) => void;
  /** The tool of a call runs. */
  readonly onBegun?: (id: number, tool: ToolProcess) => void;
  /** A part of the answer of a parser. */
  readonly onPart?: (id: number, part: unknown, last: boolean) => void;
  /** Once, when the process is gone, by which signal; tools that it started may still run. */
  readonly onDeath?: (signal: NodeJS.Signals | null) => void;
  /** Once, after onDeath: every answer it gave has been delivered; tools that it started may still run. */
  readonly onLastWord?: () => void;
  /** Once, after onLastWord: every tool it started has ended too. */
  readonly onEnded: () => void;
}

export interface BrokerProcess {
  /** Undefined when it could not be started, and when the process is gone: anybody may have the number by then. */
  readonly pid: number | undefined;
  send(message: ToBroker): void;
  /** SIGKILL; onEnded comes when the kernel lets go of it, which for uninterruptible sleep may be never. */
  kill(): void;
  /** Closes the channel: it ends by itself when what it runs has ended. */
  disconnect(): void;
  /** Whether it keeps the agent process from exiting; at first it does not. */
  keepAgentAlive(keep: boolean): void;
}

const BROKER_ENVIRONMENT = {
  PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  // What malloc(3) of glibc is told (mallopt(3)): a broker gives back what it needed for one large answer. Left alone,
  // the one that read a journal kept 11 MB of it.
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: '131072',
  MALLOC_MMAP_THRESHOLD_: '131072',
} as const;
/** A broker handles one small message at a time: a small young generation costs nothing and saves memory. */
export const NODE_FLAGS = ['--max-semi-space-size=1', '--v8-pool-size=1'] as const;
const FROM_STANDARD_INPUT = ['--input-type=module', '-'] as const;
const HEAP_MB_MAX = 128;
/**
 * Who owns brokers starts one at a time, so one that is stopped before it listens would be the last. Far more than a
 * start takes on a machine without a processor for it: killed too early it would only have to begin anew.
 */
const START_MS_MAX = 120_000;
/** A start takes so many descriptors at most: four pipes, both ends of each, and one more that tells how it went. */
const DESCRIPTORS_MIN = 10;
/** The end of a trace tells what it was; before it Node.js prints the line of a bundle, which may be all of it. */
const LAST_WORDS_BYTES_MAX = 1_024;

/** Starts a child; failing to start is an end like any other. */
export function startBroker(kind: BrokerKind, start: BrokerStart, events: BrokerEvents): BrokerProcess {
  const program = start.programs?.[kind];
  const child = spawnBroker(kind, start, program);
  if (child === undefined) {
    process.nextTick(tellNeverStarted, events);
    return NEVER_STARTED;
  }
  // One that ends before it has read itself is told by its end.
  child.stdin?.on('error', () => {});
  child.stdin?.end(program);
  // One that another process has left without descriptors meanwhile (ENFILE) has none at all.
  const stdio = child.stdio as ChildProcess['stdio'] | undefined;
  const lifeline = (stdio?.[4] ?? null) as Socket | null;
  const startTimer = setTimeout(() => broker.kill(), START_MS_MAX).unref();
  child.once('exit', () => clearTimeout(startTimer));
  child.on('message', (message) => {
    const said = message as FromBroker;
    if (said.kind === 'ready') {
      clearTimeout(startTimer);
      events.onReady();
    } else if (said.kind === 'sign') events.onSign?.(said.id, said.seen);
    else if (said.kind === 'begun') events.onBegun?.(said.id, said.tool);
    else if (said.kind === 'part') events.onPart?.(said.id, said.part, said.last);
    else events.onSettled(said.id, said.result);
  });
  watchEnd(child, lifeline, events);
  const said = (stdio?.[2] ?? null) as Socket | null;
  if (said !== null && start.onLastWords !== undefined) keepLastWords(said, start.onLastWords);
  const broker: BrokerProcess = {
    get pid() {
      return child.exitCode === null && child.signalCode === null ? child.pid : undefined;
    },
    send: (message) => {
      // An error here is an end: onEnded settles what was sent.
      if (child.connected) child.send(message, () => {});
    },
    kill: () => {
      // Until its error is told, Node.js signals a child that never started by an id that nobody has set: with 0 there
      // it kills our whole process group.
      if (child.pid !== undefined) child.kill('SIGKILL');
    },
    disconnect: () => {
      if (child.connected) child.disconnect();
    },
    keepAgentAlive: (keep) => hold(child, lifeline, keep),
  };
  broker.keepAgentAlive(false);
  return broker;
}

/** Undefined: not started, as with EMFILE and with ENOMEM, for which Node.js throws; it has an event for the rest. */
function spawnBroker(
  kind: BrokerKind,
  start: BrokerStart,
  program: string | undefined,
): ChildProcess | undefined {
  const [node, ...rest] = start.command;
  assert(node !== undefined, 'a broker command has at least one word');
  if (!refuseWithoutDescriptors(node, DESCRIPTORS_MIN).ok) return undefined;
  const heap = `--max-old-space-size=${start.heapMbMax ?? HEAP_MB_MAX}`;
  const source = program === undefined ? rest : FROM_STANDARD_INPUT;
  const words = [...DEAF_NODE_FLAGS, ...NODE_FLAGS, heap, ...source, ...(start.words ?? []), kind];
  try {
    return spawn(node, words, {
      cwd: '/',
      // Cleared: NODE_OPTIONS and secrets of the agent's environment stop here.
      env: BROKER_ENVIRONMENT,
      stdio: [
        program === undefined ? 'ignore' : 'pipe',
        'ignore',
        // A parser that runs out of memory says what it was doing: with a secret, it may be.
        kind === 'parser' ? 'ignore' : start.onLastWords === undefined ? 'inherit' : 'pipe',
        'ipc',
        kind === 'parser' ? 'ignore' : 'pipe',
        start.helpersDescriptor ?? 'ignore',
      ],
      serialization: 'advanced',
    });
  } catch {
    return undefined;
  }
}

const NEVER_STARTED: BrokerProcess = {
  pid: undefined,
  send: () => {},
  kill: () => {},
  disconnect: () => {},
  keepAgentAlive: () => {},
};

function tellNeverStarted({ onDeath, onEnded }: Pick<BrokerEvents, 'onDeath' | 'onEnded'>): void {
  onDeath?.(null);
  onEnded();
}

function keepLastWords(said: Socket, tell: (words: string) => void): void {
  let words = Buffer.alloc(0);
  said.unref();
  said.on('error', () => {});
  said.on('data', (chunk: Buffer) => {
    words = Buffer.from(Buffer.concat([words, chunk]).subarray(-LAST_WORDS_BYTES_MAX));
  });
  said.once('close', () => {
    if (words.length > 0) tell(words.toString('utf8'));
  });
}

function hold(child: ChildProcess, lifeline: Socket | null, keep: boolean): void {
  if (keep) {
    child.ref();
    child.channel?.ref();
    lifeline?.ref();
  } else {
    child.unref();
    child.channel?.unref();
    lifeline?.unref();
  }
}

/** Calls `onEnded` when the process is gone, its channel is read to the end, and its lifeline is closed. */
function watchEnd(child: ChildProcess, lifeline: Socket | null, events: BrokerEvents): void {
  if (child.pid === undefined) {
    child.once('error', () => tellNeverStarted(events));
    return;
  }
  const { onDeath, onLastWord, onEnded } = events;
  let words = 2;
  let ends = lifeline === null ? 1 : 2;
  const endOne = (): void => {
    ends -= 1;
    if (ends === 0) onEnded();
  };
  const sayOne = (): void => {
    words -= 1;
    if (words > 0) return;
    onLastWord?.();
    endOne();
  };
  child.once('exit', (_code, signal) => onDeath?.(signal));
  child.on('error', () => {
    // A kill that came too late, or a message to a broker that is ending: its end is reported by itself.
  });
  child.once('exit', sayOne);
  child.once('disconnect', sayOne);
  lifeline?.once('close', endOne);
  lifeline?.on('error', () => {});
  // Nothing is ever said on it; reading is how its end is seen.
  lifeline?.resume();
}
