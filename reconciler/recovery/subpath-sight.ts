/** Which binds of parts of volumes the kernel shows, by the place of the volume that they are of. Pure. */
import type { Failure } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { type PublicationKey, publicationKey, type PublicationSpec } from '../../plugins/volume.ts';

export type BoundSubpaths = ReadonlyMap<PublicationKey, ReadonlySet<AbsolutePath>>;

export function boundSubpaths(table: MountTable, layout: Layout): BoundSubpaths {
  const bound = new Map<PublicationKey, Set<AbsolutePath>>();
  for (const { target } of table.entries) {
    const owner = layout.ownerOf(target);
    if (owner?.kind !== 'subpath') continue;
    const key = publicationKey(owner.pod, owner.specName);
    bound.set(key, (bound.get(key) ?? new Set()).add(target));
  }
  return bound;
}

/**
 * Each of the parts has its mount, and there are no others; always so of a place that has none. The verb that binds
 * them is the judge of what they are.
 */
export function areSubpathsBound(bound: BoundSubpaths, place: PublicationSpec, layout: Layout): boolean {
  const wanted = place.subpaths;
  if (wanted === undefined) return true;
  const there = bound.get(place.key) ?? new Set();
  return there.size === wanted.length && wanted.every((one) => there.has(layout.subpath(place, one)));
}

/** The first of the parts that is not bound any more; undefined: all are. What lies over a bind is not looked at. */
export function lostSubpath(table: MountTable, place: PublicationSpec, layout: Layout): Failure | undefined {
  const lost = place.subpaths?.find((one) => table.named(layout.subpath(place, one)).length === 0);
  if (lost === undefined) return undefined;
  const { container, index, path } = lost;
  const where = `container ${container}, volumeMounts[${index}]`;
  const message = `the bind of sub-path ${JSON.stringify(path)} for ${where}, is gone`;
  return { code: 'subpath-lost', message, effect: 'unknown', blocker: layout.subpath(place, lost) };
}
