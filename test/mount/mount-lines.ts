/** Mount tables for tests, in few words. */
import type { AbsolutePath } from '../../mount/host.ts';
import type { MountEntry } from '../../mount/mount-table.ts';

export const ROOT_MOUNT = line(1, 0, '/', { fsType: 'ext4', device: '254:1' });

export function line(
  mountId: number,
  parentId: number,
  target: string,
  more: Partial<MountEntry> = {},
): MountEntry {
  return {
    mountId,
    parentId,
    device: `0:${mountId}`,
    root: '/',
    target: target as AbsolutePath,
    options: ['rw'],
    propagation: [],
    fsType: 'tmpfs',
    source: `source-${mountId}`,
    superOptions: ['rw'],
    ...more,
  };
}
