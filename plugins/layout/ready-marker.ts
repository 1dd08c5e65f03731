/**
 * The kubelet's marker that an emptyDir was set up: an empty file `ready` in `Layout.readyDirectory`.
 *
 * Because: it is kept so that a kubelet can take the node back. Mooring itself believes it only about plain
 * directories, which outlive a boot as it does; a memory-backed volume is judged by its mount (RB-06, k/k#72675).
 */
import { ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';
import { inOrder } from '../steps.ts';

const MARKER_NAME = 'ready';
const MARKER_MODE = 0o644;
const DIRECTORY_MODE = 0o750;

export async function hasReadyMarker(host: Host, directory: AbsolutePath): Promise<Result<boolean>> {
  const facts = await host.inspect(below(directory, MARKER_NAME));
  return facts.ok ? ok(facts.value.kind === 'file') : facts;
}

/** Idempotent; writes nothing when the marker is there. */
export async function placeReadyMarker(host: Host, directory: AbsolutePath): Promise<Result<void>> {
  const placed = await hasReadyMarker(host, directory);
  if (!placed.ok) return placed;
  if (placed.value) return ok(undefined);
  return inOrder(
    () => host.makeDirectory(directory, DIRECTORY_MODE),
    () =>
      host.writeFile(below(directory, MARKER_NAME), new Uint8Array(), { mode: MARKER_MODE, durable: false }),
  );
}

/** Idempotent. All of the directory goes, as with the kubelet: a crash may have left half a marker in it. */
export async function removeReadyMarker(host: Host, directory: AbsolutePath): Promise<Result<void>> {
  return host.removeTree(directory);
}
