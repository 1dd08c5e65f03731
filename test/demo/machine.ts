/** What the kernel says of this machine: mounts, loop devices and processes; never asked of the product. */
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createMountTable,
  type MountEntry,
  type MountTable,
  parseMountTable,
} from '../../mount/mount-table.ts';
import { runTool } from '../../mount/tool.ts';
import { attachedLoopDevices } from '../machine/loop-devices.ts';
import { signalProcess } from '../signal.ts';

const TOOL_DIRECTORIES = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'] as const;

/** The absolute path of a system tool, or undefined when it is not installed. */
export function findTool(name: string): string | undefined {
  return TOOL_DIRECTORIES.map((directory) => join(directory, name)).find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export function readMounts(): MountTable {
  const table = parseMountTable(readFileSync('/proc/self/mountinfo', 'utf8'));
  if (!table.ok) throw new Error(table.failure.message);
  return createMountTable(table.value.entries);
}

/** Mounts of this namespace at or below a directory. */
export function mountsBelow(directory: string): readonly MountEntry[] {
  return readMounts().entries.filter(
    ({ target }) => target === directory || target.startsWith(`${directory}/`),
  );
}

/** `/dev/loopN` of every loop device whose backing file is below a directory, deleted or not. From /sys alone. */
export function loopDevicesBelow(directory: string): readonly string[] {
  // On overlayfs the kernel may show the path in the upper layer; the scratch name in it is unique.
  return attachedLoopDevices()
    .filter(({ backingFile }) => backingFile.includes(`${directory}/`))
    .map(({ name }) => `/dev/${name}`);
}

const TOOL_MS = 120_000;

/** Rejects with the tool's own words when it fails. */
export async function runToEnd(tool: string, argv: readonly string[]): Promise<void> {
  const ran = await runTool({ tool, argv, deadlineMs: TOOL_MS });
  if (!ran.ok) throw new Error(ran.failure.message);
  if (ran.value.exitCode !== 0) throw new Error(`${tool} ${argv.join(' ')}: ${ran.value.stderr.trim()}`);
}

const UNMOUNT_TRIES_MAX = 2_000;

/** What a person does beside a living agent. While that looks at the path it is busy, for less than a millisecond. */
export function unmountByHand(path: string): void {
  for (let tries = 1; ; tries += 1) {
    const { status, stderr } = spawnSync('umount', ['--', path], { encoding: 'utf8' });
    if (status === 0) return;
    if (tries >= UNMOUNT_TRIES_MAX) throw new Error(`umount ${path}: ${stderr?.trim()}`);
  }
}

/**
 * Those of the devices whose file is below the directory still: what has lost it may be another test's by now. Open, a
 * device keeps its file, so that it is the one that was looked at which is detached.
 */
export async function detachLoopDevices(directory: string, devices: readonly string[]): Promise<void> {
  for (const device of devices.filter((one) => existsSync(one))) {
    const pin = openSync(device, 'r');
    try {
      if (!loopDevicesBelow(directory).includes(device)) continue;
      await runTool({ tool: 'losetup', argv: ['--detach', device], deadlineMs: TOOL_MS });
    } finally {
      closeSync(pin);
    }
  }
}

/** Lazily and whole trees at once, deepest last: nobody works there any more. */
export async function unmountAll(mounts: readonly MountEntry[]): Promise<void> {
  for (const { target } of mounts) {
    await runTool({ tool: 'umount', argv: ['--lazy', target], deadlineMs: TOOL_MS });
  }
}

export interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Every process in a mount namespace (`mnt:[4026531840]`), but this one. */
export function processesIn(namespace: string): readonly ProcessFacts[] {
  return allProcesses().filter(({ pid }) => pid !== process.pid && namespaceOf(pid) === namespace);
}

/** Processes started by `pid`, and theirs. */
export function descendantsOf(pid: number): readonly ProcessFacts[] {
  const all = allProcesses();
  const found: ProcessFacts[] = [];
  for (let parents = new Set([pid]); parents.size > 0; ) {
    const children = all.filter(({ parent }) => parents.has(parent));
    found.push(...children);
    parents = new Set(children.map((child) => child.pid));
  }
  return found;
}

function allProcesses(): readonly ProcessFacts[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .flatMap((name) => {
      const status = readOrNothing(`/proc/${name}/status`);
      const command = readOrNothing(`/proc/${name}/cmdline`);
      // A zombie has ended already; somebody else has to wait for it.
      if (status === undefined || command === undefined || /^State:\s+Z/m.test(status)) return [];
      const parent = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1] ?? 0);
      return [{ pid: Number(name), parent, command: command.replaceAll('\0', ' ').trim() }];
    });
}

function namespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`);
  } catch {
    return undefined;
  }
}

const GONE_MS = 120_000;
/** /proc has no event for a process that is not our child. */
const LOOK_EVERY_MS = 10;

export async function untilGone(pids: readonly number[]): Promise<boolean> {
  const end = performance.now() + GONE_MS;
  while (pids.some((pid) => existsSync(`/proc/${pid}`) && !isZombie(pid))) {
    if (performance.now() > end) return false;
    await sleep(LOOK_EVERY_MS);
  }
  return true;
}

function isZombie(pid: number): boolean {
  return /^State:\s+Z/m.test(readOrNothing(`/proc/${pid}/status`) ?? 'State: Z');
}

/** Kills them by their ids and answers with their names. */
export async function removedProcesses(processes: readonly ProcessFacts[]): Promise<readonly string[]> {
  for (const { pid } of processes) {
    try {
      signalProcess(pid, 'SIGKILL');
    } catch {
      // It ended by itself.
    }
  }
  const gone = await untilGone(processes.map(({ pid }) => pid));
  return processes.map(
    ({ pid, command }) => `process ${pid} ${command.slice(0, 120)}${gone ? '' : ' (still there)'}`,
  );
}

export function readOrNothing(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
