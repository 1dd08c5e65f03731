/** A machine in memory with a local volume on it: a directory that an administrator named. */
import type { AbsolutePath } from '../../../mount/host.ts';
import { createLocalPlugin } from '../../../plugins/local/local-plugin.ts';
import { localVolumeId, type LocalVolumeSpec } from '../../../plugins/local/local-traits.ts';
import type { VolumePlugin } from '../../../plugins/plugin.ts';
import type { VolumeMode } from '../../../plugins/volume.ts';
import { freshHost, layout, mounterOf, ROOT } from '../local-world.ts';
import type { MemoryHost } from '../memory-host.ts';

export const DISK = '/mnt/disks/one' as AbsolutePath;

export function localVolume(
  path = DISK,
  mountOptions: readonly string[] = [],
  mode: VolumeMode = 'Filesystem',
): LocalVolumeSpec {
  const name = 'local-1';
  return {
    kind: 'local',
    id: localVolumeId(name),
    name,
    path,
    mode,
    fsType: '',
    mountOptions,
    accessModes: ['ReadWriteOnce'],
  };
}

export function diskHost(): MemoryHost {
  const host = freshHost();
  host.plant(DISK, { kind: 'directory', mode: 0o755 });
  host.plant(`${DISK}/note`, { kind: 'file', content: 'precious' });
  return host;
}

export function localPlugin(host: MemoryHost, denied: readonly AbsolutePath[] = [ROOT]): VolumePlugin {
  return createLocalPlugin({ host, layout, mounter: mounterOf(host), denied });
}

/** Where an administrator has the node of a disk, and a link to it. */
export const NODE = '/dev/disk-one' as AbsolutePath;
export const BY_ID = '/dev/by-id/one' as AbsolutePath;

/** As `diskHost`, with a disk that nobody looks into. */
export function deviceHost(): MemoryHost {
  const host = diskHost();
  host.plant(layout.localDevices, { kind: 'directory', mode: 0o750 });
  host.plant(NODE, { kind: 'block', mode: 0o660, block: host.devices.add() });
  host.plant(BY_ID, { kind: 'symlink', text: '../disk-one' });
  return host;
}
