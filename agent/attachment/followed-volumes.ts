/** The volumes whose attachments matter here, by the names of those. Pure. */
import type { CsiVolumeSpec } from '../../plugins/volume.ts';
import type { ActualState, ActualVolume } from '../../reconciler/model/actual-state.ts';
import { isReported } from './attachment-rung.ts';

export interface FollowedVolume {
  readonly spec: CsiVolumeSpec;
  /** Its VolumeAttachment's. */
  readonly name: string;
  readonly volume: ActualVolume;
}

export type FollowedVolumes = ReadonlyMap<string, FollowedVolume>;

export function followedVolumes(
  actual: ActualState,
  nameOf: (spec: CsiVolumeSpec) => string,
): FollowedVolumes {
  const followed = new Map<string, FollowedVolume>();
  for (const volume of actual.values()) {
    const { spec } = volume;
    if (spec.kind !== 'csi' || !isReported(volume)) continue;
    const name = nameOf(spec);
    followed.set(name, { spec, name, volume });
  }
  return followed;
}
