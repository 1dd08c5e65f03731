/** What the simulated host does to bind a part of a volume. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, parentOf, type PathKind, wayTo } from '../../mount/host.ts';
import { type BoundPart, failRootLost, type PartBind } from '../../mount/part-bind.ts';
import { findPart } from '../part-of-tree.ts';
import type { Errno } from './file-tree.ts';
import { failureOf } from './host-failures.ts';
import type { Position, SimKernel } from './sim-kernel.ts';

const DIRECTORY_MODE = 0o750;
const FILE_MODE = 0o640;

/** All of it. */
export function bindPart(kernel: SimKernel, request: PartBind): Result<BoundPart> {
  const { target } = request;
  const prepared = preparePart(kernel, request);
  if (!prepared.ok || prepared.value === 'mounted') {
    if (!prepared.ok) return prepared;
    const [seen, meant] = [kernel.walk(target), findInKernel(kernel, request)];
    const part = meant.ok ? kernel.walk(meant.value) : 'ENOENT';
    if (typeof seen === 'string') return fail(failureOf(seen, target));
    if (!isSame(seen, part)) return ok({ otherMountId: seen.mount.id });
    // What a crash has left may lack them.
    seen.mount.options = withFlags(seen.mount.options, request);
    return ok('bound');
  }
  const denied = kernel.bind(prepared.value, target, withFlags([], request));
  return denied === undefined ? ok('bound') : fail({ ...failureOf(denied, target), effect: 'unknown' });
}

function withFlags(options: readonly string[], { flags = [] }: PartBind): readonly string[] {
  const kept = options.filter((one) => one !== 'rw' || !flags.includes('ro'));
  return [...new Set([...kept, ...flags])];
}

/** What comes before mount(8): the part, and a mount point of its kind. Answers the part when nothing is mounted. */
export function preparePart(kernel: SimKernel, request: PartBind): Result<AbsolutePath | 'mounted'> {
  const found = findInKernel(kernel, request);
  if (!found.ok) return found;
  const { target } = request;
  const at = kernel.walk(target);
  if (typeof at !== 'string' && at.inode === at.mount.root) return ok('mounted');
  const isDirectory = kindAt(kernel, found.value) === 'directory';
  for (const one of wayTo(parentOf(target))) kernel.makeDirectory(one, DIRECTORY_MODE);
  const there = kindAt(kernel, target);
  if (there !== 'absent' && (there === 'directory') !== isDirectory) {
    const denied = there === 'directory' ? kernel.removeDirectory(target) : kernel.removeFile(target);
    if (denied !== undefined) return fail(failureOf(denied, target));
  }
  if (kindAt(kernel, target) !== 'absent') return found;
  const denied = isDirectory
    ? kernel.makeDirectory(target, DIRECTORY_MODE)
    : kernel.makeFile(target, new Uint8Array(), FILE_MODE);
  return denied === undefined ? found : fail(failureOf(denied, target));
}

function findInKernel(kernel: SimKernel, request: PartBind): Result<AbsolutePath> {
  const root = kernel.walk(request.root);
  if (typeof root === 'string') return fail(failureOf(root, request.root));
  const { rootMountId } = request;
  if (rootMountId !== undefined && root.mount.id !== rootMountId) return failRootLost(request.root);
  if (root.inode.kind === 'symlink') return fail(failureOf('ELOOP', request.root));
  return findPart(
    {
      kindAt: (path) => kindAt(kernel, path),
      linkAt: (path) => {
        const at = kernel.walk(path);
        return typeof at === 'string' ? '' : at.inode.linkText;
      },
      makeDirectory: (path) => kernel.makeDirectory(path, root.inode.mode) === undefined,
    },
    request,
  );
}

function kindAt(kernel: SimKernel, path: AbsolutePath): PathKind {
  const facts = kernel.inspect(path);
  return typeof facts === 'string' ? 'absent' : facts.kind;
}

function isSame(a: Position | Errno, b: Position | Errno): boolean {
  return typeof a !== 'string' && typeof b !== 'string' && a.inode === b.inode;
}
