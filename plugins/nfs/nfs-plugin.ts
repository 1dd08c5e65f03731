/** nfs: a directory of a server, mounted by mount.nfs(8) for each pod that has it. */
import { assert, fail, ok, type Result } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';
import type { MountAttempt, Mounter } from '../../mount/mounter.ts';
import type { Layout } from '../layout/layout.ts';
import { podDirectories } from '../layout/pod-directory.ts';
import { removeLocalPlace } from '../local/bind-directory.ts';
import type { PublicationCall, StatisticsCall, VolumePlugin, VolumeStatistics } from '../plugin.ts';
import { numbersOf } from '../pod/empty-dir-usage.ts';
import { createPodPlugin } from '../pod/pod-plugin.ts';
import { doubtful, inOrder } from '../steps.ts';
import type { VolumeSpec } from '../volume.ts';
import { placeNfsMount } from './nfs-mount.ts';
import { NFS_PLUGIN, type NfsVolumeSpec } from './nfs-traits.ts';

/**
 * Guarantees, besides the contract of VolumePlugin: whether the volume is there is told by the mount table and by mount
 * ids, so nothing but mount(8) ever waits for the server; unpublishing never speaks to it at all.
 */
export function createNfsPlugin(host: Host, layout: Layout, mounter: Mounter): VolumePlugin {
  const look = (path: NfsPlace['path'], source: string, attempt: MountAttempt) =>
    host.perform(placeNfsMount, { path, source, attempt });

  const plugin = createPodPlugin({
    name: NFS_PLUGIN,
    usage: {
      hasStatistics: () => true,
      statistics: (call) => askUsage({ host, layout }, call),
    },
    async publish(call) {
      const { source, mountOptions } = nfsSpec(call.spec);
      const target = layout.target(call.spec, call.publication);
      const before = await look(target, source, 'not-yet');
      if (!before.ok) return before;
      if (before.value !== undefined) return ok({ mount: before.value });
      const options = optionsOf(mountOptions, call);
      const said = await host.mount({ fsType: 'nfs', source, target, options, isWalked: true });
      // The kernel is the judge: a mount that failed or was killed may be there.
      const after = await look(target, source, said.ok ? 'done' : 'failed');
      if (!after.ok) return doubtful<never>(after);
      if (after.value !== undefined) return ok({ mount: after.value });
      const message = `mount said done, but nothing is mounted at ${target}`;
      if (said.ok) return fail({ code: 'mount-failed', message, effect: 'unknown', blocker: source });
      return doubtful<never>(fail({ ...said.failure, blocker: source }));
    },
    unpublish({ spec, publication }) {
      const target = layout.target(nfsSpec(spec), publication);
      const above = podDirectories(layout, publication.pod.uid);
      return inOrder(
        () => mounter.unmount(target, { isRemote: true }),
        () => host.perform(removeLocalPlace, { path: target, above }),
      );
    },
  });
  return { ...plugin, lane: (spec) => `${NFS_PLUGIN} ${serverOf(nfsSpec(spec))}` };
}

/** A server that is silent fills its own lane. */
function serverOf({ source }: NfsVolumeSpec): string {
  return source.slice(0, Math.max(0, source.indexOf(':/')));
}

type NfsPlace = Parameters<typeof placeNfsMount.program>[0];

function optionsOf(mountOptions: readonly string[], { publication }: PublicationCall): readonly string[] {
  const written = mountOptions.filter((one) => one !== 'rw' || !publication.readOnly);
  const isWritable = !publication.readOnly || written.includes('ro');
  // mount.nfs(8) would say done and go on trying unseen, beside the next try of ours. The last of the two words counts.
  const isUnseen = written.some((one) => one.split(',').includes('bg'));
  return [...written, ...(isWritable ? [] : ['ro']), ...(isUnseen ? ['fg'] : [])];
}

/** What is mounted there, as its server says; asked in a broker of its own, and given up when the server is silent. */
async function askUsage(
  { host, layout }: { readonly host: Host; readonly layout: Layout },
  { spec, publication, mount, stillThere }: StatisticsCall,
): Promise<Result<VolumeStatistics | 'busy'>> {
  if (publication === undefined || mount === undefined) return ok('busy');
  const path = layout.target(spec, publication);
  const seen = await host.mountIdOf(path);
  if (!seen.ok || seen.value !== mount.mountId || !stillThere()) return seen.ok ? ok('busy') : seen;
  const measured = await host.measureUsage({ path, scope: 'file-system' });
  if (!stillThere()) return ok('busy');
  if (!measured.ok) return measured.failure.code === 'mount-lost' ? ok('busy') : measured;
  const { bytes, inodes } = measured.value;
  return ok({ bytes: numbersOf(bytes), inodes: numbersOf(inodes), health: undefined });
}

function nfsSpec(spec: VolumeSpec): NfsVolumeSpec {
  assert(spec.kind === 'nfs', 'the plugin of NFS volumes is given NFS volumes');
  return spec;
}
