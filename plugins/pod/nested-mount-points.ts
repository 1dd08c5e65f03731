/**
 * Directories in a volume of files that containers have something mounted on. They lie beside the generations, because
 * a mount goes with the directory that it is on; so they stay, whatever the files are called later (kubelet:
 * MakeNestedMountpoints).
 */
import { done, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type FileEntry } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition, type TransitionArgs } from '../../mount/transition.ts';
import { type ContentTree, ROOT_ENTRIES_MAX } from './content-tree.ts';

/** All users of a pod pass through them. */
const NESTED_MODE = 0o755;

/** Each, and those above it, with its mode: a missing one above another would be closed to users of the pod. */
export function* makeNestedMountPoints(
  root: AbsolutePath,
  { mountPoints }: ContentTree,
): Program<Result<void>> {
  for (const path of wayTo(mountPoints)) {
    const made = yield* paths.makeDirectory(below(root, ...path.split('/')), NESTED_MODE);
    if (!made.ok) return made;
  }
  return done;
}

/** The names in the root that lead to them; undefined when one is not there. Looks only. */
export function* nestedNames(
  root: AbsolutePath,
  { mountPoints }: ContentTree,
  entries: ReadonlyMap<string, FileEntry>,
): Program<ReadonlySet<string> | undefined> {
  const names = new Set<string>();
  for (const path of wayTo(mountPoints)) {
    const isOfRoot = !path.includes('/');
    const facts = isOfRoot ? entries.get(path)?.facts : yield* factsOf(below(root, ...path.split('/')));
    if (facts?.kind !== 'directory') return undefined;
    if (isOfRoot) names.add(path);
  }
  return names;
}

/** Those of the names that a directory in the root keeps from being a link to what they name. */
export const findHiddenNames = transition<
  TransitionArgs & { readonly names: readonly string[] },
  readonly string[]
>(
  'find-hidden-names',
  function* ({ path: root, names }) {
    const limits = { entriesMax: ROOT_ENTRIES_MAX, fileBytesMax: 0 };
    const entries = yield* paths.readDirectoryFiles(root, limits);
    if (!entries.ok) return entries;
    const directories = entries.value.filter(({ facts }) => facts.kind === 'directory');
    const taken = new Set(directories.map(({ name }) => name));
    return ok(names.filter((name) => taken.has(name)));
  },
  { changesTheWorld: false },
);

function* factsOf(path: AbsolutePath): Program<FileEntry['facts'] | undefined> {
  const facts = yield* paths.inspect(path);
  return facts.ok ? facts.value : undefined;
}

/** `a`, `a/b` for `a/b`. */
function wayTo(mountPoints: readonly string[]): ReadonlySet<string> {
  return new Set(
    mountPoints.flatMap((path) => path.split('/').map((_, index, all) => all.slice(0, index + 1).join('/'))),
  );
}
