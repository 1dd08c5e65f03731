/** What the kernel shows after a driver said OK: the mount, or why the driver cannot be believed. */
import { type DeathCause, fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host, MountIdentity } from '../../mount/host.ts';
import { deathFailure } from '../guard/dead-file-system.ts';
import { doubtful } from '../steps.ts';

/**
 * The mount at a staging path. None is legal where there never was one: some drivers stage without mounting, and some
 * do so for a part of their volumes. `wasMounted`: something was mounted there before the call, or when the volume was
 * staged the last time in this boot. Then none is not the driver's way: an unstage that was given up took effect just
 * now, or nothing was done, and a pod would write to the node's own disk. `staged-not-mounted`: it is staged again.
 */
export async function stagedMountAt(
  host: Pick<Host, 'lookUpMount'>,
  place: { readonly path: AbsolutePath; readonly driver: string; readonly wasMounted: boolean },
): Promise<Result<MountIdentity | undefined>> {
  const { path, driver, wasMounted } = place;
  const mount = await host.lookUpMount(path);
  if (!mount.ok) return doubtful<never>(mount);
  if (mount.value.mounted) return living(path, mount.value);
  if (!wasMounted) return ok(undefined);
  const message = `NodeStageVolume said OK, but what was mounted at ${path} is gone`;
  return fail({ code: 'staged-not-mounted', message, effect: 'unknown', blocker: driver });
}

export interface PublishedMount {
  readonly mount: MountIdentity;
  /** It serves no more, and the pod has it. */
  readonly isDead: boolean;
}

/**
 * The mount at a target. `published-not-mounted` when there is none, `file-system-dead` when it does not serve and is
 * not the one that the pod `has`: nothing is taken from it, and nothing else is given to it there.
 */
export async function publishedMountAt(
  host: Pick<Host, 'lookUpMount'>,
  place: {
    readonly path: AbsolutePath;
    readonly driver: string;
    readonly has: MountIdentity | 'any' | undefined;
  },
): Promise<Result<PublishedMount>> {
  const { path, driver, has } = place;
  const found = await host.lookUpMount(path);
  if (!found.ok) return doubtful<never>(found);
  if (!found.value.mounted) {
    const message = `NodePublishVolume said OK, but nothing is mounted at ${path}`;
    return fail({ code: 'published-not-mounted', message, effect: 'unknown', blocker: driver });
  }
  const { mountId, device, death } = found.value;
  const isHad = has === 'any' || (mountId === has?.mountId && device === has.device);
  if (isHad) return ok({ mount: identityOf(found.value), isDead: death !== undefined });
  const mount = living(path, found.value);
  return mount.ok ? ok({ mount: mount.value, isDead: false }) : mount;
}

/** A driver says OK to what is mounted already, dead or not (DR-11). */
function living(
  path: AbsolutePath,
  mount: MountIdentity & { readonly death?: DeathCause },
): Result<MountIdentity> {
  return mount.death === undefined ? ok(identityOf(mount)) : fail(deathFailure(path, mount.death, 'unknown'));
}

function identityOf({ mountId, device, readOnly, fsType }: MountIdentity): MountIdentity {
  return {
    mountId,
    device,
    ...(readOnly === true ? { readOnly } : {}),
    ...(fsType === undefined ? {} : { fsType }),
  };
}
