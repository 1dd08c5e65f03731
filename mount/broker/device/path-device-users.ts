/** Who uses a block device, read from /proc and /sys. Path brokers only. */
import { beginScan, type PossibleUser, type Scan, sysDirectory, Unseen, USERS_MAX } from './device-scan.ts';
import { tryExclusiveOpen } from './exclusive-open.ts';
import { namesIn, readOrNothing } from './kernel-text.ts';
import { findLoopDevices } from './loop-users.ts';
import { findMounts } from './mount-users.ts';
import { findDescriptors } from './open-file-users.ts';
import { failErrno } from '../../errno.ts';
import { fail, ok, type Result } from '../../failure.ts';
import type { DeviceNumber } from '../../host.ts';

const MESSAGE_LENGTH_MAX = 1_024;

export interface DeviceUsers {
  /** There are at most 32. */
  readonly users: readonly string[];
  /** There are at most 32. */
  readonly possible: readonly PossibleUser[];
  /** The device and its partitions. */
  readonly numbers: readonly string[];
}

/**
 * What `Host.findDeviceUsers` asks for, within 10 s or `deadline-passed`. Two things are taken for granted: a
 * thread whose open descriptors have the same numbers as those of its process shares them, and no device node is on a
 * network file system. What no process can show (a mount in a namespace without processes) the kernel's exclusive open
 * tells, which every mount, swap and device on top holds.
 */
export function scanForDeviceUsers(device: DeviceNumber): Result<DeviceUsers> {
  try {
    const scan = beginScan(device);
    findHoldersOnTop(scan);
    findSwap(scan);
    findMounts(scan);
    findLoopDevices(scan);
    findDescriptors(scan);
    if (scan.users.size === 0) tryExclusiveOpen(scan, device);
    return ok({
      users: [...scan.users].slice(0, USERS_MAX),
      possible: scan.possible.slice(0, USERS_MAX),
      numbers: [...scan.numbers],
    });
  } catch (error) {
    if (!(error instanceof Unseen)) return failErrno(error, `look for users of device ${device}`, 'none');
    return fail({ code: error.code, message: error.message.slice(0, MESSAGE_LENGTH_MAX), effect: 'none' });
  }
}

function findHoldersOnTop({ numbers, users }: Scan): void {
  for (const number of numbers)
    for (const name of namesIn(`${sysDirectory(number)}/holders`)) users.add(`device ${name} on top of it`);
}

function findSwap({ nodes, users }: Scan): void {
  for (const line of (readOrNothing('/proc/swaps') ?? '').split('\n').slice(1)) {
    const name = line.split(/\s/)[0] ?? '';
    if (nodes.has(name)) users.add(`swap on ${name}`);
  }
}
