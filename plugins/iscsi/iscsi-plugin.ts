/** iscsi: a disk of a target, mounted once on this node and bound into each pod that names it. */
import { assert, done, fail, ok, type Result } from '../../mount/failure.ts';
import type { Host, MountIdentity } from '../../mount/host.ts';
import { createTurns } from '../../mount/process/turns.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { deathAtFirst, deathFailure } from '../guard/dead-file-system.ts';
import type { Layout } from '../layout/layout.ts';
import { sha256Hex } from '../layout/layout.ts';
import { podDirectories } from '../layout/pod-directory.ts';
import { bindStagedRoot, removeLocalPlace } from '../local/bind-directory.ts';
import { bindFlags } from '../local/bind-options.ts';
import { DeviceStage, type StagedDevice } from '../local/device-stage.ts';
import { GroupHolders } from '../local/group-holders.ts';
import type { PublicationCall, Staged, VolumeCall, VolumePlugin } from '../plugin.ts';
import { createPodPlugin } from '../pod/pod-plugin.ts';
import { doubtful, inOrder } from '../steps.ts';
import type { VolumeSpec } from '../volume.ts';
import { IscsiDisks } from './iscsi-disk.ts';
import { ISCSI_PLUGIN, type IscsiVolumeSpec, titleOf } from './iscsi-traits.ts';
import { removeIscsiStage } from './kubelet-stage.ts';

export interface IscsiPluginParts {
  readonly host: Host;
  readonly layout: Layout;
  readonly mounter: Mounter;
}

const STAGE_MODE = 0o750;

/**
 * Guarantees, besides the contract of VolumePlugin: what is not blank is never formatted (INV-9); a session is ended
 * only when the agent has begun it and nobody on this machine uses a disk of it; of one target one thing at a time is
 * done, so that no session is ended under who has just found it.
 */
export function createIscsiPlugin(parts: IscsiPluginParts): VolumePlugin {
  const volumes = new IscsiVolumes(parts);
  const plugin = createPodPlugin({
    name: ISCSI_PLUGIN,
    shared: { stage: (call) => volumes.stage(call), unstage: (call) => volumes.unstage(call) },
    publish: (call) => volumes.publish(call),
    unpublish: (call) => volumes.unpublish(call),
  });
  // A portal that is silent fills the lane of its own target.
  return { ...plugin, lane: (spec) => `${ISCSI_PLUGIN} ${iscsiSpec(spec).iqn}` };
}

class IscsiVolumes {
  readonly #parts: IscsiPluginParts;
  readonly #inTurn = createTurns();
  readonly #disks: IscsiDisks;
  readonly #devices: DeviceStage;
  readonly #groups: GroupHolders;

  constructor(parts: IscsiPluginParts) {
    this.#parts = parts;
    this.#disks = new IscsiDisks(parts);
    this.#devices = new DeviceStage(parts);
    this.#groups = new GroupHolders(parts.host);
  }

  stage(call: VolumeCall): Promise<Result<Staged>> {
    const spec = iscsiSpec(call.spec);
    return this.#ofTarget(call, () => this.#stage(spec, call));
  }

  unstage(call: VolumeCall): Promise<Result<void>> {
    const { host, layout, mounter } = this.#parts;
    const spec = iscsiSpec(call.spec);
    const target = layout.iscsiStage(spec);
    return this.#ofTarget(call, () =>
      inOrder(
        () => mounter.unmount(target),
        () => this.#disks.leave(spec),
        // What tells of the volume goes last.
        () => host.perform(removeIscsiStage, { path: target, iqn: spec.iqn }),
      ),
    );
  }

  /** What has waited may not be wanted any more. */
  #ofTarget<T>(call: VolumeCall, task: () => Promise<Result<T>>): Promise<Result<T>> {
    return this.#inTurn(iscsiSpec(call.spec).iqn, async () => {
      if (call.stillWanted()) return task();
      const message = 'the wish changed while this waited for another volume of its target';
      return fail({ code: 'no-longer-wanted', message, effect: 'none' });
    });
  }

  async #stage(spec: IscsiVolumeSpec, call: VolumeCall): Promise<Result<Staged>> {
    const { host, layout } = this.#parts;
    const volume = deviceOf(spec, layout);
    const before = await host.lookUpMount(volume.target);
    if (!before.ok) return before;
    const mounted = before.value.mounted ? before.value.device : undefined;
    // It tells of the volume before anything is begun of it. Over a mount it would be the root of that.
    const placed = mounted !== undefined ? done : await host.makeDirectory(volume.target, STAGE_MODE);
    if (!placed.ok) return placed;
    const disk = await this.#disks.connect(spec, call, mounted);
    if (!disk.ok) return disk;
    const { node, device } = disk.value;
    const number = await host.deviceOf(node);
    if (!number.ok) return doubtful<never>(number);
    if (number.value !== device) {
      const message = `${node} is device ${number.value ?? 'no device'}, and ${titleOf(spec)} is ${device}`;
      return fail({ code: 'device-changed', message, effect: 'unknown', blocker: node });
    }
    const staged = await this.#devices.stage(volume, node, call);
    if (!staged.ok) return doubtful<never>(staged);
    const proven = await this.#disks.prove(spec, device);
    return proven.ok ? staged : doubtful<never>(proven);
  }

  async publish(call: PublicationCall): Promise<Result<{ readonly mount: MountIdentity }>> {
    const { publication, facts } = call;
    const { host, layout } = this.#parts;
    const spec = iscsiSpec(call.spec);
    const target = layout.target(spec, publication);
    const root = layout.iscsiStage(spec);
    const title = titleOf(spec);
    if (facts.stagedMount === undefined) {
      const message = `${title} is not mounted at ${root}`;
      return fail({ code: 'staged-not-mounted', message, effect: 'none', blocker: root });
    }
    const { mountOptions } = spec;
    const { readOnly } = publication;
    const flags = bindFlags({ name: title, mountOptions }, { readOnly, isDevice: true });
    if (!flags.ok) return flags;
    const { mountId: rootMountId } = facts.stagedMount;
    const bind = { path: target, title, root, rootMountId, flags: flags.value };
    const mount = await host.perform(bindStagedRoot, bind);
    if (!mount.ok) return mount;
    const { mountId, device } = mount.value;
    const death = deathAtFirst(mount.value, { spec, readOnly });
    if (death !== undefined) return fail(deathFailure(target, death, 'unknown'));
    const given = await this.#groups.give({ path: target, mountId }, call);
    return given.ok ? ok({ mount: { mountId, device } }) : doubtful<never>(given);
  }

  unpublish({ spec, publication }: PublicationCall): Promise<Result<void>> {
    const { host, layout, mounter } = this.#parts;
    this.#groups.forget(spec.id, publication.key);
    const target = layout.target(iscsiSpec(spec), publication);
    const above = podDirectories(layout, publication.pod.uid);
    return inOrder(
      () => mounter.unmount(target),
      () => host.perform(removeLocalPlace, { path: target, above }),
    );
  }
}

function deviceOf(spec: IscsiVolumeSpec, layout: Layout): StagedDevice {
  const { fsType, mountOptions, readOnly, id } = spec;
  return {
    title: titleOf(spec),
    fsType,
    mountOptions: readOnly && !mountOptions.includes('ro') ? [...mountOptions, 'ro'] : mountOptions,
    target: layout.iscsiStage(spec),
    intent: layout.formatIntent(`iscsi-${sha256Hex(id)}`),
  };
}

function iscsiSpec(spec: VolumeSpec): IscsiVolumeSpec {
  assert(spec.kind === 'iscsi', 'the plugin of iSCSI volumes is given iSCSI volumes');
  return spec;
}
