/**
 * stat(2) for a path of the host's own, where symbolic links are legitimate (`/var/run`).
 *
 * Because: `Host` follows no link, which is right for every path below our root and wrong for a hostPath, so the links
 * are read and followed here, one component at a time and with a bound.
 */
import { fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, parentOf, parseAbsolutePath, type PathKind } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import type { Program } from '../../mount/transition.ts';

/** As Linux: path_resolution(7) gives up with ELOOP after 40. */
const LINKS_MAX = 40;
/** Components walked in all, those of links included. */
const COMPONENTS_MAX = 4_096;
const ROOT = '/' as AbsolutePath;

export interface RealPath {
  /** Free of links; where the path leads, or as far as it exists. */
  readonly path: AbsolutePath;
  /** What is at `path`; never `symlink` and never `absent`. */
  readonly kind: PathKind;
  /** What of the wanted path does not exist below `path`, in order; empty when all of it exists. May hold `..`. */
  readonly missing: readonly string[];
}

/**
 * Where a path really leads, as the kernel would walk it. A loop of links, or a link to what cannot be a path, is
 * `path-unsafe`. No effect.
 */
export function* resolveRealPath(wanted: AbsolutePath): Program<Result<RealPath>> {
  let at: { readonly path: AbsolutePath; readonly kind: PathKind } = { path: ROOT, kind: 'directory' };
  let pending = componentsOf(wanted);
  let links = 0;
  for (let walked = 0; walked < COMPONENTS_MAX; walked += 1) {
    const [component, ...rest] = pending;
    if (component === undefined || at.kind !== 'directory') return ok({ ...at, missing: pending });
    if (component === '..') {
      at = { path: parentOf(at.path), kind: 'directory' };
      pending = rest;
      continue;
    }
    const next = parseAbsolutePath(`${at.path === ROOT ? '' : at.path}/${component}`);
    if (next === undefined) return unsafe(wanted, 'a link leads to a path that is too long');
    const facts = yield* paths.inspect(next);
    if (!facts.ok) return facts;
    const { kind } = facts.value;
    if (kind === 'absent') return ok({ ...at, missing: pending });
    if (kind === 'symlink') {
      links += 1;
      if (links > LINKS_MAX) return unsafe(wanted, `more than ${LINKS_MAX} symbolic links`);
      const text = yield* paths.readLink(next);
      if (!text.ok) return text;
      if (text.value.startsWith('/')) at = { path: ROOT, kind: 'directory' };
      pending = [...componentsOf(text.value), ...rest];
    } else {
      at = { path: next, kind };
      pending = rest;
    }
  }
  return unsafe(wanted, `more than ${COMPONENTS_MAX} components`);
}

function componentsOf(text: string): readonly string[] {
  return text.split('/').filter((one) => one !== '' && one !== '.');
}

function unsafe(wanted: AbsolutePath, because: string): Result<never> {
  return fail({
    code: 'path-unsafe',
    message: `${wanted.slice(0, 512)}: ${because}`,
    effect: 'none',
    blocker: wanted,
  });
}
