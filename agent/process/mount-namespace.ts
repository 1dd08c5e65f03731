/** Would pods see our mounts? Asked once, before anything is mounted (INV-38). Pure. */
import { done, fail, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, isBelow } from '../../mount/host.ts';
import type { MountEntry, MountTable } from '../../mount/mount-table.ts';

export interface NamespaceFacts {
  /** readlink of /proc/self/ns/mnt. */
  readonly own: Result<string>;
  /** readlink of /proc/1/ns/mnt. */
  readonly first: Result<string>;
  readonly table: Result<MountTable>;
  readonly root: AbsolutePath;
}

/**
 * Ok when the mount namespace is pid 1's and the mount that holds the root is shared. A private copy looks the same
 * from within, while containers see empty directories: so it is refused and not repaired.
 */
export function checkMountNamespace({ own, first, table, root }: NamespaceFacts): Result<void> {
  if (!own.ok) return own;
  if (!first.ok) {
    const { message } = first.failure;
    return refuse(
      `the mount namespace of pid 1 cannot be read (${message}); that takes root and CAP_SYS_PTRACE`,
    );
  }
  if (own.value !== first.value) {
    return refuse(
      `this mount namespace (${own.value}) is not that of pid 1 (${first.value}), so pods would never see ` +
        'a mount; look for PrivateTmp=, ProtectSystem= and the like in the unit, or for a container around the agent',
    );
  }
  if (!table.ok) return table;
  const holder = mountHolding(root, table.value);
  if (holder?.propagation.some((one) => one.startsWith('shared:')) === true) return done;
  const at = holder?.target ?? '/';
  return refuse(
    `the mount at ${at}, which holds ${root}, is not shared, so containers would never see a mount; ` +
      `"mount --make-shared ${at}" makes it so`,
  );
}

/** The visible one: of the deepest targets at or above the path the last. */
export function mountHolding(path: AbsolutePath, table: MountTable): MountEntry | undefined {
  let best: MountEntry | undefined;
  for (const entry of table.entries) {
    if (entry.target !== path && !isBelow(path, entry.target)) continue;
    if (best === undefined || entry.target.length >= best.target.length) best = entry;
  }
  return best;
}

function refuse(message: string): Result<void> {
  return fail({ code: 'mount-foreign', message, effect: 'none' });
}
