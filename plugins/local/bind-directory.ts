/** From a local volume to a mount in a pod: its directory, or what its device is mounted at, is bound by descriptor. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, MountLookup } from '../../mount/host.ts';
import type { MountFlag } from '../../mount/part-bind.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition, type TransitionArgs } from '../../mount/transition.ts';
import { type PodDirectories, removePodDirectories } from '../layout/pod-directory.ts';
import { doubtful, oneByOne } from '../steps.ts';
import { type LocalPath, localPlace, titleOf } from './local-place.ts';

/** `path` is where the pod sees it. */
export interface DirectoryBind extends TransitionArgs, LocalPath {
  readonly flags: readonly MountFlag[];
  /** Where its device is mounted, and by which mount; undefined: it is a directory. */
  readonly stage: { readonly path: AbsolutePath; readonly mountId: number } | undefined;
}

/**
 * What links on the way to a directory led to is bound, without a link, so what is exchanged meanwhile is a failure and
 * never another directory. Nothing is made but the mount point, and what is bound there already only gets the flags
 * that it lacks.
 */
export const bindLocalDirectory = transition<DirectoryBind, MountedDirectory>(
  'bind-local-directory',
  function* (bind) {
    const { path, flags, stage } = bind;
    const root = stage === undefined ? yield* directoryOf(bind) : ok(stage.path);
    if (!root.ok) return root;
    return yield* bindRoot({
      path,
      title: titleOf(bind),
      root: root.value,
      rootMountId: stage?.mountId,
      flags,
    });
  },
);

/** What is mounted at `root`, bound where a pod sees it. */
export interface RootBind extends TransitionArgs {
  /** People are told this name. */
  readonly title: string;
  readonly root: AbsolutePath;
  /** The mount that has to be there; undefined: it is a directory of the machine. */
  readonly rootMountId: number | undefined;
  readonly flags: readonly MountFlag[];
}

export const bindStagedRoot = transition<RootBind, MountedDirectory>('bind-staged-root', (bind) =>
  bindRoot(bind),
);

function* bindRoot(bind: RootBind): Program<Result<MountedDirectory>> {
  const { path: target, title, root, rootMountId, flags } = bind;
  const bound = yield* paths.bindPart({ root, rootMountId, part: '', target, makesMissing: false, flags });
  if (!bound.ok) return doubtful<never>(bound);
  if (bound.value !== 'bound') {
    const message = `something else than ${title} is mounted at ${target}`;
    return fail({ code: 'mount-foreign', message, effect: 'none', blocker: target });
  }
  const seen = yield* paths.lookUpMount(target);
  if (!seen.ok) return doubtful<never>(seen);
  if (seen.value.mounted) return ok(seen.value);
  const message = `what was mounted at ${target} has just gone`;
  return fail({ code: 'mount-failed', message, effect: 'unknown' });
}

type MountedDirectory = Extract<MountLookup, { mounted: true }>;

function* directoryOf(local: LocalPath): Program<Result<AbsolutePath>> {
  const place = yield* localPlace(local);
  if (!place.ok || place.value.kind === 'directory') return place.ok ? ok(place.value.path) : place;
  const message = `${titleOf(local)} is a block device now, and was staged as a directory`;
  return fail({ code: 'staged-not-mounted', message, effect: 'none', blocker: local.from });
}

/** rmdir of where the pod saw it, and of the pod's directories that have become empty. */
export const removeLocalPlace = transition<TransitionArgs & { readonly above: PodDirectories }, void>(
  'remove-local-place',
  ({ path, above }) =>
    oneByOne(
      () => paths.removeEmptyDirectory(path),
      () => removePodDirectories(path, above),
    ),
);
