/**
 * Two PersistentVolumes may name one disk: for files, and as it is. Who has it as it is keeps no exclusive open of it
 * away, so mkfs(8), e2fsck(8) and mount(8) would all take it for free; here who came first is looked for.
 */
import { done, fail, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, type DeviceNumber, type Host, isBelow } from '../../mount/host.ts';
import type { DeviceSource } from './device-publication.ts';
import { isOnDevice } from './mounted-device.ts';

/** `device-in-use` when a pod has the device itself, of whatever kind its volume is; all that they have is held. */
export async function refuseHeldDevice(
  host: Pick<Host, 'heldPaths' | 'deviceOf'>,
  root: AbsolutePath,
  device: DeviceNumber,
): Promise<Result<void>> {
  const held = await host.heldPaths(root);
  if (!held.ok) return held;
  for (const path of held.value) {
    const theirs = await host.deviceOf(path);
    if (!theirs.ok) return theirs;
    if (theirs.value !== device) continue;
    const message = `a pod has device ${device} itself, by another volume, so no file system of it is mounted`;
    return fail({ code: 'device-in-use', message, effect: 'none', blocker: path });
  }
  return done;
}

/** `device-in-use` when a volume that is staged at or below `stages` is its file system. */
export async function refuseStagedDevice(
  host: Pick<Host, 'readMountTable' | 'deviceOf' | 'readLink' | 'listDirectory'>,
  stages: AbsolutePath,
  { device, path }: DeviceSource,
): Promise<Result<void>> {
  const table = await host.readMountTable(stages);
  if (!table.ok) return table;
  for (const mount of table.value.entries.filter(({ target }) => isBelow(target, stages))) {
    const isOfIt = await isOnDevice(host, mount, device);
    if (!isOfIt.ok) return isOfIt;
    if (!(isOfIt.value ?? mount.source === path)) continue;
    const message = `the file system of device ${device} is mounted for another volume: no pod gets the device itself`;
    return fail({ code: 'device-in-use', message, effect: 'none', blocker: mount.target });
  }
  return done;
}
