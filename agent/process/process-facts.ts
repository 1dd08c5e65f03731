/** What only the process itself can do: its files and environment before there is a host. */
import { closeSync, lstatSync, mkdirSync, openSync, readFileSync, readlinkSync } from 'node:fs';
import { failErrno } from '../../mount/errno.ts';
import { done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, parseAbsolutePath } from '../../mount/host.ts';
import type { Log } from '../../mount/process/log.ts';
import { createLogOutput } from '../../mount/process/log-output.ts';
import type { Config } from '../config/config.ts';
import { DEFAULT_CONFIG_FILE } from '../config/setting.ts';

/** Undefined when no file was named and the usual one is not there. */
export function readConfigText(file: string | undefined): Result<string | undefined> {
  try {
    return ok(readFileSync(file ?? DEFAULT_CONFIG_FILE, 'utf8'));
  } catch (error) {
    const code = errorCode(error);
    if (file === undefined && code === 'ENOENT') return ok(undefined);
    return fail({ code: 'source-unreadable', message: `cannot be read: ${code}`, effect: 'none' });
  }
}

export async function createProcessLog({ format, level }: Config['log']): Promise<Log> {
  const { createLog } = await import('../../mount/process/journal-log.ts');
  const chosen = format === 'auto' ? (process.stderr.isTTY ? 'human' : 'json') : format;
  const log: Log = createLog({
    format: chosen === 'human' ? 'human' : 'json',
    level,
    priorities: process.env['JOURNAL_STREAM'] !== undefined,
    // As an error it is told at every level.
    write: createLogOutput((lines) => log.error('log lines dropped', { lines })),
    wallMs: () => Date.now(),
  });
  return log;
}

/** A descriptor for brokers that are to hold no lock. */
export function openNothing(): { readonly descriptor: number; readonly close: () => void } {
  const descriptor = openSync('/dev/null', 'r');
  return { descriptor, close: () => closeSync(descriptor) };
}

/** sd_watchdog_enabled(3). */
export function watchdogMs(): number | undefined {
  const { WATCHDOG_USEC: microseconds = '', WATCHDOG_PID: pid } = process.env;
  const meant = pid === undefined || pid === String(process.pid);
  return meant && /^[1-9]\d{0,15}$/.test(microseconds) ? Number(microseconds) / 1_000 : undefined;
}

export function mountNamespace(subject: 'self' | '1'): Result<string> {
  try {
    return ok(readlinkSync(`/proc/${subject}/ns/mnt`));
  } catch (error) {
    return fail({ code: 'permission-denied', message: errorCode(error), effect: 'none' });
  }
}

export function makeStateDirectory(directory: AbsolutePath): Result<void> {
  try {
    // 0750 all the way, as the brokers make directories.
    const umask = process.umask(0o027);
    mkdirSync(directory, { recursive: true });
    process.umask(umask);
    for (let end = directory.length; end > 0; end = directory.lastIndexOf('/', end - 1)) {
      const part = parseAbsolutePath(directory.slice(0, end));
      if (part === undefined || lstatSync(part).isDirectory()) continue;
      const message = `${part} on the way to the root is not a directory`;
      return fail({ code: 'path-unsafe', message, effect: 'none' });
    }
    return done;
  } catch (error) {
    return failErrno(error, `make directory ${directory}`, 'none');
  }
}

/** With what would be right, where what is denied is denied to somebody who is not root. */
export function withRootAdvised(failure: Failure): Failure {
  if (failure.code !== 'permission-denied' || process.geteuid?.() === 0) return failure;
  return { ...failure, message: `${failure.message}; run it as root` };
}

function errorCode(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : String(error);
}

/** The first one; a second, from somebody impatient, ends the process at once. */
export function nextStopSignal(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (asked) process.kill(process.pid, 'SIGKILL');
        asked = true;
        resolve(signal);
      });
    }
  });
}
