/** The directories that all publications of a block volume share, and how they go away with the last of them. */
import { done, type Result } from '../../mount/failure.ts';
import { below, type Host } from '../../mount/host.ts';
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
  const { blockDevices } = layout;
  const volume = below(blockDevices, specName);
  for (const directory of [below(volume, 'dev'), below(blockDevices, 'publish', specName)]) {
    const removed = await removeUnlessInUse(host, directory);
    if (!removed.ok) return removed;
    const facts = await host.inspect(directory);
    if (!facts.ok || facts.value.kind !== 'absent') return facts.ok ? done : facts;
  }
  // Empty or not, it may be where a volume is staged that somebody knows.
  const staging = await host.inspect(below(blockDevices, 'staging', specName));
  if (!staging.ok || staging.value.kind !== 'absent') return staging.ok ? done : staging;
  const data = below(volume, 'data');
  const forgotten = await removeVolumeData(host, data);
  if (!forgotten.ok) return forgotten;
  for (const directory of [data, volume]) {
    const removed = await removeUnlessInUse(host, directory);
    if (!removed.ok) return removed;
  }
  return done;
}
