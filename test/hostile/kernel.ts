/**
 * What the kernel says, read by the judge's own eyes: nothing of the product is asked, because the product's reader is
 * one of the things that are judged.
 */
import { closeSync, openSync, readFileSync } from 'node:fs';
import { attachedLoopDevices } from '../machine/loop-devices.ts';

/** open(2): names a file without asking its file system. */
const O_PATH = 0o10000000;

export interface KernelMount {
  readonly id: number;
  readonly parent: number;
  /** `major:minor`. */
  readonly device: string;
  readonly target: string;
  readonly fsType: string;
  readonly source: string;
  readonly superOptions: string;
}

export function kernelMounts(): readonly KernelMount[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [own = '', type = ''] = line.split(' - ');
      const [id, parent, device = '', , target = ''] = own.split(' ');
      const [fsType = '', source = '', superOptions = ''] = type.split(' ');
      return { id: Number(id), parent: Number(parent), device, target, fsType, source, superOptions };
    });
}

/** The mount that a path leads to, as a pod would walk it; undefined: there is no such path. */
export function mountShownAt(path: string): KernelMount | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, O_PATH);
  } catch {
    return undefined;
  }
  try {
    const facts = readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8');
    const id = Number(/^mnt_id:\s+(\d+)$/m.exec(facts)?.[1]);
    return kernelMounts().find((one) => one.id === id);
  } finally {
    closeSync(descriptor);
  }
}

/** Is the root of a mount at the path, whichever? */
export function isMountPoint(path: string): boolean {
  return mountShownAt(path)?.target === path;
}

/** `7:3` of `/dev/loop3`. */
export function numberOfDevice(node: string): string {
  return readFileSync(`/sys/block/${node.replace('/dev/', '')}/dev`, 'utf8').trim();
}

/** Loop devices whose backing file is below a directory: `loop3 /dir/disk`. From /sys, which no hung disk delays. */
export function loopDevicesOf(directory: string): readonly string[] {
  return attachedLoopDevices()
    .filter(({ backingFile }) => backingFile.includes(`${directory}/`))
    .map(({ name, backingFile }) => `${name} ${backingFile}`);
}
