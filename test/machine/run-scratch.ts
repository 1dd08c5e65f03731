/**
 * The scratch directory of one run of the tests, and what the run left on the machine. Runs may go side by side: what
 * lies in the directory of another run, or comes from a process that has it for TMPDIR, is that one's; all else that
 * is new is ours.
 */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { attachedLoopDevices } from './loop-devices.ts';

/**
 * The directory of whatever may go beside a run of the tests is named so. It is short, because the path of a socket has
 * 107 bytes, and tests make long ones below it.
 */
export const RUN_PREFIX = 'mooring-r-';
/** As /tmp has it: helpers that gave up their rights write there, too. */
const MODE = 0o1777;

export interface RunScratch {
  /** The processes of the run have it for TMPDIR. */
  readonly directory: string;
  /** Whatever is there now and was not when the run began, by name. */
  leftBehind(): readonly string[];
  /** Takes the directory away; only when nothing was left behind, because a mount could be below it. */
  remove(): void;
}

export function createRunScratch(): RunScratch {
  const directory = mkdtempSync(join(realpathSync(tmpdir()), RUN_PREFIX));
  chmodSync(directory, MODE);
  const before = traces(directory);
  return {
    directory,
    leftBehind: () => [...traces(directory)].filter((trace) => !before.has(trace)),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** Whether a text names the directory of a run beside this one, and not that of this one. */
export function isOfAnotherRun(text: string, directory: string): boolean {
  const beside = join(dirname(directory), RUN_PREFIX);
  const runs = text
    .split(/\s/)
    .flatMap((word) => word.split(beside).slice(1))
    .map((rest) => rest.split('/')[0]);
  return runs.length > 0 && !runs.includes(directory.slice(beside.length));
}

/** What a test may not leave behind, by name. */
function traces(directory: string): Set<string> {
  const found = [...mounts(), ...loopDevices(), ...scratchIn(tmpdir()), ...scratchIn(directory)];
  return new Set([...found.filter((trace) => !isOfAnotherRun(trace, directory)), ...orphans(directory)]);
}

function mounts(): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return lines.flatMap((line) => line.split(' ')[4] ?? []).map((target) => `mount ${target}`);
}

function loopDevices(): string[] {
  return attachedLoopDevices().map(({ name, backingFile }) => `${name} ${backingFile}`);
}

function scratchIn(directory: string): string[] {
  const names = readdirSync(directory).filter((name) => name.startsWith('mooring'));
  return names.map((name) => `scratch ${join(directory, name)}`);
}

/** Processes of ours whose parent is gone. */
function orphans(directory: string): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^[0-9]+$/.test(pid)) return [];
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      const parent = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
      if (parent !== '1' || !/mooring|loopfile|broker|csi/.test(command)) return [];
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').replaceAll('\0', ' ');
      if (isOfAnotherRun(`${command} ${environment}`, directory)) return [];
      return [`process ${pid} ${command.slice(0, 120)}`];
    } catch {
      // It ended meanwhile.
      return [];
    }
  });
}
