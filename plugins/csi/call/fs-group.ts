/** Who gives a CSI volume to the pod's group, the driver or we, and our part of it (KV-C13, KV-C14, KV-C15). */
import { done, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../../mount/host.ts';
import { giveToGroup } from '../../pod/group-ownership.ts';
import type { CsiVolumeSpec, FsGroup, PublicationSpec } from '../../volume.ts';
import type { DriverInstance } from '../driver/driver.ts';
import { NodeServiceCapability_RPC_Type as NodeCapability } from '../wire/generated/csi.ts';

type Capable = Pick<DriverInstance, 'nodeCapabilities'>;
type Grouped = Pick<PublicationSpec, 'readOnly' | 'fsGroup'>;

export interface FsGroupRequest {
  /** The life of the driver that was asked to publish: what it was delegated must not be done twice. */
  readonly driver: Capable;
  readonly spec: CsiVolumeSpec;
  readonly publication: Grouped;
  /** Where the volume was published, and what was seen to be mounted there then. */
  readonly path: AbsolutePath;
  readonly mountId: number;
  /** Told what a long walk does, about once a second. */
  readonly progress: (text: string) => void;
  readonly stillWanted: () => boolean;
}

/**
 * `volume_mount_group` of Stage and Publish: the gid where the driver has VOLUME_MOUNT_GROUP, otherwise empty.
 * As in the kubelet, such a driver is told whatever fsGroupPolicy says, and of a read-only publication, too.
 */
export function volumeMountGroup(driver: Capable, spec: CsiVolumeSpec, fsGroup: FsGroup | undefined): string {
  return fsGroup === undefined || !isGroupTold(driver, spec) ? '' : String(fsGroup.gid);
}

/** Is `volume_mount_group` sent for a pod that has a group? */
export function isGroupTold(driver: Capable, { mode }: CsiVolumeSpec): boolean {
  return mode !== 'Block' && isDelegated(driver);
}

/** Is it for us to walk the volume after it was published? */
export function isFsGroupOurs(driver: Capable, spec: CsiVolumeSpec, publication: Grouped): boolean {
  if (publication.fsGroup === undefined || publication.readOnly) return false;
  if (spec.mode === 'Block' || isDelegated(driver)) return false;
  switch (spec.fsGroupPolicy) {
    case 'None':
      return false;
    case 'File':
      return true;
    case 'ReadWriteOnceWithFSType':
      return spec.fsType !== '' && (spec.lifecycle === 'Ephemeral' || isForOneNode(spec));
  }
}

/**
 * Gives the published volume to the pod's group where that is ours to do; otherwise success, and nothing is touched.
 * Call it after each NodePublishVolume that was answered OK: a walk that was cut short is taken up again. Every failure
 * has effect `unknown`; `no-longer-wanted` when the wish changed during the walk.
 */
export async function applyFsGroup(
  host: Pick<Host, 'changeOwnership'>,
  { driver, spec, publication, ...walk }: FsGroupRequest,
): Promise<Result<void>> {
  const { fsGroup } = publication;
  if (fsGroup === undefined || !isFsGroupOurs(driver, spec, publication)) return done;
  return giveToGroup(host, { ...walk, volume: spec.id, fsGroup, readOnly: false });
}

function isDelegated({ nodeCapabilities }: Capable): boolean {
  return nodeCapabilities.has(NodeCapability.VOLUME_MOUNT_GROUP);
}

/** Shared with other nodes, a volume is not ours to change: they may have another idea of its groups. */
function isForOneNode({ accessModes }: CsiVolumeSpec): boolean {
  return accessModes.includes('ReadWriteOnce') || accessModes.includes('ReadWriteOncePod');
}
