/**
 * The mounts that our own directories lie in. One that somebody puts over them later is a stranger: what is made there
 * is gone when he goes, what is mounted there keeps him from going, and what he hides must not be taken for absent.
 */
import { bounded, done, fail, type Failure, ok, type Result } from './failure.ts';
import { type AbsolutePath, type Host, isBelow, parentOf } from './host.ts';
import { coverOf, nameOfMount } from './mount-sight.ts';
import type { MountEntry, MountTable } from './mount-table.ts';

export interface Ground {
  /** Takes what is mounted now for ours, but for what hides mounts below our root; that is told. At the start. */
  learn(table: MountTable): Result<void>;
  /** The first mount over a directory above `path` that is not of the ground; undefined: none, or nothing is known. */
  strangerOver(table: MountTable, path: AbsolutePath): MountEntry | undefined;
  /** The mount that a directory above `path` is in while no stranger lies over it; undefined: that is not known. */
  expectedRound(path: AbsolutePath): number | undefined;
  /** As a failure, told by a look that cost nothing: the table is read only when `within` is not the ground. */
  refuseStranger(path: AbsolutePath, within: number): Promise<Result<void>>;
}

/** The ground of a world in which nobody else mounts anything. */
export const FIRM_GROUND: Pick<Ground, 'strangerOver' | 'expectedRound' | 'refuseStranger'> = {
  expectedRound: () => undefined,
  strangerOver: () => undefined,
  refuseStranger: async () => done,
};

/** `root` and those of its directories that may be mount points of the administrator's. */
export function createGround(
  host: Pick<Host, 'readMountTable'>,
  root: AbsolutePath,
  directories: readonly AbsolutePath[],
): Ground {
  /** Each directory has the ids of the mounts on the way to it. */
  const ways = new Map<AbsolutePath, readonly number[]>();
  // The deepest first.
  const bases = [...directories, root].sort((a, b) => b.length - a.length);

  function baseOf(path: AbsolutePath): AbsolutePath | undefined {
    return bases.find((base) => isBelow(path, base));
  }

  function strangerOver(table: MountTable, path: AbsolutePath): MountEntry | undefined {
    const base = baseOf(path);
    const known = base === undefined ? undefined : ways.get(base);
    if (base === undefined || known === undefined) return undefined;
    const stranger = table.way(parentOf(path)).find(({ mountId }) => !known.includes(mountId));
    const isMoved = known.some((mountId) => table.byId(mountId) === undefined);
    if (stranger === undefined || !isMoved || isBelow(stranger.target, base)) return stranger;
    // The ground itself was unmounted and mounted again: nothing of ours was mounted on it then.
    ways.set(
      base,
      table.way(base).map(({ mountId }) => mountId),
    );
    return undefined;
  }

  function learn(table: MountTable): Result<void> {
    const hiding = new Set(hiddenBelow(table, root).values());
    for (const base of bases) {
      const way = table.way(base);
      const first = way.findIndex((mount) => hiding.has(mount));
      ways.set(
        base,
        (first < 0 ? way : way.slice(0, first)).map(({ mountId }) => mountId),
      );
    }
    const over = table.way(root).find((mount) => hiding.has(mount));
    return over === undefined ? done : fail({ ...strangerFailure(root, over), code: 'mount-foreign' });
  }

  return {
    learn,
    strangerOver,
    expectedRound(path) {
      const base = baseOf(path);
      return base === undefined ? undefined : ways.get(base)?.at(-1);
    },
    async refuseStranger(path, within) {
      const base = baseOf(path);
      if (base === undefined || ways.get(base)?.at(-1) === within) return ok(undefined);
      const table = await host.readMountTable(root);
      if (!table.ok) return fail({ ...table.failure, effect: 'none' });
      // The table could not be read at the start.
      if (ways.size === 0) learn(table.value);
      const stranger = strangerOver(table.value, path);
      return stranger === undefined ? done : fail(strangerFailure(path, stranger));
    },
  };
}

/** A failure says who lies over a directory above `path`, or why that cannot be seen; its effect is `none`. */
export async function refuseStrangerOver(
  {
    host,
    ground,
  }: { readonly host: Pick<Host, 'mountPlaceOf'>; readonly ground: Pick<Ground, 'refuseStranger'> },
  path: AbsolutePath,
): Promise<Result<void>> {
  const place = await host.mountPlaceOf(path);
  const firm = place.ok ? await ground.refuseStranger(path, place.value.within) : place;
  return firm.ok ? done : fail({ ...firm.failure, effect: 'none' });
}

/**
 * Mounts below our root that one does not see, and no other of the same volume in their place, each with who lies over
 * a directory above it.
 */
export function hiddenBelow(table: MountTable, root: AbsolutePath): ReadonlyMap<MountEntry, MountEntry> {
  const hidden = new Map<MountEntry, MountEntry>();
  for (const entry of table.entries) {
    if (!isBelow(entry.target, root)) continue;
    const isSeen = table
      .at(entry.target)
      .some((one) => one === entry || (one.device === entry.device && one.root === entry.root));
    const by = isSeen ? undefined : coverOf(table, entry.target, entry);
    if (by !== undefined && by.target !== entry.target) hidden.set(entry, by);
  }
  return hidden;
}

export function strangerFailure(path: AbsolutePath, stranger: MountEntry): Failure {
  const isOnTop = stranger.target === path;
  const where = isOnTop ? 'the volume' : 'a directory above the volume';
  return bounded({
    code: isOnTop ? 'mount-stacked' : 'mount-foreign',
    message: `somebody else's ${nameOfMount(stranger)} lies over ${where}: ${path}`,
    effect: 'none',
    blocker: nameOfMount(stranger),
  });
}
