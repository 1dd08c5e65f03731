/** The directories that all publications of a block volume share, and how they go away with the last of them. */
import { done, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition } from '../../mount/transition.ts';
import type { BlockVolumeLayout, Layout } from './layout.ts';
import { removeEach } from './pod-directory.ts';
import { eraseVolumeData, lookUpVolumeData } from './volume-data.ts';
import { namesVolume } from './volume-data-text.ts';

/**
 * Removes the directories of the block volume of this name, and its vol_data.json. As long as anything of it is
 * published, or there is a staging directory, or somebody's mount hides where those would be, that stays. Assumes: the
 * caller knows whose vol_data.json it is, or that it says nothing.
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
  ({ volume }) => removeDirectories(volume),
);

function* removeDirectories(volume: BlockVolumeLayout): Program<Result<void>> {
  const hidden = yield* isHidden(volume);
  if (!hidden.ok || hidden.value) return hidden.ok ? done : hidden;
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
}

/** Nothing of ours is mounted over them: what lies there is somebody's, and what he hides is not absent. */
function* isHidden({ directory, holds, targets, stage }: BlockVolumeLayout): Program<Result<boolean>> {
  const own = yield* paths.mountPlaceOf(directory);
  if (!own.ok) return own;
  for (const path of [holds, targets, stage]) {
    const place = yield* paths.mountPlaceOf(path);
    if (!place.ok) return place;
    if (place.value.within !== own.value.within) return ok(true);
  }
  return ok(false);
}

/**
 * Removes all directories of the block volume of this name, its staging directory too, as far as they are empty. A
 * vol_data.json that names a volume keeps everything as it is: one may have begun to be staged since it was looked at.
 */
export function removeUnknownBlockDirectories(
  host: Host,
  layout: Layout,
  specName: string,
): Promise<Result<void>> {
  const volume = layout.blockVolume(specName);
  return host.perform(removeUnknownBlock, { path: volume.data, volume });
}

/** Its path is that of the vol_data.json, so that none is written meanwhile. */
export const removeUnknownBlock = transition<BlockDirectories, void>(
  'remove-unknown-block-directories',
  function* ({ path, volume }) {
    const data = yield* lookUpVolumeData(path);
    if (!data.ok || namesVolume(data.value)) return data.ok ? done : data;
    const removed = yield* removeEach([volume.stage]);
    return removed.ok ? yield* removeDirectories(volume) : removed;
  },
);
