/** What lstat says of a path, as `PathFacts`. Path brokers only. */
import { type BigIntStats, fstatSync, lstatSync, type Stats } from 'node:fs';
import { type ChildPath, withDirectory, withChild } from '../path/path-walk.ts';
import { ok, type Result } from '../../failure.ts';
import { type AbsolutePath, type PathFacts, type PathKind, wayTo } from '../../host.ts';

export const MODE_BITS = 0o7777;
const ABSENT: PathFacts = { kind: 'absent', mode: 0, uid: 0, gid: 0, inode: 0, sizeBytes: 0, modifiedMs: 0 };

export function inspect(path: AbsolutePath): Result<PathFacts> {
  if (path === '/') return withDirectory(path, ({ descriptor }) => ok(factsOf(fstatSync(descriptor))));
  const found = withChild(path, (child) => ok(factsAt(child)));
  return isMissing(found) ? ok(ABSENT) : found;
}

/** Each from `/` anew: what comes later may have been exchanged only by who could do so before. */
export function inspectWay(path: AbsolutePath): Result<readonly PathFacts[]> {
  const way: PathFacts[] = [];
  for (const one of wayTo(path)) {
    const facts = inspect(one);
    if (!facts.ok) return facts;
    way.push(facts.value);
    if (facts.value.kind === 'absent') break;
  }
  return ok(way);
}

function factsAt(child: ChildPath): PathFacts {
  const stats = lstatSync(child.path, { throwIfNoEntry: false });
  return stats === undefined ? ABSENT : factsOf(stats);
}

export function factsOf(stats: Stats | BigIntStats): PathFacts {
  return {
    kind: kindOf(stats),
    mode: Number(stats.mode) & MODE_BITS,
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    inode: Number(stats.ino),
    sizeBytes: Number(stats.size),
    modifiedMs: Number(stats.mtimeMs),
  };
}

function kindOf(stats: Stats | BigIntStats): PathKind {
  if (stats.isDirectory()) return 'directory';
  if (stats.isFile()) return 'file';
  if (stats.isSymbolicLink()) return 'symlink';
  if (stats.isSocket()) return 'socket';
  if (stats.isFIFO()) return 'fifo';
  return stats.isBlockDevice() ? 'block' : 'character';
}

/** The path or its parent is not there: for many calls that is an answer. */
export function isMissing(result: Result<unknown>): boolean {
  return !result.ok && result.failure.code === 'path-missing' && result.failure.effect === 'none';
}
