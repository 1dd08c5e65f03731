/**
 * A mount namespace of its own for one run: what a driver leaves mounted goes with it. The program is started again
 * inside; from outside it is seen to that no process of the namespace stays.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import { DEAF_NODE_FLAGS, withoutDebugger } from '../../../mount/process/node-start.ts';
import { findTool } from '../../../mount/path-tool.ts';
import { printableLines } from '../../../mount/text/printable.ts';
import { makeScratch, pause, removeScratch } from './machine.ts';

/** Holds the namespace the program was started in, so that its second life knows that it is another one. */
const OUTER = 'MOORING_DRIVE_OUTER_NAMESPACE';
const SCRATCH = 'MOORING_DRIVE_SCRATCH';
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const GONE_MS_MAX = 5_000;
const GONE_LOOK_MS = 25;
const INTERRUPTED = 130;

/** `private`: nobody else sees its mounts. `slave`: what is mounted outside on shared mounts is seen inside. */
export type Propagation = 'private' | 'slave';

/** The second life has the scratch directory that the first one made. A driver that is started does not learn of it. */
export function scratchInside(): string | undefined {
  const { [OUTER]: outer, [SCRATCH]: scratch } = process.env;
  delete process.env[OUTER];
  delete process.env[SCRATCH];
  return outer !== undefined && outer !== ownNamespace() ? scratch : undefined;
}

/** Why there can be no namespace here; undefined when there can. */
export function cannotUnshare(): string | undefined {
  if (process.getuid?.() !== 0) return 'drivers mount file systems: run it as root (sudo mooring drive …)';
  const missing = ['unshare', 'setpriv'].find((tool) => findTool(tool) === undefined);
  return missing === undefined
    ? undefined
    : `${missing} is not installed (Debian: apt-get install util-linux)`;
}

/**
 * This very command line again, inside, with a scratch directory in `base`; settles with its exit code when nothing of
 * it runs any more and the directory is gone, unless something is mounted there still.
 */
export async function runInside(propagation: Propagation, base: string | undefined): Promise<number> {
  const scratch = await makeScratch(base);
  const code = await runAgain(propagation, scratch);
  const left = await removeScratch(scratch);
  for (const one of left) process.stderr.write(printableLines(`mooring: left behind: ${one}\n`));
  return code;
}

async function runAgain(propagation: Propagation, scratch: string): Promise<number> {
  const unshare = [findTool('unshare') ?? 'unshare', '--mount', '--propagation', propagation];
  const node = [process.execPath, ...DEAF_NODE_FLAGS, ...withoutDebugger(process.execArgv)];
  const program = [...node, ...process.argv.slice(1)];
  const argv = ['--pdeathsig', 'TERM', ...unshare, ...program];
  const outer = ownNamespace();
  const child = spawn(findTool('setpriv') ?? 'setpriv', argv, {
    stdio: 'inherit',
    env: { ...process.env, [OUTER]: outer, [SCRATCH]: scratch },
  });
  const inside: { held?: HeldNamespace } = {};
  // The terminal sends its signals to both; the child says how it ended.
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
  const watch = setInterval(() => {
    const held = child.pid === undefined ? undefined : holdNamespace(child.pid, outer);
    if (held === undefined) return;
    inside.held = held;
    clearInterval(watch);
  }, GONE_LOOK_MS);
  const code = await new Promise<number>((resolve) => {
    child.once('error', () => resolve(1));
    child.once('exit', (status, signal) => resolve(status ?? (signal === 'SIGINT' ? INTERRUPTED : 1)));
  });
  clearInterval(watch);
  const { held } = inside;
  if (held === undefined) return code;
  await endProcessesIn(held.name);
  // With its last process and this descriptor the namespace and all its mounts go.
  closeSync(held.descriptor);
  return code;
}

interface HeldNamespace {
  readonly name: string;
  readonly descriptor: number;
}

/**
 * That of the process, unless it is the outer one still. The number of a namespace that has gone is given to the next
 * one at once, and we would kill the processes of a stranger: ours is held open until nothing is left to kill.
 */
function holdNamespace(pid: number, outer: string): HeldNamespace | undefined {
  try {
    const descriptor = openSync(`/proc/${pid}/ns/mnt`, 'r');
    const name = readlinkSync(`/proc/self/fd/${descriptor}`);
    if (name !== outer) return { name, descriptor };
    closeSync(descriptor);
  } catch {
    // It has ended.
  }
  return undefined;
}

async function endProcessesIn(namespace: string): Promise<void> {
  for (let waitedMs = 0; waitedMs < GONE_MS_MAX; waitedMs += GONE_LOOK_MS) {
    const pids = processesIn(namespace);
    if (pids.length === 0) return;
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Gone meanwhile.
      }
    }
    await pause(GONE_LOOK_MS);
  }
}

function processesIn(namespace: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number)
    .filter((pid) => namespaceOf(pid) === namespace);
}

function ownNamespace(): string {
  return readlinkSync('/proc/self/ns/mnt');
}

function namespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`);
  } catch {
    return undefined;
  }
}
