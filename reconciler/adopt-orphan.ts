/** What is mounted, or left, in the places of volumes and that nothing explains; and what of it is gone again. */
import { type AbsolutePath, below, isBelow, parentOf } from '../mount/host.ts';
import type { MountTable } from '../mount/mount-table.ts';
import type { Layout } from '../plugins/layout.ts';
import { parsePodUid, type PublicationSpec, type VolumeId } from '../plugins/volume.ts';
import type { ActualState, ActualVolume } from './actual-state.ts';
import type { DiskReader } from './disk-reader.ts';
import { type Finds, foundPublication, orphanSpec } from './finds.ts';

/** Mounts in the places of volumes that nothing explains: they can only be taken down. */
export function findOrphans(table: MountTable, layout: Layout, known: ActualState, finds: Finds): void {
  for (const target of unexplained(table, [...known.values(), ...finds.list()], layout)) {
    const place = ORPHAN_PLACE.exec(
      target.startsWith(`${layout.pods}/`) ? target.slice(layout.pods.length) : '',
    );
    const uid = parsePodUid(place?.[1] ?? '');
    const specName = place?.[2];
    if (uid === undefined || specName === undefined) continue;
    finds.place(orphanSpec(target), false, foundPublication(uid, specName));
  }
}

const ORPHAN_PLACE = /^\/([^/]+)\/volumes\/[^/]+\/([^/]+)(?:\/mount)?$/;

/** Mount points below our directories that none of the volumes explains. */
function unexplained(
  table: MountTable,
  volumes: readonly ActualVolume[],
  layout: Layout,
): readonly AbsolutePath[] {
  const explained = new Set<AbsolutePath>();
  for (const { spec, publications } of volumes) {
    if (spec.kind === 'csi') explained.add(layout.stagingPath(spec));
    for (const { spec: publication } of publications.values())
      explained.add(layout.mountPoint(spec, publication));
  }
  const targets = new Set(table.entries.map(({ target }) => target));
  return [...targets].filter((target) => isBelow(target, layout.pods) && !explained.has(target));
}

/** Those of the volumes that are orphans and have nothing at their place: no mount, no directory, no file. */
export async function goneOrphans(
  volumes: readonly ActualVolume[],
  table: MountTable,
  layout: Layout,
  disk: DiskReader,
): Promise<readonly VolumeId[]> {
  const gone: VolumeId[] = [];
  for (const { spec, publications } of volumes) {
    if (spec.kind !== 'orphan') continue;
    const [place] = publications.values();
    if (!(await isAnythingAt(pathsOf(spec.path, place?.spec, layout), table, disk))) gone.push(spec.id);
  }
  return gone;
}

async function isAnythingAt(
  paths: readonly AbsolutePath[],
  table: MountTable,
  disk: DiskReader,
): Promise<boolean> {
  for (const path of paths) if (table.at(path).length > 0 || (await disk.exists(path))) return true;
  return false;
}

/** All that an orphan at the path may have left: its papers lie beside the mount point. */
function pathsOf(
  path: AbsolutePath,
  place: PublicationSpec | undefined,
  layout: Layout,
): readonly AbsolutePath[] {
  if (isBelow(path, layout.pods)) return path.endsWith('/mount') ? [path, parentOf(path)] : [path];
  if (place === undefined) return [path];
  const { held, published, link } = layout.blockPublication(place);
  return [held, below(parentOf(held), `.${place.pod.uid}.tmp`), published, link];
}
