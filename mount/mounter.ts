/** Mounting and unmounting with the kernel as judge: it is asked before, so that nothing stacks, and after. */
import { printable } from './text/printable.ts';
import { done, type Failure, fail, ok, type Result } from './failure.ts';
import { type AbsolutePath, type Host, isBelow, type MountIdentity } from './host.ts';
import type { MountEntry } from './mount-table.ts';

export interface TmpfsRequest {
  readonly target: AbsolutePath;
  /** Each without comma and control characters: `size=16777216`, `mode=0700`. */
  readonly options: readonly string[];
}

/**
 * Guarantees: idempotent; only below the root it was made for (`path-unsafe`); settles when the effect has ended;
 * effect `none` means that what was mounted before is mounted now.
 */
export interface Mounter {
  /**
   * A tmpfs of ours at an existing directory, mounted or found mounted. Something else there is `mount-foreign`, more
   * than one layer `mount-stacked`; neither is touched. A tmpfs found is not compared with `options`.
   */
  mountTmpfs(request: TmpfsRequest): Promise<Result<MountIdentity>>;
  /**
   * Until nothing is mounted at the target, at most 16 layers. `mount-busy` says where it is held (`heldAt`), not by
   * whom. Never lazy, never forced. Nothing mounted, or nothing there, is success.
   */
  unmount(target: AbsolutePath): Promise<Result<void>>;
  /** As `unmount`, if what is mounted is one tmpfs of ours; otherwise `mount-foreign` or `mount-stacked`, untouched. */
  unmountOwn(target: AbsolutePath): Promise<Result<void>>;
}

/** What our tmpfs mounts are called in the mount table. */
const TMPFS_LABEL = 'mooring';
/** What the kubelet calls its own: a node that we took over from it has some. */
const KUBELET_TMPFS_LABEL = 'tmpfs';
const LAYERS_MAX = 16;

export function createMounter(host: Host, root: AbsolutePath): Mounter {
  return {
    mountTmpfs: async (request) => {
      if (!isBelow(request.target, root)) return refuseOutside(request.target, root);
      const before = await host.lookUpMount(request.target);
      if (!before.ok) return before;
      return before.value.mounted ? verifyOurs(host, request.target) : mountTmpfs(host, request);
    },
    unmount: async (target) =>
      isBelow(target, root) ? unmountAll(host, target) : refuseOutside(target, root),
    unmountOwn: async (target) => {
      if (!isBelow(target, root)) return refuseOutside(target, root);
      const ours = await verifyOurs(host, target);
      return ours.ok ? unmountAll(host, target) : ours;
    },
  };
}

async function mountTmpfs(host: Host, { target, options }: TmpfsRequest): Promise<Result<MountIdentity>> {
  const mounted = await host.mount({ fsType: 'tmpfs', source: TMPFS_LABEL, target, options });
  const after = await host.lookUpMount(target);
  if (!after.ok) return fail({ ...after.failure, effect: 'unknown' });
  if (!after.value.mounted) {
    const nothing = {
      code: 'mount-failed',
      message: `mount said done, but nothing is mounted at ${target}`,
    } as const;
    return fail({ ...(mounted.ok ? nothing : mounted.failure), effect: 'none' });
  }
  // It failed, or was killed, and something is there: ours only if the table says so.
  return mounted.ok ? ok(identityOf(after.value)) : verifyOurs(host, target);
}

/** The table knows what a lookup does not: how many layers, and of what. */
async function verifyOurs(host: Host, target: AbsolutePath): Promise<Result<MountIdentity>> {
  const table = await host.readMountTable(target);
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

/** By its label, or by that of a kubelet's; another tmpfs of that label cannot be told from it. */
export function isOwnTmpfs({ fsType, root, source }: MountEntry): boolean {
  return fsType === 'tmpfs' && root === '/' && (source === TMPFS_LABEL || source === KUBELET_TMPFS_LABEL);
}

async function unmountAll(host: Host, target: AbsolutePath): Promise<Result<void>> {
  const before = await host.mountIdOf(target);
  if (!before.ok) return before;
  let mountId = before.value;
  for (let layers = 0; layers < LAYERS_MAX; layers += 1) {
    if (mountId === undefined) return done;
    const unmounted = await host.unmount(target);
    const after = await host.mountIdOf(target);
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
