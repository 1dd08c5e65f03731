/** A tmpfs that does not swap where the kernel can promise it (SE-34; tmpfs(5): `noswap` since Linux 6.4). */
import { type Failure, fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, DirectoryUse, Host, MountIdentity } from '../../mount/host.ts';
import { findOwnTmpfs, type MountAttempt, type Mounter } from '../../mount/mounter.ts';
import { paths } from '../../mount/path-steps.ts';
import type { Program, Transition, TransitionArgs } from '../../mount/transition.ts';
import { asExpected, type ExpectedPlace } from '../../mount/expected-place.ts';
import { type PodDirectories, removePodDirectories } from '../layout/pod-directory.ts';
import { removeReadyMarker } from '../layout/ready-marker.ts';
import { doubtful, oneByOne } from '../steps.ts';

export interface MemoryRequest {
  readonly target: AbsolutePath;
  /** Permission bits of its root directory, setgid included. */
  readonly mode: number;
  /** The group of its root directory, which is born with it; undefined: root's. */
  readonly gid?: number | undefined;
  /** 0: the kernel's own limit, half of the memory. */
  readonly sizeBytes: number;
  /** It is made of huge pages, and of this size; absent: a tmpfs. */
  readonly hugePageBytes?: number | undefined;
}

/** The place of the tmpfs, and what mount(8) has said. */
export interface MemoryPlace extends TransitionArgs {
  readonly attempt: MountAttempt;
  /** What is to be there before the attempt. */
  readonly expected: ExpectedPlace | undefined;
}

/** The tmpfs, and what was done with it; undefined: nothing is mounted, and before the attempt the place is ready. */
export type FilledMemory<T> = { readonly mount: MountIdentity; readonly filled: T } | undefined;

export interface MemoryMount {
  /**
   * A tmpfs of ours, made or found, and what `fill` does with it, which is made by `fillMemory`: it is performed before
   * mount(8), to find what is there, and after it. What is mounted there already is verified and kept as it is, its
   * content included; `fill` sees to what is in it.
   */
  mount<Args extends MemoryPlace, T>(
    request: MemoryRequest,
    fill: Transition<Args, FilledMemory<T>>,
    args: Omit<Args, 'path' | 'attempt'>,
  ): Promise<Result<NonNullable<FilledMemory<T>>>>;
}

/** The directory under the mount is never seen while it is mounted, and closed to others while it is not (DL-15). */
const MOUNT_POINT_MODE = 0o750;

const REFUSALS_BELIEVED = 2;

/**
 * Whether the kernel knows `noswap` is learnt by trying and remembered, because no message text and no version number
 * says so reliably. A refusal is one only when the same mount works without the option; what fails for a moment looks
 * like that, too, and many at once by the end of one tool. So the second in a row is believed, of another moment.
 */
export function createMemoryMount(host: Host, mounter: Mounter): MemoryMount {
  let refusals = 0;

  function mountOnce(request: MemoryRequest, noswap: boolean): Promise<Result<void>> {
    const options = [`mode=${request.mode.toString(8).padStart(4, '0')}`];
    if (request.gid !== undefined) options.push(`gid=${request.gid}`);
    if (request.sizeBytes > 0) options.push(`size=${request.sizeBytes}`);
    // Huge pages are never swapped.
    if (request.hugePageBytes !== undefined) {
      options.push(`pagesize=${request.hugePageBytes}`);
      return mounter.mountMemory({ fsType: 'hugetlbfs', target: request.target, options });
    }
    if (noswap) options.push('noswap');
    return mounter.mountMemory({ fsType: 'tmpfs', target: request.target, options });
  }

  return {
    async mount<Args extends MemoryPlace, T>(
      request: MemoryRequest,
      fill: Transition<Args, FilledMemory<T>>,
      args: Omit<Args, 'path' | 'attempt'>,
    ) {
      const perform = (said: MountAttempt) =>
        host.perform(fill, { ...args, path: request.target, attempt: said } as Args);
      const before = await perform('not-yet');
      if (!before.ok) return before;
      if (before.value !== undefined) return ok(before.value);
      const attempt = async (noswap: boolean): Promise<Attempt<T>> => {
        const said = await mountOnce(request, noswap);
        return { said, after: await perform(said.ok ? 'done' : 'failed') };
      };
      const noswap = refusals < REFUSALS_BELIEVED && request.hugePageBytes === undefined;
      const refusalsBefore = refusals;
      const made = settle(request, await attempt(noswap));
      // Where it cannot be seen what is mounted, a second attempt could lie over the first.
      if (made.ok && noswap) refusals = 0;
      if (made.ok || !made.isRefused || !noswap) return doubtful(made);
      const plain = settle(request, await attempt(false));
      if (plain.ok && refusals === refusalsBefore) refusals += 1;
      return doubtful(plain);
    },
  };
}

interface Attempt<T> {
  readonly said: Result<void>;
  readonly after: Result<FilledMemory<T>>;
}

type Settled<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false;
      readonly failure: Failure;
      /** The kernel refuses such a mount: the tool says so, and nothing is mounted. */
      readonly isRefused: boolean;
    };

/** The kernel is the judge, not the tool. */
function settle<T>(
  { target }: MemoryRequest,
  { said, after }: Attempt<T>,
): Settled<NonNullable<FilledMemory<T>>> {
  if (!after.ok) return { ...after, isRefused: false };
  if (after.value !== undefined) return { ok: true, value: after.value };
  if (!said.ok) return { ...said, isRefused: said.failure.code === 'mount-failed' };
  const message = `mount said done, but nothing is mounted at ${target}`;
  return { ...fail({ code: 'mount-failed', message, effect: 'none' }), isRefused: true };
}

/**
 * The program of a `fill`: makes the mount point where nothing is mounted, or does `work` on the tmpfs of ours. A
 * failure keeps its effect `none` only where the tmpfs was there before. `use`: of what containers only read the mount
 * point needs no protection.
 */
export function* fillMemory<T>(
  { path, attempt, expected }: MemoryPlace,
  work: () => Program<Result<T>>,
  use?: DirectoryUse,
): Program<Result<FilledMemory<T>>> {
  const known = attempt === 'not-yet' ? yield* asExpected(expected) : ok(undefined);
  if (!known.ok) return known;
  const mount = yield* findOwnTmpfs(path, attempt);
  if (!mount.ok) return mount;
  if (mount.value === undefined) {
    const placed = attempt === 'not-yet' ? yield* placeMountPoint(path, use) : ok(undefined);
    return placed.ok ? ok(undefined) : placed;
  }
  const filled = yield* work();
  if (filled.ok) return ok({ mount: mount.value, filled: filled.value });
  return attempt === 'not-yet' ? filled : doubtful<never>(filled);
}

function* placeMountPoint(target: AbsolutePath, use: DirectoryUse | undefined): Program<Result<void>> {
  const facts = yield* paths.inspect(target);
  if (!facts.ok) return facts;
  const { kind } = facts.value;
  if (kind === 'absent' || kind === 'directory')
    return yield* paths.makeDirectory(target, MOUNT_POINT_MODE, use);
  return fail({
    code: 'path-wrong-kind',
    message: `a ${kind} stands where a directory must be: ${target}`,
    effect: 'none',
    blocker: target,
  });
}

export interface MemoryEnd extends TransitionArgs {
  readonly ready: AbsolutePath;
  /** Which go when they are empty. */
  readonly above: PodDirectories;
  /** What is to be there before the first unmount. */
  readonly expected?: ExpectedPlace | undefined;
}

/**
 * The program that takes away what is left of the place when no mount is there; else it returns the mount's id, and
 * does nothing. A directory that is not empty is cleared.
 */
export function* endMemory(
  { path, ready, above, expected }: MemoryEnd,
  ...clear: readonly (() => Program<Result<void>>)[]
): Program<Result<number | undefined>> {
  const known = yield* asExpected(expected);
  if (!known.ok) return known;
  const mountId = yield* paths.mountIdOf(path);
  if (!mountId.ok || mountId.value !== undefined) return mountId;
  const removed = yield* oneByOne(
    () => removeCleared(path, clear),
    () => removeReadyMarker(ready),
    () => removePodDirectories(path, above),
  );
  return removed.ok ? ok(undefined) : doubtful<never>(removed);
}

function* removeCleared(
  path: AbsolutePath,
  clear: readonly (() => Program<Result<void>>)[],
): Program<Result<void>> {
  const removed = yield* paths.removeEmptyDirectory(path);
  if (removed.ok || removed.failure.code !== 'directory-not-empty' || clear.length === 0) return removed;
  return yield* oneByOne(...clear, () => paths.removeEmptyDirectory(path));
}
