/** How much room files take on the simulated machine, as `Host.measureUsage` has it. */
import { type Failure, fail, ok, type Result } from '../../mount/failure.ts';
import type { Room, Usage, UsageRequest } from '../../mount/usage.ts';
import { type Inode, sizeOf } from './file-tree.ts';
import { failureOf } from './host-failures.ts';
import type { SimKernel } from './sim-kernel.ts';

const BLOCK_BYTES = 512;
/** More than any simulated pod writes. */
const MEMORY_BYTES = 1n << 30n;

export function usageOf(kernel: SimKernel, { path, scope }: UsageRequest): Result<Usage> {
  const at = kernel.walk(path);
  if (typeof at === 'string') return fail(failureOf(at, path));
  const isMounted = at.inode === at.mount.root;
  const refuse = (code: Failure['code']) => fail({ code, message: path, effect: 'none' });
  if (scope === 'tree' && isMounted) return refuse('mount-foreign');
  if (scope === 'file-system' && !isMounted) return refuse('mount-lost');
  if (at.inode.kind !== 'directory')
    return refuse(at.inode.kind === 'symlink' ? 'path-unsafe' : 'path-wrong-kind');
  const inodes = inodesIn(at.inode, at.mount.children);
  const used = BigInt(inodes.reduce((sum, inode) => sum + allotted(inode), 0));
  return ok({ bytes: roomOf(used, scope), inodes: roomOf(BigInt(inodes.length), scope), isWhole: true });
}

function roomOf(used: bigint, scope: UsageRequest['scope']): Room {
  if (scope === 'tree') return { used, total: undefined, available: undefined };
  return { used, total: MEMORY_BYTES, available: MEMORY_BYTES - used };
}

function inodesIn(top: Inode, mountedOn: ReadonlyMap<Inode, unknown>): Inode[] {
  const within = [...top.entries.values()].filter((one) => !mountedOn.has(one));
  return [top, ...within.flatMap((one) => inodesIn(one, mountedOn))];
}

function allotted(inode: Inode): number {
  return Math.ceil(sizeOf(inode) / BLOCK_BYTES) * BLOCK_BYTES;
}
