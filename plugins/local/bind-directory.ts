/** From the path of a local volume to a mount in a pod: what is at the path is looked at, and bound by descriptor. */
import { type Failure, fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, MountLookup } from '../../mount/host.ts';
import type { MountFlag } from '../../mount/part-bind.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition, type TransitionArgs } from '../../mount/transition.ts';
import { type PodDirectories, removePodDirectories } from '../layout/pod-directory.ts';
import { refuseDenied } from '../pod/denied-path.ts';
import { resolveRealPath } from '../pod/real-path.ts';
import { doubtful, oneByOne } from '../steps.ts';

export interface LocalDirectory {
  /** The PersistentVolume's name. */
  readonly name: string;
  /** As the administrator wrote it. */
  readonly from: AbsolutePath;
  readonly denied: readonly AbsolutePath[];
}

/** `path` is where the pod sees it. */
export interface DirectoryBind extends TransitionArgs, LocalDirectory {
  readonly flags: readonly MountFlag[];
}

/**
 * Links on the way to the directory are followed, as by the kubelet; what they led to is bound, without a link, so what
 * is exchanged meanwhile is a failure and never another directory. Nothing is made but the mount point, and what is
 * bound there already only gets the flags that it lacks. `path-missing`: it is not there; a disk that was not mounted
 * yet may be the reason.
 */
export const bindLocalDirectory = transition<DirectoryBind, MountedDirectory>(
  'bind-local-directory',
  function* (bind) {
    const { path: target, flags } = bind;
    const root = yield* findDirectory(bind);
    if (!root.ok) return root;
    const request = {
      root: root.value,
      rootMountId: undefined,
      part: '',
      target,
      makesMissing: false,
      flags,
    };
    const bound = yield* paths.bindPart(request);
    if (!bound.ok) return doubtful<never>(bound);
    if (bound.value === 'other') {
      const message = `something else than ${titleOf(bind)} is mounted at ${target}`;
      return fail({ code: 'mount-foreign', message, effect: 'none', blocker: target });
    }
    const seen = yield* paths.lookUpMount(target);
    if (!seen.ok) return doubtful<never>(seen);
    if (seen.value.mounted) return ok(seen.value);
    const message = `what was mounted at ${target} has just gone`;
    return fail({ code: 'mount-failed', message, effect: 'unknown' });
  },
);

type MountedDirectory = Extract<MountLookup, { mounted: true }>;

/** rmdir of where the pod saw it, and of the pod's directories that have become empty. */
export const removeLocalPlace = transition<TransitionArgs & { readonly above: PodDirectories }, void>(
  'remove-local-place',
  ({ path, above }) =>
    oneByOne(
      () => paths.removeEmptyDirectory(path),
      () => removePodDirectories(path, above),
    ),
);

function* findDirectory(volume: LocalDirectory): Program<Result<AbsolutePath>> {
  const { from: path, denied } = volume;
  const title = titleOf(volume);
  const found = yield* resolveRealPath(path);
  if (!found.ok) return found;
  const { kind, missing } = found.value;
  const allowed = yield* refuseDenied({ title, path, found: found.value }, denied);
  if (!allowed.ok) return allowed;
  const refuse = (code: Failure['code'], because: string) =>
    fail({ code, message: `${title} ${because}`, effect: 'none', blocker: path });
  if (missing.length > 0) return refuse('path-missing', 'is not there, and nothing is ever made of it');
  if (kind === 'block')
    return refuse('kind-unsupported', 'is a block device: only directories are supported yet');
  return kind === 'directory'
    ? ok(found.value.path)
    : refuse('path-wrong-kind', `is of kind ${kind}, not a directory`);
}

function titleOf({ name, from }: LocalDirectory): string {
  return `the local path ${from.slice(0, 400)} of PersistentVolume ${name}`;
}
