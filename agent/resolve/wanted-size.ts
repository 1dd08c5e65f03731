/** How large a volume should be on this node, and why it is not to be grown yet (KEP-531, KEP-1790). */
import type { WantedSize } from '../../reconciler/model/desired-state.ts';
import { isMoreThan } from '../../plugins/volume.ts';
import {
  objectKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
} from '../../kubernetes/objects/objects.ts';
import { sizeText } from '../../mount/text/size-text.ts';

/** Nothing here may be written, so nothing can be grown. */
export const HELD_READ_ONLY = 'read-only';

/** `expandSecretMissing`: why the secret that growing needs is not at hand. Undefined for a volume of no known size. */
export function wantedSize(
  volume: PersistentVolume,
  claim: PersistentVolumeClaim,
  expandSecretMissing: string | undefined,
): WantedSize | undefined {
  if (volume.capacityBytes === undefined) return undefined;
  const isNodesTurn = claim.resizeStatus.startsWith('NodeResize');
  return {
    bytes: isNodesTurn ? (claim.allocatedBytes ?? volume.capacityBytes) : volume.capacityBytes,
    knownBytes: claim.statusBytes,
    held: isReadOnly(volume) ? HELD_READ_ONLY : (heldByClaim(volume, claim) ?? expandSecretMissing),
    claimLarger: claimLarger(volume, claim),
  };
}

/**
 * A cluster does not bind such a claim unless the volume names it (`checkVolumeSatisfyClaim`), but one that is bound
 * may ask for more at any time: that is how a volume is grown. Here nobody remembers which it is, so it is told only.
 */
function claimLarger(
  { name, capacityBytes }: PersistentVolume,
  { requestedBytes, ...claim }: PersistentVolumeClaim,
): string | undefined {
  if (capacityBytes === undefined || requestedBytes === undefined) return undefined;
  if (!isMoreThan(requestedBytes, capacityBytes)) return undefined;
  return (
    `PersistentVolumeClaim ${objectKey(claim)} asks for ${sizeText(requestedBytes)}, ` +
    `and its PersistentVolume ${name} has ${sizeText(capacityBytes)}`
  );
}

function isReadOnly({ source, accessModes }: PersistentVolume): boolean {
  return (source.kind === 'csi' && source.readOnly) || accessModes.every((one) => one === 'ReadOnlyMany');
}

function heldByClaim(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  const { resizeStatus, statusBytes, allocatedBytes } = claim;
  if (claim.nodeExpansionNotRequired) return 'the claim says that the node has nothing to do for it';
  if (resizeStatus === 'NodeResizePending' || resizeStatus === 'NodeResizeInProgress') return undefined;
  if (resizeStatus === 'NodeResizeInfeasible')
    return 'it was found to be impossible on the node (NodeResizeInfeasible)';
  // A status that is not known belongs to somebody else (API of ClaimResourceStatus).
  if (resizeStatus !== '') return `the cluster is not done with its part (${resizeStatus})`;
  const isBetween =
    allocatedBytes !== undefined &&
    statusBytes !== undefined &&
    volume.capacityBytes !== undefined &&
    isMoreThan(volume.capacityBytes, statusBytes);
  // A resizer that writes allocatedResources says when it is the node's turn (kubelet `runPreCheck`).
  return isBetween ? 'the cluster is not done with its part' : undefined;
}
