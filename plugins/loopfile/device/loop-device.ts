/**
 * Loop devices: which one shows a data file, and how it gets one.
 *
 * `losetup -a`, `-j` and `-f` ask every loop device of the machine about its backing file, and hang for good when one
 * of those files sits on a dead file system that is none of our business. So the list comes from /sys, which never
 * touches a file system, and only devices that look like ours are asked for the inode that proves it.
 */
import { open, readdir, readFile } from 'node:fs/promises';
import { status, unlessAbsent } from './status.ts';
import { ask, run } from './tools.ts';

export interface LoopDevice {
  /** `/dev/loop7` */
  readonly path: string;
  /** `loop7` */
  readonly name: string;
  /** `7:7`, as mountinfo shows it. */
  readonly number: string;
  /** Names one file's time on this device: with another one it is another device. Undefined before Linux 5.15. */
  readonly turn: string | undefined;
}

/** A data file, known by more than its name. */
export interface BackingFile {
  /** `<pool>/<volume id>/data.img` */
  readonly path: string;
  readonly inode: number;
  /** `major:minor` of the file system the file is on. */
  readonly device: string;
}

export interface LoopDevices {
  /** Devices that show this very file. More than one only after a crash in the middle of an attach. */
  readonly attached: readonly LoopDevice[];
  /** Devices that still show a file of this name that was deleted since. */
  readonly orphaned: readonly LoopDevice[];
}

interface UsedDevice extends LoopDevice {
  readonly backingPath: string;
}

const DELETED = ' (deleted)';

/** `file` is undefined when the volume is gone: then there can only be orphans. */
export async function findLoopDevices(path: string, file: BackingFile | undefined): Promise<LoopDevices> {
  const used = await usedDevices();
  const orphaned = used.filter((device) => device.backingPath === `${path}${DELETED}`);
  if (file === undefined) return { attached: [], orphaned };
  // A pool can be seen under other paths (bind mounts, namespaces), but the last two components stay.
  const ending = `/${path.split('/').slice(-2).join('/')}`;
  const attached: LoopDevice[] = [];
  for (const device of used.filter((one) => one.backingPath.endsWith(ending))) {
    if (await shows(device, file)) attached.push(device);
  }
  return { attached, orphaned };
}

const ATTACH_ATTEMPTS_MAX = 16;
/** Where so many devices without a file get none, it is not for the devices' sake. */
const REFUSED_DEVICES_MAX = 8;

/**
 * Attaches `file` to a free loop device. The number is chosen here and given to losetup: when somebody else is faster
 * the kernel refuses and the next number is tried. So it is where a device shows no file and yet gets none (EBUSY): the
 * kernel is still taking its last one away, or somebody holds it.
 */
export async function attachLoopDevice(file: BackingFile): Promise<LoopDevice> {
  const refused = new Set<string>();
  for (let attempt = 0; attempt < ATTACH_ATTEMPTS_MAX; attempt += 1) {
    const name = await freeName(refused);
    const answer = await ask('losetup', ['--', `/dev/${name}`, file.path]);
    const device = await usedDevice(name);
    if (answer.exitCode !== 0) {
      if (device !== undefined) continue;
      refused.add(name);
      if (refused.size < REFUSED_DEVICES_MAX) continue;
      throw status('INTERNAL', `losetup /dev/${name} ended with ${answer.exitCode}: ${answer.complaint}`);
    }
    if (device !== undefined && (await shows(device, file))) return device;
    if (device?.backingPath.startsWith(file.path) === true) await detachLoopDevice(device);
    throw status('ABORTED', `${file.path} was replaced while it was being attached`);
  }
  throw status('RESOURCE_EXHAUSTED', `no free loop device after ${ATTACH_ATTEMPTS_MAX} attempts`);
}

/**
 * The caller has made sure that nothing mounts it here; elsewhere the kernel lets go after the last user. Nothing to do
 * where it has lost its file already, whoever has the device by now. While it is open no file is taken from it, so what
 * is detached is what was looked at (`lo_release` of the kernel lets go at the last close).
 */
export async function detachLoopDevice(device: LoopDevice): Promise<void> {
  const pin = await unlessAbsent(open(device.path, 'r'));
  try {
    const now = await usedDevice(device.name);
    if (now === undefined || now.turn !== device.turn) return;
    // The kernel keeps it for the number, and whoever is given that next could not write.
    if (await isReadOnlyDevice(device)) await run('blockdev', ['--setrw', device.path]);
    await run('losetup', ['--detach', device.path]);
  } finally {
    await pin?.close();
  }
}

/** Makes the device as large as its file has become. */
export async function refreshLoopDevice(device: LoopDevice): Promise<void> {
  await run('losetup', ['--set-capacity', device.path]);
}

/** A read-only mount of a device node does not stop writes to the device, so the device itself is switched. */
export async function setReadOnly(device: LoopDevice, readOnly: boolean): Promise<void> {
  if ((await isReadOnlyDevice(device)) === readOnly) return;
  await run('blockdev', [readOnly ? '--setro' : '--setrw', device.path]);
  if ((await isReadOnlyDevice(device)) !== readOnly)
    throw status('INTERNAL', `${device.path} ignored blockdev`);
}

export async function deviceBytes(device: LoopDevice): Promise<number> {
  return Number(await readFile(`/sys/block/${device.name}/size`, 'utf8')) * 512;
}

async function isReadOnlyDevice(device: LoopDevice): Promise<boolean> {
  return (await readFile(`/sys/block/${device.name}/ro`, 'utf8')).trim() === '1';
}

const LOOP_NAME = /^loop([0-9]{1,7})$/;

async function loopNames(): Promise<readonly string[]> {
  return (await readdir('/sys/block')).filter((name) => LOOP_NAME.test(name));
}

async function usedDevices(): Promise<readonly UsedDevice[]> {
  const devices = await Promise.all((await loopNames()).map(usedDevice));
  return devices.filter((device) => device !== undefined);
}

/** Undefined: it has no file, or was just given or losing one. */
async function usedDevice(name: string): Promise<UsedDevice | undefined> {
  const turn = await turnOf(name);
  const backing = await unlessAbsent(readFile(`/sys/block/${name}/loop/backing_file`, 'utf8'));
  if (backing === undefined) return undefined;
  const number = (await unlessAbsent(readFile(`/sys/block/${name}/dev`, 'utf8')))?.trim();
  if (number === undefined || turn !== (await turnOf(name))) return undefined;
  return { path: `/dev/${name}`, name, number, turn, backingPath: backing.replace(/\n$/, '') };
}

/** The lowest name without a file, existing or not: losetup makes a device that is named to it. */
async function freeName(refused: ReadonlySet<string>): Promise<string> {
  const used = new Set((await usedDevices()).map((device) => device.name));
  for (let number = 0; ; number += 1) {
    const name = `loop${number}`;
    if (!used.has(name) && !refused.has(name)) return name;
  }
}

/**
 * By the name of the device: which file losetup said that it shows, and in which turn of the device. As many as the
 * machine has loop devices.
 */
const proven = new Map<string, string>();

/** Asked in every call about a volume; the kernel is asked once for each time that a file was attached. */
async function shows(device: LoopDevice, file: BackingFile): Promise<boolean> {
  const { name, turn } = device;
  const proof = `${turn} ${file.device} ${file.inode}`;
  if (turn !== undefined && proven.get(name) === proof) return true;
  if (!(await isSaidToShow(device, file))) return false;
  // While it was asked it may have been given another file.
  if (turn !== (await turnOf(name))) return false;
  if (turn !== undefined) proven.set(name, proof);
  return true;
}

/**
 * The kernel counts it up for the whole machine with each file that a loop device is given or loses; undefined before
 * Linux 5.15.
 */
async function turnOf(name: string): Promise<string | undefined> {
  return (await unlessAbsent(readFile(`/sys/block/${name}/diskseq`, 'utf8')))?.trim();
}

async function isSaidToShow(device: LoopDevice, file: BackingFile): Promise<boolean> {
  const answer = await ask('losetup', [
    '--list',
    '--noheadings',
    '--output',
    'BACK-INO,BACK-MAJ:MIN',
    device.path,
  ]);
  const [inode, backingDevice] = answer.stdout.trim().split(/\s+/);
  return answer.exitCode === 0 && inode === String(file.inode) && backingDevice === file.device;
}
