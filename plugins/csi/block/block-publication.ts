/** What a driver has published of a block volume, on its way to the pod. */
import { fail, type Result } from '../../../mount/failure.ts';
import type { Host, MountIdentity } from '../../../mount/host.ts';
import type { DevicePublication } from '../../device/device-publication.ts';
import type { DevicePublicationLayout } from '../../layout/place-in-pod.ts';
import { doubtful } from '../../steps.ts';

/**
 * After NodePublishVolume was answered OK, at once: the kernel must have a block device at the target. As
 * `DevicePublication.bringOut`, and `published-not-a-device`.
 */
export async function bringOutPublished(
  parts: { readonly host: Pick<Host, 'identifyDisk' | 'nowMs'>; readonly block: DevicePublication },
  places: DevicePublicationLayout,
): Promise<Result<MountIdentity>> {
  const { host, block } = parts;
  const { published } = places;
  const answeredMs = host.nowMs();
  const disk = await host.identifyDisk(published);
  if (!disk.ok) return doubtful<never>(disk);
  if (disk.value !== undefined) return block.bringOut(places, { path: published, ...disk.value, answeredMs });
  const message = `NodePublishVolume said OK, but there is no block device at ${published}`;
  return fail({ code: 'published-not-a-device', message, effect: 'unknown', blocker: published });
}
