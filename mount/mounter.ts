/** Mounting and unmounting with the kernel as judge: it is asked before, so that nothing stacks, and after. */
import { printable } from './text/printable.ts';
import { done, type Failure, fail, ok, type Result } from './failure.ts';
import { type AbsolutePath, type Host, isBelow, type MemoryFileSystem, type MountIdentity } from './host.ts';
import type { MountEntry } from './mount-table.ts';
import { paths } from './path-steps.ts';
import type { UnmountTarget } from './path-tool.ts';
import { type Program, type Transition, transition, type TransitionArgs } from './transition.ts';

export interface MemoryMountRequest {
  readonly fsType: MemoryFileSystem;
  readonly target: AbsolutePath;
  /** Each without comma and control characters: `size=16777216`, `mode=0700`. */
  readonly options: readonly string[];
}

type MayBeRemote = Pick<UnmountTarget, 'isRemote'>;

/**
 * Guarantees: only below the root it was made for (`path-unsafe`); settles when the effect has ended; unmounting is
 * idempotent, and its effect `none` means that what was mounted before is mounted now.
 */
export interface Mounter {
  /**
   * mount(8) of a file system of ours in memory on an existing directory. It answers the word of the tool: the caller
   * looks before and after, by `findOwnTmpfs`.
   */
  mountMemory(request: MemoryMountRequest): Promise<Result<void>>;
  /**
   * Until nothing is mounted at the target, at most 16 layers. `mount-busy` says where it is held (`heldAt`), not by
   * whom. Never lazy, never forced. Nothing mounted, or nothing there, is success.
   */
  unmount(target: AbsolutePath, kind?: MayBeRemote): Promise<Result<void>>;
  /** As `unmount`, but only while this mount is what one sees there; where it is not, nothing is done: success. */
  unmountOnly(target: AbsolutePath, mountId: number, kind?: MayBeRemote): Promise<Result<void>>;
  /**
   * As `unmount`, with a transition that answers what is mounted at its path, and when that is nothing does what is to
   * be done then: it is performed before the first unmount and after each. `first`: what it is told besides before any.
   * Assumes: what is mounted there, if anything, is a tmpfs of ours.
   */
  unmountThen<Args extends TransitionArgs>(
    end: Transition<Args, number | undefined>,
    args: NoInfer<Args>,
    first?: Partial<NoInfer<Args>>,
  ): Promise<Result<void>>;
  /** As `unmount`, if what is mounted is one tmpfs of ours; otherwise `mount-foreign` or `mount-stacked`, untouched. */
  unmountOwn(target: AbsolutePath): Promise<Result<void>>;
}

/** What our file systems in memory are called in the mount table. */
const TMPFS_LABEL = 'mooring';
/** What the kubelet calls its own: a node that we took over from it has some. */
const KUBELET_LABEL: Readonly<Record<MemoryFileSystem, string>> = { tmpfs: 'tmpfs', hugetlbfs: 'nodev' };
const LAYERS_MAX = 16;

export function createMounter(host: Host, root: AbsolutePath): Mounter {
  return {
    mountMemory: async ({ fsType, target, options }) =>
      isBelow(target, root)
        ? host.mount({ fsType, source: TMPFS_LABEL, target, options, isWalked: true })
        : refuseOutside(target, root),
    unmount: async (target, kind = {}) =>
      isBelow(target, root)
        ? unmountAll(host, findMount, { path: target }, kind)
        : refuseOutside(target, root),
    unmountOnly: async (target, only, kind = {}) =>
      isBelow(target, root)
        ? unmountAll(host, findMount, { path: target }, { ...kind, only })
        : refuseOutside(target, root),
    unmountThen: async (end, args, first) =>
      isBelow(args.path, root)
        ? unmountAll(host, end, args, { first, isMemory: true })
        : refuseOutside(args.path, root),
    unmountOwn: async (target) => {
      if (!isBelow(target, root)) return refuseOutside(target, root);
      const ours = await host.perform(proveOwnTmpfs, { path: target });
      return ours.ok ? unmountAll(host, findMount, { path: target }) : ours;
    },
  };
}

export const findMount = transition<TransitionArgs, number | undefined>(
  'find-mount',
  ({ path }) => paths.mountIdOf(path),
  { changesTheWorld: false },
);

export const proveOwnTmpfs = transition<TransitionArgs, MountIdentity>(
  'prove-own-tmpfs',
  ({ path }) => verifyOurs(path),
  { changesTheWorld: false },
);

/** What came of `mountTmpfs`, as far as it has been called. */
export type MountAttempt = 'not-yet' | 'done' | 'failed';

/**
 * The tmpfs of ours at the target; undefined when nothing is mounted. Something else there is `mount-foreign`, several
 * layers are `mount-stacked`; a tmpfs found is not compared with any options. What was there before the attempt, or
 * came of one that failed or was killed, is ours only if the table says so.
 */
export function* findOwnTmpfs(
  target: AbsolutePath,
  attempt: MountAttempt,
): Program<Result<MountIdentity | undefined>> {
  const found = yield* paths.lookUpMount(target);
  if (!found.ok) return attempt === 'not-yet' ? found : fail({ ...found.failure, effect: 'unknown' });
  if (!found.value.mounted) return ok(undefined);
  return attempt === 'done' ? ok(identityOf(found.value)) : yield* verifyOurs(target);
}

/** The table knows what a lookup does not: how many layers, and of what. */
function* verifyOurs(target: AbsolutePath): Program<Result<MountIdentity>> {
  const table = yield* paths.readMountTable(target);
  if (!table.ok) return table;
  const stack = table.value.at(target);
  const [only] = stack;
  if (only === undefined) {
    return fail({
      code: 'mount-failed',
      message: `what was mounted at ${target} has just gone`,
      effect: 'unknown',
    });
  }
  if (stack.length > 1) {
    const message = `${stack.length} mounts on top of each other at ${target}`;
    return fail({ code: 'mount-stacked', message, effect: 'none', blocker: target });
  }
  if (isOwnTmpfs(only)) return ok(identityOf(only));
  const message = `a ${only.fsType} that is not ours is mounted at ${target}`;
  return fail({
    code: 'mount-foreign',
    message,
    effect: 'none',
    blocker: printable(`${only.fsType} ${only.source}`, 256),
  });
}

/** It is told by its label, or by that of a kubelet's; another one of that label cannot be told from it. */
export function isOwnTmpfs({ fsType, root, source }: MountEntry): boolean {
  if (fsType !== 'tmpfs' && fsType !== 'hugetlbfs') return false;
  return root === '/' && (source === TMPFS_LABEL || source === KUBELET_LABEL[fsType]);
}

interface UnmountKind<Args> extends Omit<UnmountTarget, 'isWalked'> {
  /** What the transition is told besides before any unmount. */
  readonly first?: Partial<Args> | undefined;
  /** The number of the one mount that may go. */
  readonly only?: number;
}

async function unmountAll<Args extends TransitionArgs>(
  host: Host,
  end: Transition<Args, number | undefined>,
  args: Args,
  { first, only, isMemory, ...kind }: UnmountKind<Args> = {},
): Promise<Result<void>> {
  const target = args.path;
  const before = await host.perform(end, { ...args, ...first });
  if (!before.ok) return before;
  let mountId = before.value;
  for (let layers = 0; layers < LAYERS_MAX; layers += 1) {
    if (mountId === undefined || (only !== undefined && mountId !== only)) return done;
    // What comes to light below the first layer may be anything.
    const isOurs = isMemory === true && layers === 0;
    const unmounted = await host.unmount(target, {
      isWalked: true,
      ...kind,
      ...(isOurs ? { isMemory } : {}),
    });
    const after = await host.perform(end, args);
    if (!after.ok) return fail({ ...after.failure, effect: 'unknown' });
    if (after.value === mountId) {
      const failure = explain(target, unmounted);
      return fail({ ...failure, effect: layers === 0 ? 'none' : 'unknown' });
    }
    mountId = after.value;
  }
  if (mountId === undefined) return done;
  const message = `still mounted after ${LAYERS_MAX} layers: ${target}`;
  return fail({ code: 'mount-stacked', message, effect: 'unknown', blocker: target });
}

/** umount(8) exits alike for busy, unknown and not allowed: still mounted is what counts. */
function explain(target: AbsolutePath, unmounted: Result<void>): Failure {
  if (unmounted.ok) {
    return {
      code: 'unmount-failed',
      message: `umount said done, but ${target} is still mounted`,
      effect: 'none',
    };
  }
  if (unmounted.failure.code !== 'unmount-failed') return unmounted.failure;
  const message = `${target} is busy: ${unmounted.failure.message}`;
  return { code: 'mount-busy', message, effect: 'none', heldAt: target };
}

function identityOf({ mountId, device }: MountIdentity): MountIdentity {
  return { mountId, device };
}

function refuseOutside(target: AbsolutePath, root: AbsolutePath): Result<never> {
  return fail({
    code: 'path-unsafe',
    message: `${target} is not below ${root}`,
    effect: 'none',
  });
}
