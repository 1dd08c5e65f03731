/** What the kernel shows after a driver said OK: the mount, or why the driver cannot be believed. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host, MountIdentity, MountLookup } from '../../mount/host.ts';
import { isProven } from '../../mount/mount-sight.ts';
import { deathAtFirst, deathFailure } from '../guard/dead-file-system.ts';
import { doubtful } from '../steps.ts';
import type { CsiVolumeSpec } from '../volume.ts';

/**
 * The mount at a staging path. None is legal where there never was one: some drivers stage without mounting, and some
 * do so for a part of their volumes. `wasMounted`: something was mounted there before the call, or when the volume was
 * staged the last time in this boot. Then none is not the driver's way: an unstage that was given up took effect just
 * now, or the driver went by its own books, and a pod would write to the node's own disk. `staged-not-mounted`: it is
 * unstaged where no pod has it, and staged again.
 */
export async function stagedMountAt(
  host: Pick<Host, 'lookUpMount'>,
  place: { readonly path: AbsolutePath; readonly spec: CsiVolumeSpec; readonly wasMounted: boolean },
): Promise<Result<MountIdentity | undefined>> {
  const { path, spec, wasMounted } = place;
  const mount = await host.lookUpMount(path);
  if (!mount.ok) return doubtful<never>(mount);
  if (mount.value.mounted) return living(path, mount.value, { spec });
  if (!wasMounted) return ok(undefined);
  const message = `NodeStageVolume said OK, but what was mounted at ${path} is gone`;
  return fail({ code: 'staged-not-mounted', message, effect: 'unknown', blocker: spec.driver });
}

export interface PublishedMount {
  readonly mount: MountIdentity;
  /** It serves no more, and the pod has it. */
  readonly isDead: boolean;
}

/**
 * The mount at a target. `published-not-mounted` when there is none, `file-system-dead` when it does not serve and is
 * neither what the pod was `told` of nor mounted over that: nothing is taken from it, and nothing else is given to it
 * there.
 */
export async function publishedMountAt(
  host: Pick<Host, 'lookUpMount' | 'readMountTable'>,
  place: {
    readonly path: AbsolutePath;
    readonly spec: CsiVolumeSpec;
    /** The pod has it for reading only. */
    readonly readOnly: boolean;
    /** The pod has whatever is there. */
    readonly isKept: boolean;
    /** What was noted when the pod was told. */
    readonly told: MountIdentity | undefined;
    /** What one saw there before the call. */
    readonly mountIdBefore: number | undefined;
  },
): Promise<Result<PublishedMount>> {
  const { path, spec, readOnly, isKept, told, mountIdBefore } = place;
  const found = await host.lookUpMount(path);
  if (!found.ok) return doubtful<never>(found);
  if (!found.value.mounted) {
    const message = `NodePublishVolume said OK, but nothing is mounted at ${path}`;
    return fail({ code: 'published-not-mounted', message, effect: 'unknown', blocker: spec.driver });
  }
  const { mountId, device, death } = found.value;
  // The number of a mount is given again when that one is gone: it was this before the driver was called, too.
  const wasSeen = told !== undefined && mountIdBefore === told.mountId;
  const isHad = isKept || (wasSeen && mountId === told.mountId && device === told.device);
  if (isHad) return ok({ mount: identityOf(found.value), isDead: death !== undefined });
  const mount = living(path, found.value, { spec, readOnly });
  if (mount.ok) return ok({ mount: mount.value, isDead: false });
  // So is what lies beneath: one saw it, or the same over it as now.
  const mayLie = wasSeen || mountIdBefore === mountId;
  const isOneMore = told !== undefined && mayLie && (await liesBeneath(host, path, told));
  return isOneMore ? ok({ mount: identityOf(found.value), isDead: true }) : mount;
}

/** Over it is only its own file system: its driver has mounted that once more. */
async function liesBeneath(
  host: Pick<Host, 'readMountTable'>,
  path: AbsolutePath,
  told: MountIdentity,
): Promise<boolean> {
  const table = await host.readMountTable(path);
  const stack = table.ok ? table.value.at(path) : [];
  const depth = stack.findIndex((layer) => isProven(layer, told));
  return depth >= 0 && stack.slice(depth).every(({ device }) => device === told.device);
}

/** A driver says OK to what is mounted already, dead or not (DR-11). */
function living(
  path: AbsolutePath,
  mount: Extract<MountLookup, { mounted: true }>,
  terms: { readonly spec: CsiVolumeSpec; readonly readOnly?: boolean },
): Result<MountIdentity> {
  const death = deathAtFirst(mount, terms);
  return death === undefined
    ? ok(identityOf(mount))
    : fail(deathFailure(path, death, 'unknown', mount.device));
}

function identityOf({ mountId, device, readOnly, fsType }: MountIdentity): MountIdentity {
  return {
    mountId,
    device,
    ...(readOnly === true ? { readOnly } : {}),
    ...(fsType === undefined ? {} : { fsType }),
  };
}
