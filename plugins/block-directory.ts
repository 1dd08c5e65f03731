/** The directories that all publications of a block volume share, when nothing tells any more whose they were. */
import { done, type Result } from '../mount/failure.ts';
import { below, type Host } from '../mount/host.ts';
import type { Layout } from './layout.ts';
import { removeUnlessInUse } from './pod-directory.ts';

/** The kubelet's file, damaged, and what a write of ours that was cut short leaves. */
const PAPERS = ['vol_data.json', '.vol_data.json.tmp'] as const;

/**
 * Removes the empty directories of the block volumes that had this name, with a vol_data.json that says nothing. As
 * long as anything of them is published, or there is a staging directory, it stays. Assumes: the caller has read that
 * vol_data.json.
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
  for (const name of PAPERS) {
    const removed = await host.removeFile(below(data, name));
    if (!removed.ok) return removed;
  }
  for (const directory of [data, volume]) {
    const removed = await removeUnlessInUse(host, directory);
    if (!removed.ok) return removed;
  }
  return done;
}
