/** What names alone tell of on disk: what is staged, and the devices that pods have, of volumes without papers. */
import { type AbsolutePath, below, isBelow } from '../../mount/host.ts';
import { kinds } from '../../plugins/kinds/kinds.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { removeUnlessInUse } from '../../plugins/layout/pod-directory.ts';
import type { NamedStages, VolumeTraits } from '../../plugins/traits/volume-traits.ts';
import {
  isObjectName,
  parsePodUid,
  type PublicationSpec,
  type VolumeId,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import { wasAbsent } from '../model/actual-state.ts';
import type { DiskReader } from './disk-reader.ts';
import { reconstructedPublication, type LayoutReading } from './reconstructed.ts';

/** What is staged in a directory that its name alone tells of, mounted or not: it is taken down unless it is wanted. */
export async function scanNamedStages({ layout, known, disk, reconstructed }: LayoutReading): Promise<void> {
  for (const { stages } of kinds()) {
    if (stages === undefined) continue;
    for (const name of await stageNames(stages, layout, disk)) {
      const spec = stages.fromName(name);
      if (spec === undefined) continue;
      const before = known.get(spec.id);
      if (before === undefined || wasAbsent(before.staged)) reconstructed.staged(spec);
    }
  }
}

async function stageNames(
  stages: NamedStages<VolumeSpec>,
  layout: Layout,
  disk: DiskReader,
): Promise<readonly string[]> {
  const directory = stages.directory(layout);
  const names = await disk.names(directory);
  if (stages.isGrouped !== true) return names;
  const grouped: string[] = [];
  for (const group of names)
    for (const name of await disk.names(below(directory, group))) grouped.push(`${group}/${name}`);
  return grouped;
}

/** The volume of the kind whose file system is mounted there as it is staged; undefined: nothing tells. */
export function stagedAs(
  { table, layout }: LayoutReading,
  { stages }: VolumeTraits,
  path: AbsolutePath,
): VolumeSpec | undefined {
  const shown = table.named(path).at(-1);
  const directory = stages?.directory(layout);
  if (shown === undefined || directory === undefined) return undefined;
  const { device, root } = shown;
  const stage = table.entries.find(
    (one) => one.device === device && one.root === root && isBelow(one.target, directory),
  );
  return stage && stages?.fromName(stage.target.slice(directory.length + 1));
}

/**
 * Adds every device that a pod has, or has a link to, and that nobody knows and is asked for; what is mounted is, in
 * any pod. `pods`: the names in the pods' directory. The directories of devices that no pod holds.
 */
export async function addNamedDevices(
  reading: LayoutReading,
  pods: readonly string[],
  isAskedFor: (place: PublicationSpec) => boolean,
): Promise<readonly UnusedDevice[]> {
  const { layout, disk, table, reconstructed } = reading;
  const unused: UnusedDevice[] = [];
  for (const { devices } of kinds()) {
    if (devices === undefined) continue;
    const add = (specName: string, podName: string, isMounted: boolean): void => {
      const pod = parsePodUid(podName);
      if (pod === undefined || !isObjectName(specName)) return;
      const place = reconstructedPublication(pod, specName);
      if (isMounted || isAskedFor(place)) reconstructed.place(devices.fromName(specName), false, place);
    };
    for (const specName of await disk.names(devices.directory(layout))) {
      const directory = devices.ofVolume(specName, layout);
      const holders = await disk.namesBegun(directory);
      for (const pod of holders) add(specName, pod, table.named(below(directory, pod)).length > 0);
      if (isObjectName(specName) && holders.length === 0)
        unused.push({ volume: devices.fromName(specName).id, directory });
    }
    for (const pod of pods) {
      const links = devices.links(layout.podFolders(pod));
      for (const specName of await disk.names(links)) add(specName, pod, false);
    }
  }
  return unused;
}

/** A directory of a device that no pod holds: a teardown was cut short. */
export interface UnusedDevice {
  readonly volume: VolumeId;
  readonly directory: AbsolutePath;
}

/** Removes those of volumes that nobody knows, as far as they are empty. */
export async function tidyNamedDevices(
  { host, known }: LayoutReading,
  unused: readonly UnusedDevice[],
): Promise<void> {
  for (const { volume, directory } of unused)
    if (!known.has(volume)) await removeUnlessInUse(host, directory);
}
