/** The directories that all publications of a block volume share, and how they go away with the last of them. */
import { done, type Result } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';
import type { Layout } from './layout.ts';
import { removeUnlessInUse } from './pod-directory.ts';
import { removeVolumeData } from './volume-data.ts';

/**
 * Removes the directories of the block volume of this name, and its vol_data.json. As long as anything of it is
 * published, or there is a staging directory, that stays. Assumes: the caller knows whose vol_data.json it is, or that
 * it says nothing.
 */
export async function removeEmptyBlockDirectories(
  host: Host,
  layout: Layout,
  specName: string,
): Promise<Result<void>> {
  const volume = layout.blockVolume(specName);
  for (const directory of [volume.holds, volume.targets]) {
    const removed = await removeUnlessInUse(host, directory);
    if (!removed.ok) return removed;
    const facts = await host.inspect(directory);
    if (!facts.ok || facts.value.kind !== 'absent') return facts.ok ? done : facts;
  }
  // Empty or not, it may be where a volume is staged that somebody knows.
  const staging = await host.inspect(volume.stage);
  if (!staging.ok || staging.value.kind !== 'absent') return staging.ok ? done : staging;
  const forgotten = await removeVolumeData(host, volume.data);
  if (!forgotten.ok) return forgotten;
  for (const directory of [volume.data, volume.directory]) {
    const removed = await removeUnlessInUse(host, directory);
    if (!removed.ok) return removed;
  }
  return done;
}
