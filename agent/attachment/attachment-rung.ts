/** What a volume's rung `attach` says to a cluster: in use, waited for, or to be lost. Pure. */
import { csiVolumeId } from '../../plugins/volume.ts';
import { type ActualState, type ActualVolume, isSetUp } from '../../reconciler/model/actual-state.ts';

/** Whatever may keep the device busy here: what is found on the disk without a record, too. */
export function isReported(volume: ActualVolume): boolean {
  const { spec, attached, needs, reconstructed } = volume;
  if (spec.kind !== 'csi' || spec.lifecycle === 'Ephemeral') return false;
  if (attached.kind !== 'absent') return true;
  return (needs.attach || reconstructed === true) && isSetUp(volume);
}

/** Its rung is being climbed, or in doubt. */
export function isAwaited({ attached }: ActualVolume): boolean {
  return attached.kind === 'unsure';
}

/** Its rung is being climbed, or in doubt, and it was granted before: what it was granted stays as it was. */
function isGoing(volume: ActualVolume): boolean {
  return isAwaited(volume) && volume.publishContext !== undefined;
}

/** Nothing is known of a grant: it is asked for often. */
export function isComing(volume: ActualVolume): boolean {
  return isAwaited(volume) && volume.publishContext === undefined;
}

/** What its attachment says counts: it is here, or was, and goes because of what that says by now. */
export function isTold(volume: ActualVolume): boolean {
  return isReported(volume) && (isGoing(volume) || mayBeLost(volume));
}

/** It is here, or something of it stands: not one that only waits to come here. */
export function mayBeLost(volume: ActualVolume): boolean {
  return volume.attached.kind === 'present' || isSetUp(volume);
}

/** Something of it stands by an attachment, and without that it is somebody else's. */
export function isLosable(volume: ActualVolume): boolean {
  return volume.needs.attach && isReported(volume) && isSetUp(volume);
}

/** A call of this node has attached it, and nothing of it stands: that the cluster does not have it is no loss. */
export function isOnlyCalled(volume: ActualVolume): boolean {
  return volume.attachedNode !== undefined && isReported(volume) && !isSetUp(volume);
}

/** The names of volumes in use, as a Node has them. */
export function namesInUse(actual: ActualState): ReadonlySet<string> {
  const names = new Set<string>();
  for (const volume of actual.values()) {
    const { spec } = volume;
    if (spec.kind === 'csi' && isReported(volume)) names.add(csiVolumeId(spec.driver, spec.volumeHandle));
    // The cluster attaches nothing of it, and keeps it from other nodes while it is in use here.
    if (spec.kind === 'iscsi' && isSetUp(volume)) names.add(spec.id);
  }
  return names;
}

/** The drivers whose volumes are believed to be here, or on their way. */
export function driversOf(actual: ActualState): ReadonlySet<string> {
  const specs = [...actual.values()].map(({ spec }) => spec);
  return new Set(specs.flatMap((spec) => (spec.kind === 'csi' ? [spec.driver] : [])));
}
