/** local: a directory or a disk that an administrator named is bound into the pods of its claim, or shown. */
import { assert, type DeathCause, done, fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host, MountIdentity, MountLookup } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { deathAtFirst, deathFailure } from '../guard/dead-file-system.ts';
import type { Layout } from '../layout/layout.ts';
import { podDirectories } from '../layout/pod-directory.ts';
import type { PublicationCall, Staged, VolumeCall, VolumePlugin } from '../plugin.ts';
import { createPodPlugin } from '../pod/pod-plugin.ts';
import { doubtful, inOrder } from '../steps.ts';
import { hasDevice, type VolumeSpec } from '../volume.ts';
import { bindLocalDirectory, type DirectoryBind, removeLocalPlace } from './bind-directory.ts';
import { bindFlags } from './bind-options.ts';
import { DevicePlace } from './device-place.ts';
import { DeviceStage, type StagedDevice } from './device-stage.ts';
import { GroupHolders } from './group-holders.ts';
import { findLocalPlace } from './local-place.ts';
import { LOCAL_PLUGIN, type LocalVolumeSpec } from './local-traits.ts';
import { isMountedOn, refuseOtherDirectory } from './same-directory.ts';

export interface LocalPluginParts {
  readonly host: Host;
  readonly layout: Layout;
  readonly mounter: Mounter;
  /** What is at, below or above one of these is nobody's volume, wherever links lead. */
  readonly denied: readonly AbsolutePath[];
}

/**
 * Guarantees, besides the contract of VolumePlugin: nothing is made, changed or removed in the volume but the group of
 * its files, and that for the pod which had it given to its group first. What is not blank is never formatted (INV-9).
 */
export function createLocalPlugin({ host, layout, mounter, denied }: LocalPluginParts): VolumePlugin {
  const holders = new GroupHolders(host);
  const stages = new DeviceStage({ host, layout, mounter });
  const devices = new DevicePlace({ host, layout, mounter, denied });

  /** Two pods of one volume never see two directories, nor one of them a disk; and no pod what a disk has left. */
  async function refuseOther(call: PublicationCall, stage: DirectoryBind['stage']): Promise<Result<void>> {
    const isAlone = (call.companions?.() ?? []).length === 0;
    if (isAlone && (stage !== undefined || call.facts.wasMountPoint !== true)) return done;
    if (stage !== undefined) {
      const seen = await host.mountIdOf(stage.path);
      // What has gone, or is another one, the bind tells.
      if (!seen.ok || seen.value !== stage.mountId) return seen.ok ? done : seen;
      return refuseOtherDirectory({ host, layout }, call, stage.path);
    }
    const { name, path } = localSpec(call.spec);
    const place = await host.perform(findLocalPlace, { path, from: path, name, denied });
    if (!place.ok) return place;
    const same = await refuseOtherDirectory({ host, layout }, call, place.value.path);
    if (!same.ok || place.value.kind === 'block') return same;
    const mounted = await isMountedOn(host, call, place.value.path);
    return mounted.ok ? done : mounted;
  }

  return createPodPlugin({
    name: LOCAL_PLUGIN,
    shared: {
      stage: (call) => stageFiles({ host, layout, denied, stages }, call),
      unstage: ({ spec }) => stages.unstage(layout.localStage(localSpec(spec).name)),
    },
    async publish(call) {
      const { publication } = call;
      const spec = localSpec(call.spec);
      if (hasDevice(spec)) return devices.publish(spec, call);
      const target = layout.target(spec, publication);
      const staged = call.facts.stagedMount;
      const { readOnly } = publication;
      const flags = bindFlags(spec, { readOnly, isDevice: staged !== undefined });
      if (!flags.ok) return flags;
      const { name, path: from } = spec;
      const stage = staged && { path: layout.localStage(name), mountId: staged.mountId };
      const same = await refuseOther(call, stage);
      if (!same.ok) return same;
      const bind = { path: target, name, from, denied, flags: flags.value, stage };
      const mount = await host.perform(bindLocalDirectory, bind);
      if (!mount.ok) return mount;
      const { mountId, device } = mount.value;
      const death = deathFor(mount.value, spec, call);
      if (death !== undefined) return fail(deathFailure(target, death, 'unknown'));
      const given = await holders.give({ path: target, mountId }, call);
      const identity: MountIdentity = { mountId, device };
      return given.ok ? ok({ mount: identity }) : doubtful<never>(given);
    },
    unpublish(call) {
      const { spec, publication } = call;
      if (hasDevice(spec)) return devices.unpublish(localSpec(spec), call);
      holders.forget(spec.id, publication.key);
      const target = layout.target(localSpec(spec), publication);
      const above = podDirectories(layout, publication.pod.uid);
      return inOrder(
        // What the path is on may have a server.
        () => mounter.unmount(target, { isRemote: true }),
        () => host.perform(removeLocalPlace, { path: target, above }),
      );
    },
  });
}

/** A directory of the machine may be read-only, whoever has made it so; a disk of ours is so by an error alone. */
function deathFor(
  seen: Extract<MountLookup, { mounted: true }>,
  { accessModes, mountOptions }: LocalVolumeSpec,
  { facts, publication: { readOnly } }: PublicationCall,
): DeathCause | undefined {
  const spec = { accessModes, mountOptions, readOnly: false };
  return facts.stagedMount === undefined ? seen.death : deathAtFirst(seen, { spec, readOnly });
}

interface StageParts extends Pick<LocalPluginParts, 'host' | 'layout' | 'denied'> {
  readonly stages: DeviceStage;
}

/** A directory is only asked whether something is mounted on it; who has the device itself needs nothing. */
async function stageFiles(
  { host, layout, denied, stages }: StageParts,
  call: VolumeCall,
): Promise<Result<Staged>> {
  const spec = localSpec(call.spec);
  const { name, path } = spec;
  if (hasDevice(spec)) return ok({ stagedMount: undefined });
  const place = await host.perform(findLocalPlace, { path, from: path, name, denied });
  if (!place.ok) return place;
  if (place.value.kind === 'block') return stages.stage(deviceOf(spec, layout), place.value.path, call);
  const mounted = await isMountedOn(host, call, place.value.path);
  if (!mounted.ok) return mounted;
  return ok({ stagedMount: undefined, ...(mounted.value ? { isMountPoint: true } : {}) });
}

function deviceOf({ name, fsType, mountOptions }: LocalVolumeSpec, layout: Layout): StagedDevice {
  const title = `PersistentVolume ${name}`;
  return {
    title,
    fsType,
    mountOptions,
    target: layout.localStage(name),
    intent: layout.formatIntent(name),
  };
}

function localSpec(spec: VolumeSpec): LocalVolumeSpec {
  assert(spec.kind === 'local', 'the plugin of local volumes is given local volumes');
  return spec;
}
