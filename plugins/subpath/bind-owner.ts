/**
 * Two volumes of one pod share the directory of their binds when they have one name, because the layout has it by name:
 * another kind under the name of before, or a claim's volume that is called like an emptyDir. Here it is told which of
 * them a bind is a part of. Pure.
 */
import { type AbsolutePath, isBelow } from '../../mount/host.ts';
import type { MountEntry, MountTable } from '../../mount/mount-table.ts';
import type { Layout } from '../layout/layout.ts';
import type { Namesake } from '../plugin.ts';
import type { PublicationSpec, VolumeSpec } from '../volume.ts';

/** A volume in its place in a pod. */
export interface PlacedVolume {
  readonly spec: VolumeSpec;
  readonly publication: PublicationSpec;
}

/**
 * Whether what is mounted at `target` is a part of one of the namesakes, and not of the volume itself. What the kernel
 * shows decides first: the file system, and which directory of it. What it shows of neither (the volume is not mounted
 * any more, or another file system is mounted inside of it) belongs to the one whose record names the place.
 */
export function isOfNamesake(
  table: MountTable,
  layout: Layout,
  target: AbsolutePath,
  own: PlacedVolume,
  namesakes: readonly Namesake[],
): boolean {
  const bind = table.named(target).at(-1);
  if (bind === undefined || isPartOf(table, layout, bind, own)) return false;
  return (
    namesakes.some((one) => isPartOf(table, layout, bind, one)) ||
    namesakes.some((one) => isNamedBy(layout, target, one))
  );
}

/** The record of the volume says that a part of it is bound at the path. */
export function isNamedBy(layout: Layout, path: AbsolutePath, { publication }: PlacedVolume): boolean {
  return publication.subpaths?.some((one) => layout.subpath(publication, one) === path) ?? false;
}

function isPartOf(
  table: MountTable,
  layout: Layout,
  bind: MountEntry,
  { spec, publication }: PlacedVolume,
): boolean {
  return rootsOf(table, layout.target(spec, publication)).some(
    ({ device, root }) =>
      device === bind.device && (root === bind.root || isBelow(bind.root as AbsolutePath, root)),
  );
}

interface FileSystemDirectory {
  readonly device: string;
  readonly root: AbsolutePath;
}

/** What is mounted at the path, hidden or not; where nothing is, the directory of the file system that it lies in. */
function rootsOf(table: MountTable, path: AbsolutePath): readonly FileSystemDirectory[] {
  const mounted = table.named(path);
  if (mounted.length > 0) return mounted.map(({ device, root }) => ({ device, root: root as AbsolutePath }));
  const within = table.way(path).at(-1);
  if (within === undefined) return [];
  const rest = within.target === '/' ? path : path.slice(within.target.length);
  const root = (within.root === '/' ? rest : `${within.root}${rest}`) as AbsolutePath;
  return [{ device: within.device, root }];
}
