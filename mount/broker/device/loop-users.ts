/** Loop devices that have a block device open, by the name of what they hold or by its size. */
import { lstatSync } from 'node:fs';
import { LOCAL_FILE_SYSTEMS, type Scan, sysDirectory, Unseen } from './device-scan.ts';
import { readOrNothing } from './kernel-text.ts';
import { mountsOver } from './mount-users.ts';
import { deviceNodeOf, findLoops, type LoopDevice, nameOf } from './path-device.ts';
import { DELETED_MARK } from '../path/path-walk.ts';
import { parseAbsolutePath } from '../../host.ts';

const SECTOR_BYTES = 512;
/** Where nodes are made and deleted. */
const NODE_FILE_SYSTEMS: ReadonlySet<string> = new Set(['devtmpfs', 'tmpfs', 'ramfs']);

export function findLoopDevices(scan: Scan): void {
  const loops = findLoops();
  if (!loops.ok) throw new Unseen(loops.failure.code, loops.failure.message);
  for (const loop of loops.value) {
    const user = `${loop.name} (holds ${loop.backingFile.slice(0, 256)})`;
    const behind = isBehind(scan, loop);
    if (behind === 'by-name') scan.users.add(user);
    else if (behind === 'by-size') scan.possible.push({ loop: loop.name, user });
  }
}

/** Has a loop device one of these devices open? Where its name leads nowhere any more, its size makes it possible. */
function isBehind(scan: Scan, loop: LoopDevice): 'by-name' | 'by-size' | 'no' {
  const bySize = () => (hasSizeOf(scan, loop) ? 'by-size' : 'no');
  const { backingFile } = loop;
  const isDeleted = backingFile.endsWith(DELETED_MARK);
  const path = parseAbsolutePath(nameOf(backingFile));
  if (path === undefined) return bySize();
  const over = mountsOver(scan, path);
  const types = over.map(({ fsType }) => fsType);
  // What is deleted from a disk was an image; a node is deleted with its device, or with its container.
  if (isDeleted) return types.some((type) => NODE_FILE_SYSTEMS.has(type)) ? bySize() : 'no';
  if (over.some(({ fsType, root }) => fsType === 'devtmpfs' && scan.nodes.has(`/dev${root}`)))
    return 'by-name';
  if (!types.every((type) => LOCAL_FILE_SYSTEMS.has(type))) return 'no';
  const node = deviceNodeOf(path);
  if (node.ok && node.value !== undefined) return scan.numbers.has(node.value.device) ? 'by-name' : 'no';
  // `/` is what remains of a path when the namespace it was in has gone.
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true ? 'no' : bySize();
}

/** As large as one of the devices, but for its offset. To a device that is gone nobody can write any more. */
function hasSizeOf({ numbers }: Scan, { name }: LoopDevice): boolean {
  const sectors = Number(readOrNothing(`/sys/block/${name}/size`) ?? Number.NaN);
  const offset = Number(readOrNothing(`/sys/block/${name}/loop/offset`) ?? 0) / SECTOR_BYTES;
  return [...numbers].some((number) => {
    const size = readOrNothing(`${sysDirectory(number)}/size`);
    return size !== undefined && Number(size) === sectors + offset;
  });
}
