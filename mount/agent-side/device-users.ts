/** Who uses a block device: what /proc and /sys tell, and of loop devices without a name what they say themselves. */
import { ok, type Result } from '../failure.ts';
import type { DeviceNumber } from '../host.ts';
import { inodeBehind, type LoopDeviceParts } from '../broker/device/loop-device.ts';
import type { NodeIdentity } from '../broker/device/path-device.ts';
import type { DeviceUsers } from '../broker/device/path-device-users.ts';

export interface DeviceUsersParts extends LoopDeviceParts {
  readonly scan: (device: DeviceNumber) => Promise<Result<DeviceUsers>>;
  readonly deviceByNode: (node: NodeIdentity) => Promise<Result<DeviceNumber | undefined>>;
}

const USERS_MAX = 32;

/** As `Host.findDeviceUsers` says. */
export async function findDeviceUsers(
  parts: DeviceUsersParts,
  device: DeviceNumber,
): Promise<Result<readonly string[]>> {
  const seen = await parts.scan(device);
  if (!seen.ok) return seen;
  const users = [...seen.value.users];
  for (const { loop, user } of seen.value.possible) {
    if (users.length >= USERS_MAX) break;
    const open = await deviceOpenIn(parts, loop);
    if (open === undefined || seen.value.numbers.includes(open)) users.push(user);
  }
  return ok(users);
}

/** Undefined when that cannot be told: then it counts as a user, because a device is called clean only when it is. */
async function deviceOpenIn(parts: DeviceUsersParts, loop: string): Promise<DeviceNumber | undefined> {
  const inode = await inodeBehind(parts, loop);
  if (!inode.ok || inode.value === undefined) return undefined;
  const device = await parts.deviceByNode(inode.value);
  return device.ok ? device.value : undefined;
}
