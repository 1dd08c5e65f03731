/** The rung `attach` of CSI volumes as a port: this node calls the driver, or a cluster grants the volume to it. */
import type { Result } from '../../../mount/failure.ts';
import type { Cancel } from '../../../mount/host.ts';
import type { Attached, VolumeCall } from '../../plugin.ts';
import type { CsiVolumeSpec, VolumeId } from '../../volume.ts';

/** Who makes and ends attachments. Both verbs are idempotent, and answer `no-longer-wanted` when that is so. */
export interface Attachment {
  /** Whether this volume has such a rung; undefined while it cannot be known. Never asked of inline volumes. */
  isNeeded(spec: CsiVolumeSpec): boolean | undefined;
  /** What the driver calls this node, by which `attach` names it; absent where others attach. */
  node?(spec: CsiVolumeSpec): string | undefined;
  /**
   * Never waits for somebody else's decision: what is not granted yet is `not-attached`, with the effect `unknown`
   * where `detach` has to take back that it was asked for.
   */
  attach(spec: CsiVolumeSpec, call: VolumeCall): Promise<Result<Attached>>;
  /** It answers OK for a volume that is not attached. */
  detach(spec: CsiVolumeSpec, call: VolumeCall): Promise<Result<void>>;
}

/** Where attachments are granted: one write tells of all that is asked for meanwhile, so many ask at once. */
export const GRANT_LANE = 'attachments of the cluster';

/** Attachments that come and go without a call of ours. */
export interface GrantedAttachment extends Attachment {
  /** Called when one was given or withdrawn: another try of this volume is worth it. */
  onChange(listener: (volume: VolumeId) => void): Cancel;
}
