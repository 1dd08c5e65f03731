/**
 * The kubelet's marker that an emptyDir was set up: an empty file `ready` in `Layout.readyDirectory`.
 *
 * Because: it is kept so that a kubelet can take the node back. Mooring itself believes it only about plain
 * directories, which outlive a boot as it does; a memory-backed volume is judged by its mount (RB-06, k/k#72675).
 */
import { done, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import type { Program } from '../../mount/transition.ts';
import { oneByOne } from '../steps.ts';

const MARKER_NAME = 'ready';
/** What `ready` becomes when the removal of a plain directory begins: what is left of it is given to nobody (DL-21). */
const REMOVAL_NAME = 'removing';
const MARKER_MODE = 0o644;
const DIRECTORY_MODE = 0o750;

export function* hasReadyMarker(directory: AbsolutePath): Program<Result<boolean>> {
  const facts = yield* paths.inspect(below(directory, MARKER_NAME));
  return facts.ok ? ok(facts.value.kind === 'file') : facts;
}

/** Idempotent; writes nothing when the marker is there. */
export function* placeReadyMarker(directory: AbsolutePath): Program<Result<void>> {
  const placed = yield* hasReadyMarker(directory);
  if (!placed.ok) return placed;
  return placed.value ? done : yield* writeReadyMarker(directory);
}

/** Where none is. */
export function* writeReadyMarker(directory: AbsolutePath): Program<Result<void>> {
  const marker = { mode: MARKER_MODE, durable: false };
  return yield* oneByOne(
    () => paths.makeDirectory(directory, DIRECTORY_MODE),
    () => paths.writeFile(below(directory, MARKER_NAME), new Uint8Array(), marker),
  );
}

/** Some of the volume was deleted, or may have been. */
export function* hasRemovalMarker(directory: AbsolutePath): Program<Result<boolean>> {
  const facts = yield* paths.inspect(below(directory, REMOVAL_NAME));
  return facts.ok ? ok(facts.value.kind === 'file') : facts;
}

/**
 * Before anything at the path is deleted. Tells whether it was `ready`. What has no marker is marked as far as there is
 * room: a removal must need none.
 */
export function* placeRemovalMarker(
  directory: AbsolutePath,
  path: AbsolutePath,
): Program<Result<{ readonly wasReady: boolean }>> {
  const removing = below(directory, REMOVAL_NAME);
  const renamed = yield* paths.rename(below(directory, MARKER_NAME), removing);
  if (renamed.ok) return ok({ wasReady: true });
  if (renamed.failure.code !== 'path-missing') return renamed;
  const marked = yield* hasRemovalMarker(directory);
  const facts = yield* paths.inspect(path);
  if (marked.ok && !marked.value && facts.ok && facts.value.kind !== 'absent')
    yield* oneByOne(
      () => paths.makeDirectory(directory, DIRECTORY_MODE),
      () => paths.writeFile(removing, new Uint8Array(), { mode: MARKER_MODE, durable: false }),
    );
  return ok({ wasReady: false });
}

/** Nothing was deleted after all: it is as ready as before. */
export function takeRemovalMarkerBack(directory: AbsolutePath): Program<Result<void>> {
  return paths.rename(below(directory, REMOVAL_NAME), below(directory, MARKER_NAME));
}

/** Idempotent: when all that was marked as being removed has gone. */
export function removeRemovalMarker(directory: AbsolutePath): Program<Result<void>> {
  return removeMarkers(directory, REMOVAL_NAME);
}

/** Idempotent. */
export function removeReadyMarker(directory: AbsolutePath): Program<Result<void>> {
  return removeMarkers(directory, MARKER_NAME);
}

/** All of the directory goes, as with the kubelet: a crash may have left half a marker in it, or another one. */
function* removeMarkers(directory: AbsolutePath, name: string): Program<Result<void>> {
  const unmarked = yield* paths.removeFile(below(directory, name));
  const removed = unmarked.ok ? yield* paths.removeEmptyDirectory(directory) : unmarked;
  if (removed.ok) return removed;
  const isMore = removed.failure.code === 'directory-not-empty' || removed.failure.code === 'path-wrong-kind';
  return isMore ? yield* paths.removeTree(directory) : removed;
}
