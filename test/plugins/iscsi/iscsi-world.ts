/** A machine in memory beside a target of iSCSI, and a volume on one of its disks. */
import { type AbsolutePath, below } from '../../../mount/host.ts';
import { createIscsiPlugin } from '../../../plugins/iscsi/iscsi-plugin.ts';
import { iscsiVolumeId, type IscsiVolumeSpec } from '../../../plugins/iscsi/iscsi-traits.ts';
import type { PublicationCall, VolumePlugin } from '../../../plugins/plugin.ts';
import { doubtful, inOrder } from '../../../plugins/steps.ts';
import { value } from '../../value.ts';
import { accept } from '../accept.ts';
import { callOf, freshHost, layout, mounterOf } from '../local-world.ts';
import type { DeviceOnDisk, MemoryHost } from '../memory-host.ts';

export const IQN = 'iqn.2026-11.example:store';
export const PORTAL = '10.0.0.1:3260';
export const OTHER_PORTAL = '10.0.0.2:3260';

export function iscsiVolume(more: Partial<IscsiVolumeSpec> = {}): IscsiVolumeSpec {
  const place = { portal: PORTAL, iqn: IQN, lun: 1, iface: 'default', ...more };
  return {
    kind: 'iscsi',
    portals: [],
    fsType: '',
    mountOptions: [],
    readOnly: false,
    chap: { discovery: false, session: false },
    accessModes: [],
    ...place,
    id: iscsiVolumeId(place),
  };
}

/** The disks 1 and 2 of a target with two portals; on each there is what is told. */
export function targetHost(content: DeviceOnDisk = { kind: 'file-system', type: 'ext4' }): MemoryHost {
  const host = freshHost();
  for (const path of [below(layout.iscsiStages, 'iface-default'), layout.sessionNotes])
    host.plant(path, { kind: 'directory', mode: 0o750 });
  for (const lun of [1, 2]) host.plantDevice(nodeOf(lun), content);
  host.initiator.addTarget({ iqn: IQN, portals: [PORTAL, OTHER_PORTAL], luns: [1, 2] });
  return host;
}

/** As the memory host calls it. */
export function nodeOf(lun: number): AbsolutePath {
  return `/dev/disk-iqn-2026-11-example-store-${lun}` as AbsolutePath;
}

export function stageOf(spec: IscsiVolumeSpec): AbsolutePath {
  return layout.iscsiStage(spec);
}

export function iscsiPlugin(host: MemoryHost): VolumePlugin {
  return createIscsiPlugin({ host, layout, mounter: mounterOf(host) });
}

export function iscsiCall(spec: IscsiVolumeSpec = iscsiVolume()): PublicationCall {
  const call = callOf(spec);
  const key = call.publication.key.replace('orphan', 'data') as PublicationCall['publication']['key'];
  return { ...call, publication: { ...call.publication, key, specName: 'data' } };
}

/** As the reconciler calls: what was staged is known to the publish. */
export async function stageAndPublish(plugin: VolumePlugin, call: PublicationCall): Promise<PublicationCall> {
  const { stagedMount } = value(await plugin.stage(call));
  const facts = { ...call.facts, stagedMount };
  accept(await plugin.publish({ ...call, facts }));
  return { ...call, facts };
}

/** Both rungs of the ladder as one, up and down. */
export function wholeLadder(plugin: VolumePlugin): VolumePlugin {
  return {
    ...plugin,
    async publish(call) {
      const staged = await plugin.stage(call);
      if (!staged.ok) return staged;
      const { stagedMount } = staged.value;
      return doubtful(await plugin.publish({ ...call, facts: { ...call.facts, stagedMount } }));
    },
    unpublish: (call) =>
      inOrder(
        () => plugin.unpublish(call),
        () => plugin.unstage(call),
      ),
  };
}
