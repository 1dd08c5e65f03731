/** emptyDir: a directory on disk, or a file system in memory, that is born empty and dies with its pod. */
import { EMPTY_DIR_PLUGIN } from './pod-traits.ts';
import { done, fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, type Host, REMOVE_TREE_DEADLINE_MS } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition, type TransitionArgs } from '../../mount/transition.ts';
import { EmptyDirUsage, isMeasured } from './empty-dir-usage.ts';
import { giveToGroup } from './group-ownership.ts';
import type { Layout } from '../layout/layout.ts';
import {
  createMemoryMount,
  endMemory,
  type FilledMemory,
  fillMemory,
  type MemoryEnd,
  type MemoryPlace,
} from './memory-mount.ts';
import type { PublicationCall, VolumePlugin } from '../plugin.ts';
import { type PodDirectories, podDirectories, removePodDirectories } from '../layout/pod-directory.ts';
import { createPodPlugin } from './pod-plugin.ts';
import {
  hasReadyMarker,
  hasRemovalMarker,
  placeReadyMarker,
  placeRemovalMarker,
  removeRemovalMarker,
  takeRemovalMarkerBack,
  writeReadyMarker,
} from '../layout/ready-marker.ts';
import { asExpected, type ExpectedPlace } from '../../mount/expected-place.ts';
import { doubtful, inOrder, oneByOne } from '../steps.ts';
import type { EmptyDirVolumeSpec, FsGroup } from '../volume.ts';

/** Every user of the pod writes into it; the 0750 parents keep other pods and users out (SE-35). */
const VOLUME_MODE = 0o777;
/** What is made in a directory of a group is that group's, too. */
const SETGID = 0o2000;

interface DirectoryPath {
  readonly spec: EmptyDirVolumeSpec;
  readonly target: AbsolutePath;
  readonly ready: AbsolutePath;
}

/**
 * Guarantees: content is never cleared by publish, only by unpublish, and unpublish never deletes what is mounted
 * below (`mount-busy`, INV-8). A memory medium is judged by its mount, never by the marker (RB-06).
 */
export function createEmptyDirPlugin(host: Host, layout: Layout, mounter: Mounter): VolumePlugin {
  const memory = createMemoryMount(host, mounter);
  const usage = new EmptyDirUsage(host, layout);

  function placeOf({ spec, publication }: PublicationCall): Result<DirectoryPath> {
    if (spec.kind !== 'empty-dir') return notOurs(spec.kind);
    const target = layout.volumeDirectory(spec, publication);
    return ok({ spec, target, ready: layout.readyDirectory(spec, publication) });
  }

  return createPodPlugin({
    name: EMPTY_DIR_PLUGIN,
    looksItself: true,
    usage: { statistics: (call) => usage.statistics(call), hasStatistics: isMeasured },
    async publish(call) {
      const place = placeOf(call);
      if (!place.ok) return place;
      const { spec, target, ready } = place.value;
      if (spec.medium === 'disk') {
        const above = podDirectories(layout, call.publication.pod.uid);
        const placed = await placeDirectory(host, above, place.value, call);
        return placed.ok ? ok({ mount: undefined }) : placed;
      }
      const gid = call.publication.fsGroup?.gid;
      const mode = gid === undefined ? VOLUME_MODE : VOLUME_MODE | SETGID;
      const { hugePageBytes } = spec;
      const known = hugePageBytes === undefined ? done : await refuseUnknownPages(host, hugePageBytes);
      if (!known.ok) return known;
      const request = { target, mode, gid, sizeBytes: spec.sizeLimitBytes, hugePageBytes };
      const there = await memory.mount(request, markMemoryDirectory, { ready, expected: call.expected });
      return there.ok ? ok({ mount: there.value.mount }) : there;
    },
    async unpublish(call) {
      const place = placeOf(call);
      if (!place.ok) return place;
      const { spec, target: path, ready } = place.value;
      call.step({ kind: 'working', deadlineMs: REMOVE_TREE_DEADLINE_MS });
      const above = podDirectories(layout, call.publication.pod.uid);
      const end = { path, ready, above };
      if (spec.medium !== 'disk')
        return mounter.unmountThen(removeMemoryDirectory, end, { expected: call.expected });
      const removed = await host.perform(removeDirectory, {
        ...end,
        mayBeMounted: true,
        expected: call.expected,
      });
      if (!removed.ok || !removed.value.isMounted) return removed.ok ? done : removed;
      // Found on disk without a record, its medium was a guess: a tmpfs of ours on it was a memory medium after all.
      const bare = await mounter.unmountOwn(path);
      if (!bare.ok) return bare;
      const gone = await host.perform(removeDirectory, { ...end, mayBeMounted: false });
      return gone.ok ? done : doubtful<never>(gone);
    },
  });
}

const BYTES_PER_KIBIBYTE = 1_024;

/** The kernel lists the sizes that the machine has; mount(8) says of any other one only that something is wrong. */
async function refuseUnknownPages(host: Host, pageBytes: number): Promise<Result<void>> {
  const kibibytes = pageBytes / BYTES_PER_KIBIBYTE;
  const listed = `/sys/kernel/mm/hugepages/hugepages-${kibibytes}kB` as AbsolutePath;
  const facts = await host.inspect(listed);
  if (!facts.ok || facts.value.kind === 'directory') return facts.ok ? done : facts;
  const message = `this machine has no huge pages of ${kibibytes} KiB: there is no ${listed}`;
  return fail({ code: 'kind-unsupported', message, effect: 'none', blocker: listed });
}

/** A marked directory is left exactly as it is, its mode and group too: the pod owns it by now. */
async function placeDirectory(
  host: Host,
  above: PodDirectories,
  { spec, target: path, ready }: DirectoryPath,
  { publication, progress, stillWanted, expected, step }: PublicationCall,
): Promise<Result<void>> {
  const gid = publication.fsGroup?.gid;
  const place = () =>
    host.perform(placeEmptyDirectory, { path, ready, isForGroup: gid !== undefined, expected });
  let placed = await place();
  if (placed.ok && placed.value === 'removing') {
    step({ kind: 'working', deadlineMs: REMOVE_TREE_DEADLINE_MS });
    const gone = await host.perform(removeDirectory, { path, ready, above, mayBeMounted: true, expected });
    if (!gone.ok) return gone;
    placed = await place();
  }
  if (!placed.ok || placed.value === 'whole') return placed.ok ? done : placed;
  if (placed.value === 'removing' || gid === undefined) return notRemoved(path);
  // As in the kubelet always all of it, whatever the pod's change policy: there is nothing in it yet.
  const fsGroup: FsGroup = { gid, changePolicy: 'Always' };
  const volume = spec.id;
  const given = await inOrder(
    () =>
      giveToGroup(host, {
        volume,
        path,
        mountId: undefined,
        fsGroup,
        readOnly: false,
        progress,
        stillWanted,
      }),
    () => host.perform(markReady, { path: ready }),
  );
  return doubtful(given);
}

function notRemoved(path: AbsolutePath): Result<never> {
  const message = `what its last removal left is still there: ${path}`;
  return fail({ code: 'directory-not-empty', message, effect: 'unknown', blocker: path });
}

function notOurs(kind: string): Result<never> {
  return fail({ code: 'spec-invalid', message: `not an emptyDir: ${kind}`, effect: 'none' });
}

interface EmptyDirectory extends TransitionArgs {
  readonly ready: AbsolutePath;
  /** What is to be there before anything is done. */
  readonly expected?: ExpectedPlace | undefined;
}

/** How a directory was found or made; `removing`: nothing was done, and what is left of it has to go first. */
type PlacedAs = 'whole' | 'without-group' | 'removing';

/** It is made, and marked unless it is for a group, which it is given to first. */
export const placeEmptyDirectory = transition<EmptyDirectory & { readonly isForGroup: boolean }, PlacedAs>(
  'place-empty-directory',
  function* ({ path, ready, isForGroup, expected }) {
    const known = yield* asExpected(expected);
    if (!known.ok) return known;
    const alone = yield* refuseMount(path);
    if (!alone.ok) return alone;
    const facts = yield* paths.inspect(path);
    if (!facts.ok) return facts;
    const { kind } = facts.value;
    if (kind !== 'absent' && kind !== 'directory') {
      return fail({
        code: 'path-wrong-kind',
        message: `a ${kind} stands where the emptyDir must be: ${path}`,
        effect: 'none',
        blocker: path,
      });
    }
    const marked = yield* hasReadyMarker(ready);
    if (!marked.ok) return marked;
    if (marked.value && kind === 'directory') return ok('whole');
    const begun = yield* hasRemovalMarker(ready);
    if (!begun.ok || begun.value) return begun.ok ? ok('removing') : begun;
    const made = yield* paths.makeDirectory(path, VOLUME_MODE);
    if (!made.ok || isForGroup) return made.ok ? ok('without-group') : made;
    const marking = yield* writeReadyMarker(ready);
    return marking.ok ? ok('whole') : doubtful<never>(marking);
  },
);

/** The marker in the directory at the path. */
export const markReady = transition<TransitionArgs, void>('mark-ready', ({ path }) => placeReadyMarker(path));

export const markMemoryDirectory = transition<
  MemoryPlace & { readonly ready: AbsolutePath },
  FilledMemory<void>
>('mark-memory-directory', (place) =>
  fillMemory(
    place,
    function* (): Program<Result<void>> {
      return doubtful(yield* placeReadyMarker(place.ready));
    },
    'mount-point',
  ),
);

interface DirectoryEnd extends EmptyDirectory {
  /** Which go when they are empty. */
  readonly above: PodDirectories;
  /** Then it is looked at first, and what is mounted there keeps all of it. */
  readonly mayBeMounted: boolean;
}

export const removeDirectory = transition<DirectoryEnd, { readonly isMounted: boolean }>(
  'remove-directory',
  function* ({ path, ready, above, mayBeMounted, expected }) {
    const known = yield* asExpected(expected);
    if (!known.ok) return known;
    const seen = mayBeMounted ? yield* paths.lookUpMount(path) : ok({ mounted: false });
    if (!seen.ok) return seen;
    if (seen.value.mounted) return ok({ isMounted: true });
    const removed = yield* oneByOne(
      () => removeContent(path, ready),
      () => removeRemovalMarker(ready),
      () => removePodDirectories(path, above),
    );
    return removed.ok ? ok({ isMounted: false }) : removed;
  },
  { removesTrees: true },
);

/** From the first file that is deleted on it is marked, so that no pod is given the rest of it (DL-21). */
function* removeContent(path: AbsolutePath, ready: AbsolutePath): Program<Result<void>> {
  const marked = yield* placeRemovalMarker(ready, path);
  if (!marked.ok) return marked;
  const removed = yield* paths.removeTree(path);
  if (removed.ok || removed.failure.effect !== 'none' || !marked.value.wasReady) return removed;
  const restored = yield* takeRemovalMarkerBack(ready);
  return restored.ok ? removed : doubtful(removed);
}

export const removeMemoryDirectory = transition<MemoryEnd, number | undefined>(
  'remove-memory-directory',
  (end) => endMemory(end),
  { removesTrees: true },
);

/** A disk emptyDir is never a mount point; whatever is mounted there holds data that is not ours to delete (DL-02). */
function* refuseMount(target: AbsolutePath): Program<Result<void>> {
  const seen = yield* paths.lookUpMount(target);
  if (!seen.ok) return seen;
  if (!seen.value.mounted) return done;
  return fail({
    code: 'mount-foreign',
    message: `something is mounted on the plain directory ${target}`,
    effect: 'none',
    blocker: target,
  });
}
