/** A machine in memory with a local volume on it: a directory that an administrator named. */
import type { AbsolutePath } from '../../../mount/host.ts';
import { createLocalPlugin } from '../../../plugins/local/local-plugin.ts';
import { localVolumeId, type LocalVolumeSpec } from '../../../plugins/local/local-traits.ts';
import type { VolumePlugin } from '../../../plugins/plugin.ts';
import { freshHost, layout, mounterOf, ROOT } from '../local-world.ts';
import type { MemoryHost } from '../memory-host.ts';

export const DISK = '/mnt/disks/one' as AbsolutePath;

export function localVolume(path = DISK, mountOptions: readonly string[] = []): LocalVolumeSpec {
  const name = 'local-1';
  return {
    kind: 'local',
    id: localVolumeId(name),
    name,
    path,
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
