/** Where a part of a volume leads, in the trees that hosts of tests keep in memory. */
import { fail, ok, type Result } from '../mount/failure.ts';
import { type AbsolutePath, below, parentOf, type PathKind } from '../mount/host.ts';
import type { PartBind } from '../mount/part-bind.ts';

/** What the walk needs of a tree; a path that it asks about has no link above it. */
export interface TreeOfParts {
  kindAt(path: AbsolutePath): PathKind;
  linkAt(path: AbsolutePath): string;
  /** False: it can only be read. */
  makeDirectory(path: AbsolutePath): boolean;
}

const LINKS_MAX = 40;

/** As `PartBind` has it; nobody changes the tree meanwhile. */
export function findPart(tree: TreeOfParts, { root, part, makesMissing }: PartBind): Result<AbsolutePath> {
  const refuse = (code: 'subpath-missing' | 'subpath-unsafe') =>
    fail({ code, message: part, effect: 'none' });
  if (tree.kindAt(root) !== 'directory')
    return fail({
      code: tree.kindAt(root) === 'absent' ? 'path-missing' : 'path-wrong-kind',
      message: root,
      effect: 'none',
    });
  const pending = namesIn(part).map((name) => ({ name, isFromLink: false }));
  let at = root;
  for (let links = 0; ; ) {
    const next = pending.shift();
    if (next === undefined) return ok(at);
    if (next.name === '..') {
      if (at === root) return refuse('subpath-unsafe');
      at = parentOf(at);
      continue;
    }
    if (tree.kindAt(at) !== 'directory')
      return fail({ code: 'path-wrong-kind', message: part, effect: 'none' });
    const path = below(at, next.name);
    const kind = tree.kindAt(path);
    if (kind === 'absent') {
      if (!makesMissing || next.isFromLink || !tree.makeDirectory(path)) return refuse('subpath-missing');
    } else if (kind === 'symlink') {
      links += 1;
      const text = tree.linkAt(path);
      if (links > LINKS_MAX || text.startsWith('/')) return refuse('subpath-unsafe');
      pending.unshift(...namesIn(text).map((name) => ({ name, isFromLink: true })));
      continue;
    }
    at = path;
  }
}

function namesIn(text: string): readonly string[] {
  return text.split('/').filter((one) => one !== '' && one !== '.');
}
