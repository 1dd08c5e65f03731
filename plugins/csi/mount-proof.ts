/** What the kernel shows after a driver said OK: the mount, or why the driver cannot be believed. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host, MountIdentity } from '../../mount/host.ts';
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
  if (mount.value.mounted) return ok(identityOf(mount.value));
  if (!wasMounted) return ok(undefined);
  const message = `NodeStageVolume said OK, but what was mounted at ${path} is gone`;
  return fail({ code: 'staged-not-mounted', message, effect: 'unknown', blocker: driver });
}

/** The mount at a target. `published-not-mounted` when there is none. */
export async function publishedMountAt(
  host: Pick<Host, 'lookUpMount'>,
  place: { readonly path: AbsolutePath; readonly driver: string },
): Promise<Result<MountIdentity>> {
  const { path, driver } = place;
  const mount = await host.lookUpMount(path);
  if (!mount.ok) return doubtful<never>(mount);
  if (mount.value.mounted) return ok(identityOf(mount.value));
  const message = `NodePublishVolume said OK, but nothing is mounted at ${path}`;
  return fail({ code: 'published-not-mounted', message, effect: 'unknown', blocker: driver });
}

function identityOf({ mountId, device }: MountIdentity): MountIdentity {
  return { mountId, device };
}
