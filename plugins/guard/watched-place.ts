/** The places that a verb is about to touch, with what is known to be mounted there. */
import type { AbsolutePath, MountIdentity } from '../../mount/host.ts';
import type { Layout } from '../layout/layout.ts';
import type { PublicationCall, VolumeCall } from '../plugin.ts';
import type { VolumeTraits } from '../traits/volume-traits.ts';
import { RECONSTRUCTED, type PublicationSpec, type VolumeSpec } from '../volume.ts';

/** A place, and what is known of it. */
export interface WatchedPlace {
  readonly spec: VolumeSpec;
  readonly path: AbsolutePath;
  /** Proven in this boot. */
  readonly proven: MountIdentity | undefined;
  /** Whether it is there still was in doubt before. */
  readonly isDoubted: true | undefined;
  /** What the volume of a publication is staged as in this boot. */
  readonly staged: MountIdentity | undefined;
  /** Nothing of ours is ever mounted there. */
  readonly isPlain?: boolean;
}

export interface PlaceParts {
  readonly layout: Layout;
  /** What the volumes are like whose places these are. */
  readonly traits: VolumeTraits;
}

/** Those of a publication, its mount point first; none of what is bound from the host or mounted by others. */
export function placesOf(
  { layout, traits }: PlaceParts,
  { spec, facts, mount, isDoubted }: Pick<PublicationCall, 'spec' | 'facts' | 'mount' | 'isDoubted'>,
  publication: PublicationSpec,
): readonly WatchedPlace[] {
  if (traits.isInPlace === true && traits.orphanPath === undefined) return [];
  const common = { spec, isDoubted, staged: facts.needs.stage ? facts.stagedMount : undefined };
  const place = { ...common, path: layout.mountPoint(spec, publication), proven: mount };
  // What it is like is a guess when it was found on disk.
  const isPlain = traits.isPlain?.(spec) === true && publication.origin !== RECONSTRUCTED;
  if (traits.isDevice?.(spec) !== true) return [{ ...place, isPlain }];
  const { link, published } = layout.devicePublication(spec, publication);
  const others = [link, published].filter((path) => path !== place.path);
  return [place, ...others.map((path) => ({ ...common, path, proven: undefined }))];
}

/** Undefined for a volume that is not staged. */
export function stageOf(
  { layout, traits }: PlaceParts,
  { spec, facts }: VolumeCall,
): WatchedPlace | undefined {
  const path = facts.needs.stage ? traits.stagingPath?.(spec, layout) : undefined;
  if (path === undefined) return undefined;
  const { stagedMount: proven, isStageDoubted: isDoubted } = facts;
  return { spec, path, proven, isDoubted, staged: undefined };
}
