/** A pod's directory below the root, and how it goes away with its last volume. */
import { done, type FailureCode, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, type Host, parentOf } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition } from '../../mount/transition.ts';
import type { PluginName, PodUid } from '../volume.ts';
import type { Layout } from './layout.ts';

/**
 * What most pods have, the emptyDir first: it is the last volume of its pod to go. Each name is a call, so the
 * directories of other kinds are looked for only where one was, or may have been.
 */
const USUAL_PLUGINS = ['empty-dir', 'csi', 'secret', 'configmap'].map(
  (name): PluginName => `kubernetes.io/${name}`,
);

/** What rmdir says of a directory that somebody still uses. */
const IN_USE: ReadonlySet<FailureCode> = new Set(['directory-not-empty', 'mount-busy']);

/** The structural directories of a pod, in the order in which they go when they are empty. */
export interface PodDirectories {
  /** One for each kind of volume that it usually has. */
  readonly kinds: readonly AbsolutePath[];
  /** `volumes`, `volumeDevices`, `plugins` and the pod's own. */
  readonly others: readonly AbsolutePath[];
}

export function podDirectories(layout: Layout, pod: PodUid): PodDirectories {
  const { volumes, volumesOf, devices, links, plugins, markers } = layout.podFolders(pod);
  const others = [volumes, links, devices, markers, plugins, layout.podDirectory(pod)];
  return { kinds: USUAL_PLUGINS.map(volumesOf), others };
}

/**
 * Removes those of `podDirectories` that are empty. Idempotent; a directory in use is left and is no failure.
 * Guarantees: only rmdir, and only above volume roots, so it never touches what is in a volume (DL-01, DL-02, DL-03,
 * INV-8).
 */
export function removeEmptyPodDirectories(host: Host, layout: Layout, pod: PodUid): Promise<Result<void>> {
  const { kinds, others } = podDirectories(layout, pod);
  return host.perform(removeUnused, {
    path: layout.podDirectory(pod),
    directories: [...kinds, ...others],
  });
}

/**
 * The same, when a volume's own directory has gone, and no further than there is anything to remove: while one kind has
 * a volume, all the others wait for that one. Of two volumes that go at once the later one sees that of the other gone.
 */
export function* removePodDirectories(
  volume: AbsolutePath,
  { kinds, others }: PodDirectories,
): Program<Result<void>> {
  const own = parentOf(volume);
  for (const kind of [own, ...kinds.filter((one) => one !== own)]) {
    const removed = yield* paths.removeEmptyDirectory(kind);
    if (!removed.ok) return IN_USE.has(removed.failure.code) ? done : removed;
  }
  return yield* removeEach(others);
}

/**
 * As `removeEmptyPodDirectories`, of a pod of which nothing is known: a volume of any of `plugins`, which are all that
 * have a directory in pods, may have been its last.
 */
export function removeStrangePodDirectories(
  host: Host,
  layout: Layout,
  pod: PodUid,
  plugins: readonly PluginName[],
): Promise<Result<void>> {
  const { kinds, others } = podDirectories(layout, pod);
  const { subpaths, volumesOf, localLinks } = layout.podFolders(pod);
  const unusual = plugins.filter((name) => !USUAL_PLUGINS.includes(name)).map(volumesOf);
  return host.perform(removeUnused, {
    path: layout.podDirectory(pod),
    directories: [...kinds, ...unusual, subpaths, localLinks, ...others],
  });
}

/** rmdir, where a directory in use is left and is no failure. */
export function removeUnlessInUse(host: Host, directory: AbsolutePath): Promise<Result<void>> {
  return host.perform(removeUnused, { path: directory, directories: [directory] });
}

interface UnusedDirectories {
  readonly path: AbsolutePath;
  /** Children before their parents. */
  readonly directories: readonly AbsolutePath[];
}

export const removeUnused = transition<UnusedDirectories, void>(
  'remove-unused-directories',
  ({ directories }) => removeEach(directories),
);

/** As `removeUnlessInUse`, in order. */
export function* removeEach(directories: readonly AbsolutePath[]): Program<Result<void>> {
  for (const directory of directories) {
    const removed = yield* paths.removeEmptyDirectory(directory);
    if (!removed.ok && !IN_USE.has(removed.failure.code)) return removed;
  }
  return done;
}
