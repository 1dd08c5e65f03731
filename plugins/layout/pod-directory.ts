/** A pod's directory below the root, and how it goes away with its last volume. */
import { done, type FailureCode, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { transition } from '../../mount/transition.ts';
import type { PluginName, PodUid } from '../volume.ts';
import type { Layout } from './layout.ts';

/** hostPath has no directory of its own, and an orphan is nobody's. */
const PLUGINS_WITH_DIRECTORY = ['csi', 'empty-dir', 'secret', 'configmap'].map(
  (name): PluginName => `kubernetes.io/${name}`,
);

/** What rmdir says of a directory that somebody still uses. */
const IN_USE: ReadonlySet<FailureCode> = new Set(['directory-not-empty', 'mount-busy']);

/**
 * Removes the structural directories of a pod that are empty: those of the volume kinds, `volumes`, `volumeDevices`,
 * `plugins` and the pod's own. Idempotent; a directory in use is left and is no failure.
 * Guarantees: only rmdir, and only above volume roots, so it never touches what is in a volume (DL-01, DL-02, DL-03,
 * INV-8).
 */
export async function removeEmptyPodDirectories(
  host: Host,
  layout: Layout,
  pod: PodUid,
): Promise<Result<void>> {
  const { volumes, volumesOf, devices, links, plugins, markers } = layout.podFolders(pod);
  const kinds = PLUGINS_WITH_DIRECTORY.map(volumesOf);
  const path = layout.podDirectory(pod);
  const directories = [...kinds, volumes, links, devices, markers, plugins, path];
  return host.perform(removePodDirectories, { path, directories });
}

interface PodDirectories {
  readonly path: AbsolutePath;
  /** All that go when they are empty, children before their parents. */
  readonly directories: readonly AbsolutePath[];
}

export const removePodDirectories = transition<PodDirectories, void>(
  'remove-pod-directories',
  function* ({ directories }) {
    for (const directory of directories) {
      const removed = yield* paths.removeEmptyDirectory(directory);
      if (!removed.ok && !IN_USE.has(removed.failure.code)) return removed;
    }
    return done;
  },
);

/** rmdir, where a directory in use is left and is no failure. */
export async function removeUnlessInUse(host: Host, directory: AbsolutePath): Promise<Result<void>> {
  const removed = await host.removeEmptyDirectory(directory);
  return !removed.ok && IN_USE.has(removed.failure.code) ? done : removed;
}
