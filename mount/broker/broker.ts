/**
 * The child process that touches the machine for the agent: it may hang or be killed, the agent may not
 * (MF-5).
 */
import {
  BROKER_DESCRIPTOR,
  type BrokerKind,
  type FromBroker,
  IMMUTABLE_MOUNT_POINTS,
  type Parse,
  type ToBroker,
} from './broker-protocol.ts';
import { assert } from '../failure.ts';
import { runOnLoop } from './device/loop-pin.ts';
import { performPathCall } from './dispatch.ts';
import { protectMountPointsFromNowOn } from './file/mount-point.ts';
import { holdForTools } from './path/short-tool.ts';
import { sealProcess } from './process-seal.ts';
import { toolProcessOf } from './tool-process.ts';
import type { runTool, ToolRequest } from '../tool.ts';
import type { AnyTransition } from '../transition.ts';

/** What every tool has a copy of. */
const INHERITED = [BROKER_DESCRIPTOR.lifeline, BROKER_DESCRIPTOR.helpersLock];
const SIGN_MS = 250;
/** The agent: whoever has it as child process when it has gone is another. */
const AGENT_PID = process.ppid;
/** What is missing or in use is an answer here, and comes as an exception: each frame of its stack costs its time. */
const STACK_FRAMES_MAX = 3;

/** What a broker has beside what all have: each is loaded by the kind of broker that needs it, and has to be there. */
export interface BrokerParts {
  /** The transitions that a path broker can run. */
  readonly loadTransitions?: () => Promise<readonly AnyTransition[]>;
  /** What a tool broker runs tools with: there are several path brokers, and execa costs 14 MB. */
  readonly loadTool?: () => Promise<typeof runTool>;
  /** What a parser broker parses with. */
  readonly loadParse?: () => Promise<Parse>;
}

/**
 * Serves until the agent closes the channel or dies; then ends, a tool broker once its tools have ended.
 * The kind is the last argument of the command line, what else there is to know stands before it; the parent must have
 * opened an IPC channel.
 */
export async function runBroker({ loadTransitions, loadTool, loadParse }: BrokerParts): Promise<void> {
  sealProcess();
  const kind = parseKind(process.argv.at(-1));
  assert(process.send !== undefined, 'a broker is started with an IPC channel');
  // The agent may have gone while this file was loading.
  if (!process.connected) process.exit(0);
  // The title has at most 15 bytes, which is what the kernel shows.
  process.title = `mooring-${kind}`;
  // The modes asked for are exact.
  process.umask(0);
  // The terminal of a hand-started agent signals its whole process group; what runs must end by itself.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  if (process.argv.includes(IMMUTABLE_MOUNT_POINTS)) protectMountPointsFromNowOn();
  if (kind === 'path') servePaths(await loadTransitions?.());
  else if (kind === 'tool') serveTools(await loadTool?.());
  else serveParser(await loadParse?.());
  say({ kind: 'ready' });
}

function parseKind(text: string | undefined): BrokerKind {
  assert(
    text === 'path' || text === 'tool' || text === 'parser',
    `a broker is a path, tool or parser broker, not ${JSON.stringify(text)}`,
  );
  return text;
}

function servePaths(known: readonly AnyTransition[] | undefined): void {
  assert(known !== undefined, 'this program knows the transitions');
  Error.stackTraceLimit = STACK_FRAMES_MAX;
  const transitions = new Map(known.map((one) => [one.name, one]));
  holdForTools(INHERITED);
  process.on('disconnect', () => process.exit(0));
  process.on('message', (message: ToBroker) => {
    assert(message.kind === 'path', 'a path broker gets path calls');
    endWithoutAgent();
    const { id, call } = message;
    say({ kind: 'settled', id, result: performPathCall(call, signsOf(id), transitions) });
  });
}

/**
 * The channel tells that the agent has gone only behind all that it has asked for, and after a call: the next agent may
 * have set up there what it wants by then.
 */
function endWithoutAgent(): void {
  if (isAgentGone()) process.exit(0);
}

function isAgentGone(): boolean {
  return process.ppid !== AGENT_PID;
}

/** A call asks for a sign as often as it likes; the channel takes each at once, though the call is synchronous. */
function signsOf(id: number): (seen: number) => void {
  let nextMs = performance.now() + SIGN_MS;
  return (seen) => {
    endWithoutAgent();
    if (performance.now() < nextMs) return;
    nextMs = performance.now() + SIGN_MS;
    say({ kind: 'sign', id, seen });
  };
}

function serveTools(run: typeof runTool | undefined): void {
  assert(run !== undefined, 'this program can run tools');
  let running = 0;
  // When the agent has gone nobody reads what Node.js warns of: that must not end the broker, and by it a tool.
  process.stderr.on('error', () => {});
  process.on('disconnect', () => {
    if (running === 0) process.exit(0);
  });
  process.on('message', (message: ToBroker) => {
    assert(message.kind === 'tool', 'a tool broker gets tool calls');
    // That the channel is closed comes next, and ends it when no tool runs.
    if (isAgentGone()) return;
    running += 1;
    const { id, request } = message;
    // It may wait for its loop device before it begins.
    if (request.onLoop !== undefined) say({ kind: 'sign', id, seen: 0 });
    const begin = (pinned: ToolRequest) => run(pinned, (pid) => sayBegun(id, pid));
    void runOnLoop(begin, { ...request, inheritedDescriptors: INHERITED }).then((result) => {
      running -= 1;
      say({ kind: 'settled', id, result });
      if (running === 0 && !process.connected) process.exit(0);
    });
  });
}

/** In case that this broker is gone at the deadline of the tool. */
function sayBegun(id: number, pid: number): void {
  const tool = toolProcessOf(pid);
  if (tool !== undefined) say({ kind: 'begun', id, tool });
}

function serveParser(parse: Parse | undefined): void {
  assert(parse !== undefined, 'this program can parse');
  let answer: readonly unknown[] = [];
  let next = 0;
  process.on('disconnect', () => process.exit(0));
  process.on('message', (message: ToBroker) => {
    assert(message.kind === 'parse' || message.kind === 'more', 'a parser broker gets texts');
    if (message.kind === 'parse') {
      answer = parse(message.request);
      next = 0;
    }
    const part = answer[next];
    next += 1;
    const last = next >= answer.length;
    // Nothing of a text is kept when it was answered.
    if (last) answer = [];
    say({ kind: 'part', id: message.id, part, last });
  });
}

/** To an agent that is gone nothing needs to be said. */
function say(message: FromBroker): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}
