/** The places that a verb is about to touch, with what is known to be mounted there. */
import type { AbsolutePath, MountIdentity } from '../../mount/host.ts';
import type { Layout } from '../layout/layout.ts';
import type { PublicationCall, VolumeCall } from '../plugin.ts';
import { RECONSTRUCTED, isBlock, type PublicationSpec, type VolumeSpec } from '../volume.ts';

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

/** Those of a publication, its mount point first; none of what is bound from the host or mounted by others. */
export function placesOf(
  layout: Layout,
  { spec, facts, mount, isDoubted }: Pick<PublicationCall, 'spec' | 'facts' | 'mount' | 'isDoubted'>,
  publication: PublicationSpec,
): readonly WatchedPlace[] {
  if (spec.kind === 'host-path' || spec.kind === 'image') return [];
  const common = { spec, isDoubted, staged: facts.needs.stage ? facts.stagedMount : undefined };
  const place = { ...common, path: layout.mountPoint(spec, publication), proven: mount };
  // Found on disk, its medium is a guess.
  const isPlain = spec.kind === 'empty-dir' && spec.medium === 'disk' && publication.origin !== RECONSTRUCTED;
  if (!isBlock(spec)) return [{ ...place, isPlain }];
  const { link, published } = layout.blockPublication(publication);
  return [place, ...[link, published].map((path) => ({ ...common, path, proven: undefined }))];
}

/** Undefined for a volume that is not staged. */
export function stageOf(layout: Layout, { spec, facts }: VolumeCall): WatchedPlace | undefined {
  const path = facts.needs.stage ? stagingPathOf(layout, spec) : undefined;
  if (path === undefined) return undefined;
  const { stagedMount: proven, isStageDoubted: isDoubted } = facts;
  return { spec, path, proven, isDoubted, staged: undefined };
}

function stagingPathOf(layout: Layout, spec: VolumeSpec): AbsolutePath | undefined {
  if (spec.kind === 'local') return layout.localStage(spec.name);
  return spec.kind === 'csi' ? layout.stagingPath(spec) : undefined;
}
