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
  if (placed.value) return done;
  const marker = { mode: MARKER_MODE, durable: false };
  return yield* oneByOne(
    () => paths.makeDirectory(directory, DIRECTORY_MODE),
    () => paths.writeFile(below(directory, MARKER_NAME), new Uint8Array(), marker),
  );
}

/** Idempotent. All of the directory goes, as with the kubelet: a crash may have left half a marker in it. */
export function* removeReadyMarker(directory: AbsolutePath): Program<Result<void>> {
  const unmarked = yield* paths.removeFile(below(directory, MARKER_NAME));
  const removed = unmarked.ok ? yield* paths.removeEmptyDirectory(directory) : unmarked;
  if (removed.ok) return removed;
  const isMore = removed.failure.code === 'directory-not-empty' || removed.failure.code === 'path-wrong-kind';
  return isMore ? yield* paths.removeTree(directory) : removed;
}
