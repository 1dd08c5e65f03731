/** What the floors above ask about a volume, answered by the traits of its kind. */
import type { AbsolutePath } from '../../mount/host.ts';
import type { Layout } from '../layout/layout.ts';
import type { AccessMode, VolumeSpec, WantedImage } from '../volume.ts';
import { traitsOf } from './kinds.ts';

/** Who is asked to set it up; undefined: it is done here, and no call can take effect late. */
export function driverOf(spec: VolumeSpec): string | undefined {
  return traitsOf(spec).driver?.(spec);
}

/** Where it is staged for all of its pods; undefined: it has no such place. */
export function stagingPathOf(spec: VolumeSpec, layout: Layout): AbsolutePath | undefined {
  return traitsOf(spec).stagingPath?.(spec, layout);
}

/** Pods have a device of it and not files. */
export function isDevice(spec: VolumeSpec): boolean {
  return traitsOf(spec).isDevice?.(spec) === true;
}

/** The image that what starts the containers mounts; undefined: it is set up here. */
export function imageOf(spec: VolumeSpec): WantedImage | undefined {
  return traitsOf(spec).image?.(spec);
}

/** Written in its pod: unpublished once, it has ended, and it is never attached. */
export function isInline(spec: VolumeSpec): boolean {
  return traitsOf(spec).isInline?.(spec) === true;
}

/** The directory of what it has on this node for all of its pods; undefined: it has none. */
export function stagingDirectoryOf(spec: VolumeSpec, layout: Layout): AbsolutePath | undefined {
  return traitsOf(spec).stagingDirectory?.(spec, layout);
}

/** Nobody wanted it: it was found where volumes are, and can only be taken down. */
export function isOrphan(spec: VolumeSpec): boolean {
  return orphanPathOf(spec) !== undefined;
}

/** Where it was found, if nobody wanted it. */
export function orphanPathOf(spec: VolumeSpec): AbsolutePath | undefined {
  return traitsOf(spec).orphanPath?.(spec);
}

/** What it is called where its id is shown beside. */
export function nameOf(spec: VolumeSpec): string {
  return traitsOf(spec).name(spec);
}

/** What its driver calls it; undefined: it has no driver. */
export function handleOf(spec: VolumeSpec): string | undefined {
  return traitsOf(spec).handle?.(spec);
}

/** The PersistentVolume it is of, by name; undefined: of none. */
export function persistentVolumeOf(spec: VolumeSpec): string | undefined {
  return traitsOf(spec).persistentVolume?.(spec);
}

/** How it may be used, by the wish; empty: the wish does not say. */
export function accessModesOf(spec: VolumeSpec): readonly AccessMode[] {
  return traitsOf(spec).accessModes?.(spec) ?? [];
}
