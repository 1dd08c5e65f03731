/** What a process does first, so that nobody comes in and what it knows does not get out. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { url as debuggerUrl } from 'node:inspector';
import { findTool } from '../path-tool.ts';

const PRLIMIT_MS_MAX = 5_000;

/** Call it before anything else. With the flags of node-start.ts there was no moment before. */
export function sealProcess(): void {
  // Node.js opens its debugger on this signal, as long as nobody else listens for it.
  process.on('SIGUSR1', () => {});
  leaveNoMemoryInCores();
}

/** Inherited by children. The limit does not hold where cores are handed to a program (core(5)); this does. */
function leaveNoMemoryInCores(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0');
  } catch {
    // Said by forbidCores of those that hold secrets.
  }
}

/**
 * No core of this process, nor of any that it starts from now on, whatever limit it was started with. Call it before a
 * secret is read. What could not be done, as warnings.
 */
export function forbidCores(): readonly string[] {
  const tool = findTool('prlimit');
  // Node.js has no setrlimit(2).
  const argv = ['--core=0:0', '--pid', String(process.pid)];
  if (tool !== undefined)
    spawnSync(tool, argv, { cwd: '/', env: {}, stdio: 'ignore', timeout: PRLIMIT_MS_MAX });
  const limited = /^Max core file size +0 +0 /m.test(readOwn('limits'));
  const filtered = /^0+$/m.test(readOwn('coredump_filter'));
  return [
    ...(limited ? [] : [`a core may be written: ${tool ?? 'prlimit is missing, and it'} set no limit of 0`]),
    ...(filtered ? [] : ['a core would hold memory: /proc/self/coredump_filter cannot be set to 0']),
  ];
}

function readOwn(name: string): string {
  try {
    return readFileSync(`/proc/self/${name}`, 'utf8');
  } catch {
    return '';
  }
}

/** Why a process that is to hold secrets, or works as root, must not go on; undefined when nobody can come in. */
export function openDebugger(): string | undefined {
  const url = debuggerUrl();
  if (url === undefined) return undefined;
  return (
    `a debugger is open at ${url.replace(/\/[^/]*$/, '')}, and who connects to it is root: ` +
    'start it without --inspect, and without NODE_OPTIONS'
  );
}
