/** What is at the path of a local volume: a directory to be bound, or a device to be mounted. */
import { type Failure, fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import { type Program, transition, type TransitionArgs } from '../../mount/transition.ts';
import { refuseDenied } from '../pod/denied-path.ts';
import { resolveRealPath } from '../pod/real-path.ts';

export interface LocalPath {
  /** The PersistentVolume's name. */
  readonly name: string;
  /** It is as the administrator wrote it. */
  readonly from: AbsolutePath;
  readonly denied: readonly AbsolutePath[];
}

export interface LocalPlace {
  readonly kind: 'directory' | 'block';
  /** Free of links. */
  readonly path: AbsolutePath;
}

export const findLocalPlace = transition<LocalPath & TransitionArgs, LocalPlace>(
  'find-local-place',
  (local) => localPlace(local),
  { changesTheWorld: false },
);

/**
 * Links on the way are followed, as by the kubelet. `path-missing`: it is not there; a disk that was not mounted yet
 * may be the reason.
 */
export function* localPlace(local: LocalPath): Program<Result<LocalPlace>> {
  const { from: path, denied } = local;
  const title = titleOf(local);
  const found = yield* resolveRealPath(path);
  if (!found.ok) return found;
  const { kind, missing } = found.value;
  const allowed = yield* refuseDenied({ title, path, found: found.value }, denied);
  if (!allowed.ok) return allowed;
  const refuse = (code: Failure['code'], because: string) =>
    fail({ code, message: `${title} ${because}`, effect: 'none', blocker: path });
  if (missing.length > 0) return refuse('path-missing', 'is not there, and nothing is ever made of it');
  if (kind === 'directory' || kind === 'block') return ok({ kind, path: found.value.path });
  return refuse('path-wrong-kind', `is of kind ${kind}, neither a directory nor a block device`);
}

/** How people are told of it. */
export function titleOf({ name, from }: Pick<LocalPath, 'name' | 'from'>): string {
  return `the local path ${from.slice(0, 400)} of PersistentVolume ${name}`;
}
