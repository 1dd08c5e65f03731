/**
 * One agent per root, and none beside the helpers of a dead one: flock(2) locks on open file descriptions of our own.
 *
 * Because: node has no flock(2), but a lock belongs to the open file description, so flock(1) can take it on a
 * descriptor that it inherits from us, and it stays when flock(1) has ended, until the last copy is closed.
 */
import { spawn } from 'node:child_process';
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { codeOfErrno, errnoOf, failErrno } from '../errno.ts';
import { done, fail, ok, type Result } from '../failure.ts';
import type { AbsolutePath } from '../host.ts';
import { findTool } from '../path-tool.ts';

export interface InstanceLock {
  /** The lock also goes with the process, however it ends. */
  release(): void;
}

export interface HelpersLock {
  /** To be inherited by every broker and tool: the lock is free when the last of them has ended. */
  readonly descriptor: number;
  /** A helper of an earlier agent was still running when the wait was over: what it does may still take effect. */
  readonly lingering: boolean;
  release(): void;
}

/** What a killed agent was about to start has its lock until it is another program; `mooring plan`, for a moment. */
const INSTANCE_WAIT_S = 2;
const HELPERS_WAIT_S = 2;
const PID_BYTES_MAX = 32;
/** flock(1): the exit code for "somebody else has it". */
const HELD = 1;

/**
 * Takes the lock file, whose directory must exist, and writes our pid into it. `already-running`, after two seconds,
 * names the pid in it as blocker, where there was room for one. The file is never deleted: a lock on a file without a
 * name would exclude nobody.
 */
export async function takeInstanceLock(path: AbsolutePath): Promise<Result<InstanceLock>> {
  const opened = openLockFile(path);
  if (!opened.ok) return opened;
  const descriptor = opened.value;
  const taken = await flock(descriptor, ['--exclusive', '--timeout', String(INSTANCE_WAIT_S)]);
  if (!taken.ok || !taken.value) {
    // Held is held, whether its pid can be read or not.
    const holder = readHolder(descriptor, path);
    const blocker = holder.ok ? holder.value : undefined;
    closeSync(descriptor);
    if (!taken.ok) return taken;
    const message = `another agent has the lock ${path}`;
    return fail({
      code: 'already-running',
      message,
      effect: 'none',
      ...(blocker === undefined ? {} : { blocker }),
    });
  }
  const written = writePid(descriptor, path);
  if (written.ok) return ok({ release: () => closeSync(descriptor) });
  closeSync(descriptor);
  return written;
}

/**
 * Who has the lock, as `pid <pid>` where it says so; undefined: nobody. It is not taken for longer than a moment, nor
 * its file made.
 */
export async function instanceLockHolder(path: AbsolutePath): Promise<Result<string | undefined>> {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    return errnoOf(error) === 'ENOENT' ? ok(undefined) : failErrno(error, `open ${path}`, 'none');
  }
  // Shared: two that ask at one time do not take each other for an agent.
  const free = await flock(descriptor, ['--shared', '--nonblock']);
  const holder = readHolder(descriptor, path);
  closeSync(descriptor);
  if (!free.ok) return free;
  if (free.value) return holder.ok ? ok(undefined) : holder;
  if (!holder.ok) return ok('an agent whose pid cannot be read');
  return ok(holder.value ?? 'an agent that could not write its pid');
}

/**
 * Waits, at most 2 s, until the brokers and tools of an earlier agent have ended, and takes the lock that ours will
 * hold. Call it with the instance lock taken, and before the first effect.
 */
export async function waitForHelpers(path: AbsolutePath): Promise<Result<HelpersLock>> {
  const opened = openLockFile(path);
  if (!opened.ok) return opened;
  const descriptor = opened.value;
  const alone = await flock(descriptor, ['--exclusive', '--timeout', String(HELPERS_WAIT_S)]);
  // Shared in any case: our own helpers never wait for each other, nor for those that linger.
  const shared = alone.ok ? await flock(descriptor, ['--shared', '--nonblock']) : alone;
  if (alone.ok && shared.ok && shared.value) {
    return ok({ descriptor, lingering: !alone.value, release: () => closeSync(descriptor) });
  }
  closeSync(descriptor);
  if (!shared.ok) return shared;
  return fail({
    code: 'already-running',
    message: `another agent waits for the lock ${path}`,
    effect: 'none',
  });
}

/** Undefined: it says no pid, as on a disk that was full. */
function readHolder(descriptor: number, path: AbsolutePath): Result<string | undefined> {
  try {
    const pid = readFileSync(descriptor, 'latin1').slice(0, PID_BYTES_MAX).trim();
    return ok(/^\d+$/.test(pid) ? `pid ${pid}` : undefined);
  } catch (error) {
    return failErrno(error, `read ${path}`, 'none');
  }
}

function openLockFile(path: AbsolutePath): Result<number> {
  try {
    return ok(openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600));
  } catch (error) {
    return failErrno(error, `open ${path}`, 'none');
  }
}

/** In place, which a full disk lets. The pid is for people: where there is no room even so, the lock holds without. */
function writePid(descriptor: number, path: AbsolutePath): Result<void> {
  const text = `${process.pid}\n`;
  try {
    try {
      writeSync(descriptor, text, 0);
    } catch (error) {
      if (codeOfErrno(errnoOf(error)) !== 'disk-full') throw error;
      // Nor is the pid of who went before taken for ours.
      ftruncateSync(descriptor);
      return done;
    }
    ftruncateSync(descriptor, text.length);
    return done;
  } catch (error) {
    return failErrno(error, `write ${path}`, 'none');
  }
}

/** False when somebody else has it. Not runTool: this runs in the agent, which does not load execa. */
async function flock(descriptor: number, options: readonly string[]): Promise<Result<boolean>> {
  const file = findTool('flock');
  if (file === undefined) return fail({ code: 'tool-missing', message: 'flock is missing', effect: 'none' });
  const child = spawn(file, [...options, '3'], {
    cwd: '/',
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
  });
  return new Promise((resolve) => {
    child.once('error', (error) =>
      resolve(fail({ code: 'input-output', message: `flock: ${errnoOf(error)}`, effect: 'none' })),
    );
    child.once('exit', (code) => {
      if (code === 0 || code === HELD) resolve(ok(code === 0));
      else resolve(fail({ code: 'input-output', message: `flock ended with ${code}`, effect: 'none' }));
    });
  });
}
