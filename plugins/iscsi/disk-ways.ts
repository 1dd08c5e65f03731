/** Which of the devices that lead to one disk is mounted: two of them at once would be two file systems on it. */
import type { IscsiDisk } from '../../mount/block-devices.ts';
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';

/** A device that leads to the disk, by one way or by all of them. */
export type ChosenDisk = Pick<IscsiDisk, 'node' | 'device'>;

export interface DiskWays {
  /** Those that answer, in the order in which they are wished. */
  readonly open: readonly IscsiDisk[];
  /** Those of every session with its target, whoever has begun it, and whether its portal answers or not. */
  readonly all: readonly IscsiDisk[];
}

/**
 * What is mounted at the stage already (`mounted`), else the device that joins the ways, else the one way that somebody
 * on this machine has in use, else the first. `device-in-use` when that one does not answer, or several are in use:
 * the kernel takes each for a disk of its own, and would write to both. Undefined: none has come.
 */
export async function chooseWay(
  host: Pick<Host, 'findDeviceUsers'>,
  { open, all }: DiskWays,
  mounted: string | undefined,
): Promise<Result<ChosenDisk | undefined>> {
  const maps = open.flatMap(({ map }) => (map === undefined ? [] : [map]));
  const kept = [...maps, ...open].find(({ device }) => device === mounted) ?? maps[0];
  const devices = [...new Set(all.map(({ device }) => device))];
  if (kept !== undefined || devices.length < 2) return ok(kept ?? open[0]);
  const used = new Map<string, string>();
  for (const device of devices) {
    const users = await host.findDeviceUsers(device);
    if (!users.ok) return users;
    const [user] = users.value;
    if (user !== undefined) used.set(device, user);
  }
  const [first] = used;
  if (first === undefined) return ok(open[0]);
  const [device, user] = first;
  const way = used.size === 1 ? open.find((one) => one.device === device) : undefined;
  if (way !== undefined) return ok(way);
  const message = `the disk is in use as device ${device} (${user}), and by another way it would be written twice`;
  return fail({ code: 'device-in-use', message, effect: 'unknown', blocker: device });
}
