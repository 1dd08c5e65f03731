/**
 * What a machine of Google's cloud has and this one lacks: disks under /dev/disk/by-id, and the tools that read a
 * disk's serial number. In this mount namespace alone, which must be a private one; the disks are loop devices.
 */
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { readOrNothing, runToEnd } from '../demo/machine.ts';
import { runTool } from '../../mount/tool.ts';

/** The driver takes a device for one of its disks when its path begins so and the tool tells the disk's name of it. */
const DISKS = '/dev/sd';
const NAMES = '/dev/disk/by-id';
const LOOP_MAJOR = '7';
const TOOL_MS = 120_000;
const LOOK_MS = 20;
/** Shorter than any call of a driver may take: the driver waits for it. */
const LET_GO_MS = 5_000;

/**
 * A /dev of our own, as each container has one, because what is made in the machine's is seen by everybody. The tools'
 * directory is one that no package here has, so /lib gets a layer for it.
 */
const SET_UP = `
set -eu
at=$(mktemp -d)
trap 'rmdir "$at"' EXIT
mount -t tmpfs tmpfs "$at"
mkdir "$at/work" "$at/upper" "$at/upper/udev_containerized"
cat > "$at/upper/udev_containerized/scsi_id" <<'TOOL'
#!/bin/sh
for argument; do
  case $argument in --device=*) device=\${argument#--device=} ;; esac
done
serial=$(cat "$device.serial") && echo "0Google  PersistentDisk  $serial"
TOOL
printf '#!/bin/sh\\nexit 1\\n' > "$at/upper/udev_containerized/google_nvme_id"
chmod 0755 "$at"/upper/udev_containerized/*
lib=$(readlink -f /lib)
mount -t overlay -o "lowerdir=$lib,upperdir=$at/upper,workdir=$at/work" overlay "$lib"
umount --lazy "$at"
mount -t tmpfs -o mode=0755 tmpfs "$at"
find /dev -mindepth 1 -maxdepth 1 ! -type d -exec cp -a -t "$at" {} +
for number in $(seq 0 127); do
  [ -e "$at/loop$number" ] || mknod -m 0600 "$at/loop$number" b ${LOOP_MAJOR} "$number"
done
for directory in pts shm mqueue; do
  [ -d "/dev/$directory" ] || continue
  mkdir "$at/$directory"
  mount --rbind "/dev/$directory" "$at/$directory"
done
mkdir -p "$at/sd" "$at/disk/by-id"
mount --move "$at" /dev
`;

/** Once per test file. The reason when it cannot be done, said loudly; false when it is. */
export function asInGooglesCloud(skip: string | false): string | false {
  if (skip !== false) return skip;
  const ran = spawnSync('sh', ['-c', SET_UP], { encoding: 'utf8', timeout: TOOL_MS });
  if (ran.status === 0) return false;
  const reason = `no disks as in Google's cloud (tmpfs on /dev, overlayfs on /lib): ${ran.stderr.trim()}`;
  process.stderr.write(`\n*** SKIPPED: ${reason} ***\n\n`);
  return `SKIPPED: ${reason}`;
}

/** Makes a file of zeros, or lets one grow. */
export async function giveBytes(image: string, bytes: number): Promise<void> {
  await runToEnd('truncate', ['--size', `${bytes}`, image]);
}

/** The disk `name` appears on the machine. Settles with its loop device. */
export async function plugIn(name: string, image: string, readOnly: boolean): Promise<string> {
  const flags = ['--find', '--show', ...(readOnly ? ['--read-only'] : [])];
  const ran = await runTool({ tool: 'losetup', argv: [...flags, image], deadlineMs: TOOL_MS });
  if (!ran.ok || ran.value.exitCode !== 0) throw new Error(`losetup: ${JSON.stringify(ran)}`);
  const device = ran.value.stdout.trim();
  const node = join(DISKS, basename(device));
  mkdirSync(NAMES, { recursive: true });
  await runToEnd('mknod', ['-m', '0600', node, 'b', LOOP_MAJOR, basename(device).slice('loop'.length)]);
  writeFileSync(`${node}.serial`, name);
  symlinkSync(node, join(NAMES, `google-${name}`));
  return device;
}

/** The kernel looks at the size of a plugged-in disk's image again. */
export async function tellSize(device: string): Promise<void> {
  await runToEnd('losetup', ['--set-capacity', device]);
}

/**
 * The disk goes, as it does in the cloud, in use or not. Settles with what still used it, or undefined. Who only has it
 * open may let it go within `patienceMs`: a process that was just killed, or one that reads who any new disk is.
 */
export async function plugOut(
  name: string,
  device: string,
  patienceMs = LET_GO_MS,
): Promise<string | undefined> {
  const node = join(DISKS, basename(device));
  rmSync(join(NAMES, `google-${name}`), { force: true });
  for (const file of [node, `${node}.serial`]) rmSync(file, { force: true });
  const claimed = isClaimed(device);
  const image = imageOf(device);
  await runToEnd('losetup', ['--detach', device]);
  if (claimed) return `${device} was mounted`;
  const holders = holdersOf(device);
  const endMs = performance.now() + patienceMs;
  // A device that somebody has open is let go by the kernel when that one closes it, and nothing tells of that. By the
  // next look it may have somebody else's file.
  while (image !== undefined && imageOf(device) === image) {
    if (performance.now() > endMs) return `${device} was open, by ${holders.join(', ') || 'nobody in /proc'}`;
    await setTimeout(LOOK_MS);
  }
  return undefined;
}

function imageOf(device: string): string | undefined {
  return readOrNothing(`/sys/block/${basename(device)}/loop/backing_file`);
}

/** As `1234 (mooring)`: processes that have a node of the device open, under any name. */
function holdersOf(device: string): readonly string[] {
  const { rdev } = statSync(device);
  const hasOpen = (pid: string): boolean =>
    namesIn(`/proc/${pid}/fd`).some((descriptor) => deviceAt(`/proc/${pid}/fd/${descriptor}`) === rdev);
  return namesIn('/proc')
    .filter((name) => /^\d+$/.test(name) && hasOpen(name))
    .map((pid) => `${pid} (${readOrNothing(`/proc/${pid}/comm`)?.trim() ?? 'ended'})`);
}

/** Undefined when it is none, or is gone. */
function deviceAt(file: string): number | undefined {
  try {
    const found = statSync(file);
    return found.isBlockDevice() ? found.rdev : undefined;
  } catch {
    return undefined;
  }
}

/** Empty when it is gone, as that of a process that ended. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** A file system that is mounted, in whatever namespace, has its device for itself. */
function isClaimed(device: string): boolean {
  try {
    closeSync(openSync(device, constants.O_RDONLY | constants.O_EXCL));
    return false;
  } catch {
    return true;
  }
}
