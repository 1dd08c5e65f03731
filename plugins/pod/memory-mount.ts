/** A tmpfs that does not swap where the kernel can promise it (SE-34; tmpfs(5): `noswap` since Linux 6.4). */
import { fail, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host, MountIdentity } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { doubtful } from '../steps.ts';

export interface MemoryRequest {
  readonly target: AbsolutePath;
  /** Permission bits of its root directory, setgid included. */
  readonly mode: number;
  /** The group of its root directory, which is born with it; undefined: root's. */
  readonly gid?: number | undefined;
  /** 0: the kernel's own limit, half of the memory. */
  readonly sizeBytes: number;
}

export interface MemoryMount {
  /** Idempotent: what is mounted there already is verified and kept as it is, its content included. */
  mount(request: MemoryRequest): Promise<Result<MountIdentity>>;
}

/** The directory under the mount is never seen while it is mounted, and closed to others while it is not (DL-15). */
const MOUNT_POINT_MODE = 0o750;

/**
 * Whether the kernel knows `noswap` is learnt by trying and remembered, because no message text and no version number
 * says so reliably. A refusal is believed only when the same mount works without the option.
 */
export function createMemoryMount(host: Host, mounter: Mounter): MemoryMount {
  let knowsNoswap = true;

  async function attempt(request: MemoryRequest, noswap: boolean): Promise<Result<MountIdentity>> {
    const options = [`mode=${request.mode.toString(8).padStart(4, '0')}`];
    if (request.gid !== undefined) options.push(`gid=${request.gid}`);
    if (request.sizeBytes > 0) options.push(`size=${request.sizeBytes}`);
    if (noswap) options.push('noswap');
    return mounter.mountTmpfs({ target: request.target, options });
  }

  return {
    async mount(request) {
      const before = await host.lookUpMount(request.target);
      if (!before.ok) return before;
      if (before.value.mounted) return attempt(request, knowsNoswap);
      const directory = await placeMountPoint(host, request.target);
      if (!directory.ok) return directory;
      const noswap = knowsNoswap;
      const mounted = await attempt(request, noswap);
      if (mounted.ok || mounted.failure.code !== 'mount-failed' || !noswap) return doubtful(mounted);
      const plain = await attempt(request, false);
      if (plain.ok) knowsNoswap = false;
      return doubtful(plain);
    },
  };
}

async function placeMountPoint(host: Host, target: AbsolutePath): Promise<Result<void>> {
  const facts = await host.inspect(target);
  if (!facts.ok) return facts;
  const { kind } = facts.value;
  if (kind === 'absent' || kind === 'directory') return host.makeDirectory(target, MOUNT_POINT_MODE);
  return fail({
    code: 'path-wrong-kind',
    message: `a ${kind} stands where a directory must be: ${target}`,
    effect: 'none',
    blocker: target,
  });
}
