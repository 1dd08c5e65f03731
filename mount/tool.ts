/** Running one system tool to its real end. The only importer of execa. */
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { execa } from 'execa';
import { failErrno } from './errno.ts';
import { assert, fail, ok, type Result } from './failure.ts';
import { findTool, refuseWithoutDescriptors, TOOL_DIRECTORIES } from './path-tool.ts';
import { printable } from './text/printable.ts';

export interface ToolRequest {
  /** A bare name such as `mount`; looked up in the system directories only, never in the caller's PATH. */
  readonly tool: string;
  readonly argv: readonly string[];
  /** Counted from the start of the tool. Then it and its process group get SIGKILL. */
  readonly deadlineMs: number;
  /** Written to standard input; without it standard input is /dev/null. */
  readonly input?: string;
  /** Standard input, too, for a tool that takes a regular file only: it has no name and is gone with the tool. */
  readonly inputFile?: string;
  /** Become descriptors 3, 4, ... of the tool, in this order. */
  readonly inheritedDescriptors?: readonly number[];
  /** A broker runs it only while this loop device (`loop3`) shows what is, or was, at the path, or has its mark. */
  readonly onLoop?: { readonly name: string; readonly path: string; readonly mark: string };
  /** Added to the otherwise cleared environment; never a secret. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface ToolReport {
  /** Undefined when a signal ended it. */
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  /** The deadline passed first: whatever the exit code says, the effect is doubtful. */
  readonly deadlinePassed: boolean;
  /** The first 64 KiB of each. */
  readonly stdout: string;
  readonly stderr: string;
}

const TOOL_ENVIRONMENT = { PATH: TOOL_DIRECTORIES.join(':'), LC_ALL: 'C' } as const;
/** A start takes at most so many descriptors: a nameless file, three pipes, and one more that tells how it went. */
const DESCRIPTORS_MIN = 9;
const OUTPUT_BYTES_MAX = 65_536;
/** How long output is awaited after the exit, when something the tool left behind still holds its pipes. */
const DRAIN_MS = 50;

/**
 * Runs a tool without a shell, as the leader of its own process group, in `/`.
 *
 * Guarantees: settles when the child has ended, however long a kill takes (a child in uninterruptible sleep keeps it
 * open), and does not wait for daemons it left behind that hold its pipes. A non-zero exit is a report, not a failure.
 * `onBegun` is told of the child before anybody can have waited for it.
 * Errors: `tool-missing`, and `input-output` when the kernel refuses a new process or file; both with effect `none`.
 */
export async function runTool(
  request: ToolRequest,
  onBegun: (pid: number) => void = () => {},
): Promise<Result<ToolReport>> {
  const file = findTool(request.tool);
  if (file === undefined) {
    return fail({
      code: 'tool-missing',
      message: `${request.tool} is in none of ${TOOL_ENVIRONMENT.PATH}`,
      effect: 'none',
    });
  }
  // On a child without streams execa breaks: its error, for which nobody listens, would end this process and its tools.
  const spare = refuseWithoutDescriptors(file, DESCRIPTORS_MIN);
  if (!spare.ok) return spare;
  const input = request.inputFile === undefined ? undefined : makeUnnamedFile(request.inputFile);
  if (input?.ok === false) return input;
  const child = start(file, request, input?.value);
  // The tool has a copy.
  if (input !== undefined) closeSync(input.value);
  // execa's own promise waits for the pipes; the exit event is what counts.
  const settled = child.then((outcome) => outcome);
  const { pid } = child;
  if (pid === undefined) {
    const outcome = await settled;
    return fail({
      code: 'input-output',
      message: `cannot start ${file}: ${outcome.code ?? 'unknown'}`,
      effect: 'none',
    });
  }
  onBegun(pid);
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  let deadlinePassed = false;
  const deadline = setTimeout(() => {
    deadlinePassed = true;
    killGroup(pid);
  }, request.deadlineMs);
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const [exitCode, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.once('exit', (code, name) => resolve([code, name])),
  );
  clearTimeout(deadline);
  await drained(closed);
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
  return ok({
    exitCode: exitCode ?? undefined,
    signal: signal ?? undefined,
    deadlinePassed,
    stdout: stdout(),
    stderr: stderr(),
  });
}

/** Its type is execa's own, which no name of execa's says as well. */
function start(file: string, request: ToolRequest, inputDescriptor: number | undefined) {
  // execa's types know 0 as standard input and the descriptors 3 to 9 only; it passes any.
  const standardInput = inputDescriptor as 0 | undefined;
  const inherited = (request.inheritedDescriptors ?? []) as readonly 3[];
  return execa(file, request.argv, {
    cwd: '/',
    env: { ...TOOL_ENVIRONMENT, ...request.environment },
    extendEnv: false,
    stdio: [standardInput ?? (request.input === undefined ? 'ignore' : 'pipe'), 'pipe', 'pipe', ...inherited],
    ...(request.input === undefined ? {} : { input: request.input }),
    buffer: false,
    cleanup: false,
    detached: true,
    reject: false,
  });
}

/** `O_TMPFILE` of open(2), which node has no name for: a file without a name in a directory. */
const UNNAMED = constants.O_RDWR | constants.O_DIRECTORY | 0o20000000;
const UNNAMED_FILE_MODE = 0o600;
/** In memory where there is one of these, as there is on any machine that systemd runs. */
const UNNAMED_FILE_DIRECTORIES = ['/run', '/dev/shm', '/tmp', '/var/tmp'] as const;

/** Its descriptor, at the beginning of the content. */
function makeUnnamedFile(content: string): Result<number> {
  let refused: Result<never> | undefined;
  for (const directory of UNNAMED_FILE_DIRECTORIES) {
    try {
      return ok(writeUnnamed(openSync(directory, UNNAMED, UNNAMED_FILE_MODE), content));
    } catch (error) {
      refused = failErrno(error, `a file without a name in ${directory}`, 'none');
    }
  }
  assert(refused !== undefined, 'at least one directory was tried');
  return refused;
}

function writeUnnamed(descriptor: number, content: string): number {
  try {
    const bytes = Buffer.from(content);
    // Each write has a position of its own, so the tool reads from the beginning.
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at, at);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

const WORDS_BYTES_MAX = 256;

/** How a tool ended and the beginning of what it said, in one printable line: `umount exit 32: target is busy`. */
export function endOf(tool: string, { exitCode, signal, stderr }: ToolReport): string {
  const words = printable(stderr.replace(/\s+/g, ' ').trim(), WORDS_BYTES_MAX);
  return `${tool} ${signal ?? `exit ${exitCode}`}: ${words}`;
}

/** Keeps the first bytes and reads on, so that a talkative tool is never blocked. */
function collect(stream: Readable | null): () => string {
  const chunks: Buffer[] = [];
  let room = OUTPUT_BYTES_MAX;
  stream?.on('data', (chunk: Buffer) => {
    if (room === 0) return;
    const kept = chunk.subarray(0, room);
    chunks.push(kept);
    room -= kept.length;
  });
  stream?.on('error', () => {
    // A pipe that breaks has no more to say; the exit code is the report.
  });
  return () => Buffer.concat(chunks).toString('utf8');
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Gone already: its exit event is on the way.
  }
}

async function drained(closed: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const grace = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, DRAIN_MS);
  });
  await Promise.race([closed, grace]);
  clearTimeout(timer);
}
