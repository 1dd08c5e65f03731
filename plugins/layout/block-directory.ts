/** The directories that all publications of a block volume share, and how they go away with the last of them. */
import { done, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { transition } from '../../mount/transition.ts';
import type { BlockVolumeLayout, Layout } from './layout.ts';
import { removeEach } from './pod-directory.ts';
import { eraseVolumeData } from './volume-data.ts';

/**
 * Removes the directories of the block volume of this name, and its vol_data.json. As long as anything of it is
 * published, or there is a staging directory, that stays. Assumes: the caller knows whose vol_data.json it is, or that
 * it says nothing.
 */
export function removeEmptyBlockDirectories(
  host: Host,
  layout: Layout,
  specName: string,
): Promise<Result<void>> {
  const volume = layout.blockVolume(specName);
  return host.perform(removeBlockDirectories, { path: volume.directory, volume });
}

interface BlockDirectories {
  readonly path: AbsolutePath;
  readonly volume: BlockVolumeLayout;
}

export const removeBlockDirectories = transition<BlockDirectories, void>(
  'remove-block-directories',
  function* ({ volume }) {
    for (const directory of [volume.holds, volume.targets]) {
      const removed = yield* removeEach([directory]);
      if (!removed.ok) return removed;
      const facts = yield* paths.inspect(directory);
      if (!facts.ok || facts.value.kind !== 'absent') return facts.ok ? done : facts;
    }
    // Empty or not, it may be where a volume is staged that somebody knows.
    const staging = yield* paths.inspect(volume.stage);
    if (!staging.ok || staging.value.kind !== 'absent') return staging.ok ? done : staging;
    const forgotten = yield* eraseVolumeData(volume.data);
    return forgotten.ok ? yield* removeEach([volume.data, volume.directory]) : forgotten;
  },
);
