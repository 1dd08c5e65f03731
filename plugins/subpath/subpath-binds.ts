/** The binds of parts of one volume in one pod: which there are is read from the disk, like the kubelet's. */
import { done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition, type TransitionArgs } from '../../mount/transition.ts';
import { removeEach } from '../layout/pod-directory.ts';
import { resolveRealPath } from '../pod/real-path.ts';
import type { Subpath } from '../volume.ts';

/** Entries of one directory; a pod has at most some dozens of containers, and these of mounts. */
const ENTRIES_MAX = 1_000;

/** A part, and where it is bound. */
export interface PlacedSubpath extends Subpath {
  readonly target: AbsolutePath;
}

/** `path` is the directory of all binds of the volume in the pod. */
export interface SubpathPlaces extends TransitionArgs {
  readonly root: AbsolutePath;
  readonly rootMountId: number | undefined;
  /** The root is a path of the host's own, where links are legitimate. */
  readonly followsLinks: boolean;
  readonly makesMissing: boolean;
  readonly subpaths: readonly PlacedSubpath[];
  /** Binds of other volumes in the same directory. */
  readonly foreign: readonly AbsolutePath[];
}

/** What has to go, as it was seen: by the time that somebody is there to unmount it, another may be seen there. */
export interface MountInTheWay {
  readonly target: AbsolutePath;
  readonly mountId: number;
}

/**
 * Takes away what is not among the parts, and binds those. Undefined: they all stand, and nothing else does. Else what
 * has to be unmounted first; what came before is done.
 */
export const placeSubpaths = transition<SubpathPlaces, MountInTheWay | undefined>(
  'place-subpaths',
  function* ({ path, root, rootMountId, followsLinks, makesMissing, subpaths, foreign }) {
    const surplus = yield* clear(path, new Set([...foreign, ...subpaths.map(({ target }) => target)]));
    if (!surplus.ok || surplus.value !== undefined) return surplus;
    const real = followsLinks ? yield* resolveRealPath(root) : ok({ path: root, missing: [] });
    if (!real.ok) return real;
    const [missing] = real.value.missing;
    if (missing !== undefined)
      return fail({ code: 'path-missing', message: `${root} is not there`, effect: 'none', blocker: root });
    for (const subpath of subpaths) {
      const { target, path: part } = subpath;
      const bound = yield* paths.bindPart({ root: real.value.path, rootMountId, part, target, makesMissing });
      if (!bound.ok) return fail(ofSubpath(subpath, bound.failure));
      if (bound.value !== 'bound') return ok({ target, mountId: bound.value.otherMountId });
    }
    return ok(undefined);
  },
);

export interface SubpathsEnd extends Pick<SubpathPlaces, 'path' | 'foreign'> {
  /** The pod's directory of all binds, which goes when it is empty. */
  readonly above: AbsolutePath;
}

/** The same with no parts; the directory goes where no other volume has binds in it. */
export const removeSubpaths = transition<SubpathsEnd, MountInTheWay | undefined>(
  'remove-subpaths',
  function* ({ path, above, foreign }) {
    const mounted = yield* clear(path, new Set(foreign));
    if (!mounted.ok || mounted.value !== undefined || foreign.length > 0) return mounted;
    const removed = yield* paths.removeEmptyDirectory(path);
    if (!removed.ok) return removed;
    const emptied = yield* removeEach([above]);
    return emptied.ok ? ok(undefined) : emptied;
  },
);

/** Removes the empty places of binds of a pod that nobody knows: `path` is the directory of all its volumes. */
export const removeLeftBinds = transition<TransitionArgs, void>('remove-left-binds', function* ({ path }) {
  const volumes = yield* namesIn(path);
  if (!volumes.ok) return volumes;
  for (const directory of volumes.value.map((name) => below(path, name))) {
    const mounted = yield* clear(directory, new Set());
    if (!mounted.ok) return mounted;
    if (mounted.value !== undefined) return done;
    const removed = yield* paths.removeEmptyDirectory(directory);
    if (!removed.ok) return removed;
  }
  return done;
});

function ofSubpath({ container, index, path }: Subpath, failure: Failure): Failure {
  const about = `container ${container}, volumeMounts[${index}], sub-path ${JSON.stringify(path)}`;
  return { ...failure, message: `${about}: ${failure.message}` };
}

/** Removes the mount points that are not kept, until one is found that is mounted. */
function* clear(
  path: AbsolutePath,
  kept: ReadonlySet<AbsolutePath>,
): Program<Result<MountInTheWay | undefined>> {
  const containers = yield* namesIn(path);
  if (!containers.ok) return containers;
  for (const directory of containers.value.map((name) => below(path, name))) {
    const indexes = yield* namesIn(directory);
    if (!indexes.ok) return indexes;
    const mountPoints = indexes.value.map((name) => below(directory, name));
    for (const mountPoint of mountPoints.filter((one) => !kept.has(one))) {
      const mountId = yield* paths.mountIdOf(mountPoint);
      if (!mountId.ok) return mountId;
      if (mountId.value !== undefined) return ok({ target: mountPoint, mountId: mountId.value });
      const removed = yield* removeMountPoint(mountPoint);
      if (!removed.ok) return removed;
    }
    const removed = mountPoints.some((one) => kept.has(one))
      ? done
      : yield* paths.removeEmptyDirectory(directory);
    if (!removed.ok) return removed;
  }
  return ok(undefined);
}

function* namesIn(path: AbsolutePath): Program<Result<readonly string[]>> {
  const names = yield* paths.listDirectory(path, ENTRIES_MAX);
  return !names.ok && names.failure.code === 'path-missing' ? ok([]) : names;
}

/**
 * Ours are empty directories, empty files, and devices that are none (`immutable_mount_points`); what somebody wrote
 * there while nothing was mounted is his.
 */
function* removeMountPoint(path: AbsolutePath): Program<Result<void>> {
  const facts = yield* paths.inspect(path);
  if (!facts.ok) return facts;
  const { kind, sizeBytes } = facts.value;
  if (kind !== 'file' && kind !== 'character') return yield* paths.removeEmptyDirectory(path);
  if (sizeBytes === 0) return yield* paths.removeFile(path);
  const message = `somebody wrote to ${path} while nothing was mounted there`;
  return fail({ code: 'directory-not-empty', message, effect: 'none', blocker: path });
}
