/**
 * Runs a story as root in a mount namespace of its own, and looks after it from outside: however the story ends, even
 * by SIGKILL, no process, mount, loop device or scratch directory of it stays.
 *
 * Three processes: the one the user started (any user), the guard (root), the story (root, own mount namespace).
 */
import { spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  detachLoopDevices,
  findTool,
  loopDevicesBelow,
  mountsBelow,
  processesIn,
  removedProcesses,
  untilGone,
} from './machine.ts';
import { NO_INSTALL, type Purpose, provideTools } from '../machine/system-tools.ts';
import { RUN_PREFIX } from '../machine/run-scratch.ts';

export interface Story {
  /** Names the scratch directory: `mooring-<name>-XXXXXX`. */
  readonly name: string;
  /** Its tools are there, or are installed, before it begins. */
  readonly purpose: Purpose;
  /** As the user who started it and before anything else; a sentence when it cannot go on. */
  readonly prepare: () => Promise<string | undefined>;
  /** `scratch` is an empty directory of root's on a real file system. Answers with the exit status. */
  readonly tell: (scratch: string, interrupted: AbortSignal) => Promise<number>;
}

const INSIDE = '--inside=';
const PREPARED = '--prepared';
/** What differs from user to user and changes how output looks; sudo drops it. */
const KEPT_VARIABLES = ['TERM', 'NO_COLOR', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TMPDIR', 'COLUMNS'] as const;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const INTERRUPTED = 130;

/** The exit status of the process: the story's own, or 1 when it could not be told or left something behind. */
export async function runInPrivateNamespace(story: Story): Promise<number> {
  const scratch = process.argv.find((one) => one.startsWith(INSIDE))?.slice(INSIDE.length);
  if (scratch !== undefined) return tell(story, scratch);
  const lacking = provideTools(story.purpose);
  if (lacking !== undefined) return refuse(lacking);
  const sudo = process.getuid?.() === 0 ? undefined : findTool('sudo');
  if (process.getuid?.() !== 0 && sudo === undefined) {
    return refuse(
      `The ${story.name} mounts file systems, so it needs root, and sudo is not installed: run it as root.`,
    );
  }
  if (!process.argv.includes(PREPARED)) {
    const obstacle = await story.prepare();
    if (obstacle !== undefined) return refuse(obstacle);
  }
  return sudo === undefined ? guard(story) : becomeRoot(story, sudo);
}

/** The arguments that are the story's. */
export function storyArguments(): readonly string[] {
  return process.argv
    .slice(2)
    .filter((one) => ![PREPARED, NO_INSTALL].includes(one) && !one.startsWith(INSIDE));
}

function refuse(message: string): number {
  process.stderr.write(`${message}\n`);
  return 1;
}

/** This very program once more, with the same loader. */
function again(...more: readonly string[]): readonly string[] {
  return [process.execPath, ...process.execArgv, ...process.argv.slice(1), ...more];
}

async function becomeRoot({ name }: Story, sudo: string): Promise<number> {
  const kept = KEPT_VARIABLES.flatMap((key) => {
    const value = process.env[key];
    return value === undefined ? [] : [`${key}=${value}`];
  });
  process.stdout.write(`The ${name} mounts file systems: asking sudo for root.\n`);
  const argv = [...(process.stdin.isTTY ? [] : ['-n']), '--', '/usr/bin/env', ...kept, ...again(PREPARED)];
  return (await run(sudo, argv)).code;
}

async function guard(story: Story): Promise<number> {
  const scratch = mkdtempSync(join(realpathSync(tmpdir()), `${RUN_PREFIX}${story.name}-`));
  // Should the guard be killed, the story is told to end.
  const bound = [
    '--pdeathsig',
    'TERM',
    findTool('unshare') ?? 'unshare',
    '--mount',
    '--propagation',
    'private',
  ];
  const argv = [...bound, ...again(PREPARED, `${INSIDE}${scratch}`)];
  const held = { release: () => {} };
  const outcome = await run(findTool('setpriv') ?? 'setpriv', argv, (pid) => {
    held.release = holdNamespace(pid, scratch);
  });
  const told = existsSync(namespaceFile(scratch));
  const left = await sweep(scratch, held.release);
  if (!told)
    return refuse('No mount namespace of its own: unshare(2) needs CAP_SYS_ADMIN (a privileged container).');
  for (const one of left) process.stderr.write(`left behind, removed now: ${one}\n`);
  if (left.length > 0) process.stderr.write(`The ${story.name} did not clean up after itself.\n`);
  return outcome.code === 0 && left.length > 0 ? 1 : outcome.code;
}

/** Hands signals on and outlives them: the child says how it ended. One that the terminal sent as well does no harm. */
function run(
  command: string,
  argv: readonly string[],
  onStart: (pid: number) => void = () => {},
): Promise<{ readonly code: number }> {
  const child = spawn(command, argv, { stdio: 'inherit' });
  if (child.pid !== undefined) onStart(child.pid);
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => {
    child.once('error', () => resolve({ code: 1 }));
    child.once('exit', (code, signal) => resolve({ code: signal === 'SIGINT' ? INTERRUPTED : (code ?? 1) }));
  });
}

function namespaceFile(scratch: string): string {
  return join(scratch, 'namespace');
}

const HOLD_EVERY_MS = 25;

/**
 * The number of a namespace that has gone is given to the next one at once, and whatever began beside us would be taken
 * for what the story left. So it is held open, from the time when the story is in it.
 */
function holdNamespace(pid: number, scratch: string): () => void {
  let descriptor: number | undefined;
  const look = setInterval(() => {
    if (!existsSync(namespaceFile(scratch))) return;
    clearInterval(look);
    try {
      descriptor = openSync(`/proc/${pid}/ns/mnt`, 'r');
    } catch {
      // It has ended.
    }
  }, HOLD_EVERY_MS);
  return () => {
    clearInterval(look);
    if (descriptor !== undefined) closeSync(descriptor);
  };
}

function mountNamespace(pid: number | 'self'): string {
  return readlinkSync(`/proc/${pid}/ns/mnt`);
}

async function tell(story: Story, scratch: string): Promise<number> {
  // A story told in the guard's own namespace would mount in front of everybody.
  if (mountNamespace('self') === mountNamespace(process.ppid)) return refuse(`${INSIDE}… is not for people`);
  writeFileSync(namespaceFile(scratch), mountNamespace('self'));
  const guardPid = process.ppid;
  const interruption = new AbortController();
  for (const signal of SIGNALS)
    process.on(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)));
  const code = await story.tell(scratch, interruption.signal);
  if (process.ppid !== guardPid) rmSync(scratch, { recursive: true, force: true });
  return interruption.signal.aborted ? INTERRUPTED : code;
}

/** What the story left, by name, after it was removed. The scratch directory itself is ours to remove. */
async function sweep(scratch: string, releaseNamespace: () => void): Promise<readonly string[]> {
  const left: string[] = [];
  if (existsSync(namespaceFile(scratch))) {
    const namespace = readFileSync(namespaceFile(scratch), 'utf8');
    // Helpers that lost their agent end by themselves.
    if (namespace !== mountNamespace('self')) {
      await untilGone(processesIn(namespace).map(({ pid }) => pid));
      left.push(...(await removedProcesses(processesIn(namespace))));
    }
  }
  // With its last process and this hold the namespace and all its mounts go.
  releaseNamespace();
  const devices = loopDevicesBelow(scratch);
  left.push(...devices.map((device) => `loop device ${device}`));
  await detachLoopDevices(scratch, devices);
  const mounts = mountsBelow(scratch);
  if (mounts.length > 0) return [...left, ...mounts.map(({ target }) => `mount ${target} (still there)`)];
  rmSync(scratch, { recursive: true, force: true });
  return left;
}
