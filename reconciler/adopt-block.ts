/**
 * Block volumes in the kubelet's layout. What is left of one may be any of: the link in the pod, the driver's target,
 * our bind of it, the staging directory. One of them is enough to find it. When its vol_data.json says nothing any
 * more, nobody knows whose volume it was: what is left of it in a pod is an orphan and can only be taken down.
 */
import { below, type Host } from '../mount/host.ts';
import { escapePlugin, type Layout } from '../plugins/layout.ts';
import { removeEmptyBlockDirectories } from '../plugins/block-directory.ts';
import { removeUnlessInUse } from '../plugins/pod-directory.ts';
import { isObjectName, parsePodUid, type PublicationSpec, SPEC_PLUGIN } from '../plugins/volume.ts';
import type { ActualState } from './actual-state.ts';
import type { DiskReader } from './disk-reader.ts';
import { type Finds, foundCsiSpec, foundPublication, orphanSpec } from './finds.ts';

/** Directories beside those of the volumes; no volume has such a name, and what is in them is not its. */
const SHARED_NAMES: ReadonlySet<string> = new Set(['staging', 'publish']);

/** Adds every place of a block volume that nobody knows and that is asked for. */
export async function scanBlockPlaces(
  disk: DiskReader,
  layout: Layout,
  finds: Finds,
  isAskedFor: (place: PublicationSpec) => boolean,
): Promise<void> {
  for (const specName of await volumeNames(disk, layout)) {
    const pods = new Set([
      ...(await disk.names(below(layout.blockDevices, 'publish', specName))),
      ...(await disk.namesBegun(below(layout.blockDevices, specName, 'dev'))),
    ]);
    for (const pod of pods) await addPlace(disk, layout, finds, { pod, specName, isAskedFor });
  }
  for (const pod of await disk.names(layout.pods)) {
    const links = below(layout.pods, pod, 'volumeDevices', escapePlugin(SPEC_PLUGIN.csi));
    for (const specName of await disk.names(links))
      await addPlace(disk, layout, finds, { pod, specName, isAskedFor });
  }
}

interface Place {
  readonly pod: string;
  readonly specName: string;
  readonly isAskedFor: (place: PublicationSpec) => boolean;
}

async function addPlace(disk: DiskReader, layout: Layout, finds: Finds, place: Place): Promise<void> {
  const { specName } = place;
  const pod = parsePodUid(place.pod);
  if (pod === undefined || !isVolumeName(specName)) return;
  const publication = foundPublication(pod, specName);
  if (finds.isKnownPlace(publication.key) || !place.isAskedFor(publication)) return;
  const { held, data: directory } = layout.blockPublication(publication);
  const data = await disk.volData(directory);
  if (data === 'unknown') return;
  if (data === 'nothing') {
    // It may have begun to be published while the scan went, and then it is a volume that is known.
    if (!finds.isBelieved(publication.key)) finds.place(orphanSpec(held), false, publication);
    return;
  }
  const spec = foundCsiSpec(data, specName, 'Block');
  finds.place(spec, await disk.exists(layout.stagingPath(spec)), publication);
}

/** Adds what is staged and nobody knows; empty directories of a volume that nothing tells of are removed. */
export async function scanBlockStaging(
  scan: { readonly host: Host; readonly layout: Layout; readonly known: ActualState },
  disk: DiskReader,
  finds: Finds,
): Promise<void> {
  const { host, layout, known } = scan;
  const staging = below(layout.blockDevices, 'staging');
  const explained = stagedNames(known);
  for (const specName of await disk.names(staging)) {
    if (!isVolumeName(specName) || explained.has(specName)) continue;
    const data = await disk.volData(below(layout.blockDevices, specName, 'data'));
    if (data === 'nothing') {
      await removeUnlessInUse(host, below(staging, specName));
      await removeEmptyBlockDirectories(host, layout, specName);
    }
    if (typeof data !== 'string') finds.staged(foundCsiSpec(data, specName, 'Block'));
  }
  const found = new Set([...believedNames(known), ...believedNames(finds.all())]);
  for (const specName of await volumeNames(disk, layout)) {
    const places = [
      below(layout.blockDevices, 'publish', specName),
      below(layout.blockDevices, specName, 'dev'),
    ];
    const pods = (await Promise.all(places.map((place) => disk.namesBegun(place)))).flat();
    const data = await disk.volData(below(layout.blockDevices, specName, 'data'));
    // Nothing of it is published or staged: a teardown was cut short, and its record is gone.
    if (!found.has(specName) && pods.length === 0 && data !== 'unknown')
      await removeEmptyBlockDirectories(host, layout, specName);
  }
}

function believedNames(state: ActualState): readonly string[] {
  return [...state.values()].flatMap(({ spec }) => {
    return spec.kind === 'csi' && spec.mode === 'Block' ? [spec.specName] : [];
  });
}

function stagedNames(known: ActualState): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { spec, staged } of known.values())
    if (spec.kind === 'csi' && spec.mode === 'Block' && staged.kind !== 'absent') names.add(spec.specName);
  return names;
}

async function volumeNames(disk: DiskReader, layout: Layout): Promise<readonly string[]> {
  const names = new Set([
    ...(await disk.names(layout.blockDevices)),
    ...(await disk.names(below(layout.blockDevices, 'publish'))),
  ]);
  return [...names].filter(isVolumeName);
}

function isVolumeName(name: string): boolean {
  return isObjectName(name) && !SHARED_NAMES.has(name);
}
