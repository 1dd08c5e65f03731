/** Is the cluster what it wishes, when all is healed? Attached and in use is what pods here have, and nothing else. */
import { iscsiVolumeId } from '../../../plugins/iscsi/iscsi-traits.ts';
import { iscsiPlaceOf } from '../iscsi-volumes.ts';
import { csiVolumeId, type VolumeId } from '../../../plugins/volume.ts';
import type { Wanted } from '../final-places.ts';
import { csiOf } from '../pod-volume.ts';
import type { Simulation } from '../simulate.ts';
import { listedIn } from './attach-controller.ts';
import { ATTACHMENTS, CLAIMS, CSI_NODES } from './cluster-objects.ts';
import { isAttachable } from './cluster-plan.ts';
import { at, nameOf, textsOf, uidOf } from './json-object.ts';

/** The first difference, for people; undefined when there is none, and for a machine alone. */
export function clusterDiffers(sim: Simulation, { places, waiting }: Wanted): string | undefined {
  const { cluster } = sim;
  // What a record that cannot be read is of stays reported: nobody else knows.
  if (cluster === undefined || waiting.size > 0 || sim.world.trouble.recordsDamaged) return undefined;
  const wanted = new Set(
    places.flatMap(({ pod, volume }) => {
      const csi = csiOf(pod, volume);
      if (csi === undefined || csi.ephemeral || !isAttachable(sim.plan, csi.driver)) return [];
      return [csiVolumeId(csi.driver, csi.handle)];
    }),
  );
  // The cluster attaches nothing of iSCSI, and keeps it from other nodes.
  const ofIscsi = places.flatMap(({ volume }) =>
    volume.kind === 'iscsi' ? [iscsiVolumeId(iscsiPlaceOf(volume))] : [],
  );
  const inUse = new Set<string>([...wanted, ...ofIscsi]);
  const node = cluster.node();
  const attached = cluster.store
    .list(ATTACHMENTS)
    .map(([, one]) => cluster.view.volumeOfAttachment(one)?.unique ?? nameOf(one));
  return (
    listDiffers('in use', textsOf(at(node, 'status')['volumesInUse']), inUse) ??
    listDiffers('listed as attached', listedIn(node), wanted) ??
    listDiffers('attached', attached, wanted) ??
    attachmentsDiffer(sim, wanted) ??
    driversDiffer(sim) ??
    sizesDiffer(sim, places)
  );
}

/** What stands was set up under the attachment that the cluster has now, not under one before it (FN-01). */
function attachmentsDiffer(sim: Simulation, wanted: ReadonlySet<string>): string | undefined {
  for (const [, attachment] of sim.cluster?.store.list(ATTACHMENTS) ?? []) {
    const volume = sim.cluster?.view.volumeOfAttachment(attachment)?.unique;
    if (volume === undefined || !wanted.has(volume)) continue;
    const known = sim
      .view()
      ?.reconciler.actual()
      .get(volume as VolumeId)?.attachmentUid;
    if (known !== uidOf(attachment))
      return `${volume} stands under attachment ${known}, not ${uidOf(attachment)}`;
  }
  return undefined;
}

/** What this node has grown is told, and nobody waits for it any more. */
function sizesDiffer(sim: Simulation, places: Wanted['places']): string | undefined {
  for (const { pod, volume } of places) {
    const csi = csiOf(pod, volume);
    if (csi === undefined || volume.kind !== 'csi') continue;
    const known = sim.view()?.reconciler.actual().get(csiVolumeId(csi.driver, csi.handle));
    const claim = sim.cluster?.store.get(CLAIMS, volume.disk.claimName);
    const { storage } = at(claim, 'status', 'allocatedResourceStatuses');
    const hasGrown = known?.sizeBytes !== undefined && BigInt(known.sizeBytes) >= volume.disk.bytes;
    if (hasGrown && storage !== undefined && storage !== 'NodeResizeInfeasible')
      return `claim ${volume.disk.claimName} is told to be ${String(storage)}, and has grown`;
  }
  return undefined;
}

function listDiffers(
  what: string,
  names: readonly string[],
  wanted: ReadonlySet<string>,
): string | undefined {
  const extra = names.find((name) => !wanted.has(name));
  if (extra !== undefined) return `${extra} is ${what}, and no pod wants it`;
  const missing = [...wanted].find((name) => !names.includes(name));
  return missing === undefined ? undefined : `${missing} is not ${what}`;
}

/** The scheduler is told of each driver that is here. */
function driversDiffer(sim: Simulation): string | undefined {
  const [csiNode] = sim.cluster?.store.list(CSI_NODES).map(([, one]) => one) ?? [];
  const { drivers } = at(csiNode, 'spec');
  const told = Array.isArray(drivers) ? drivers.map((one) => nameOf({ metadata: one })) : [];
  const here = sim.view()?.drivers.list() ?? [];
  const missing = here.find(({ name }) => !told.includes(name));
  return missing === undefined ? undefined : `the CSINode does not name driver ${missing.name}`;
}
