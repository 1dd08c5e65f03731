/** What a driver has published of a block volume, on its way to the pod. */
import { fail, type Result } from '../../../mount/failure.ts';
import type { Host, MountIdentity } from '../../../mount/host.ts';
import type { DevicePublication } from '../../device/device-publication.ts';
import type { DevicePublicationLayout } from '../../layout/place-in-pod.ts';
import { doubtful } from '../../steps.ts';

/**
 * After NodePublishVolume was answered OK: the kernel must have a block device at the target. As
 * `DevicePublication.bringOut`, and `published-not-a-device`.
 */
export async function bringOutPublished(
  { host, block }: { readonly host: Pick<Host, 'deviceOf'>; readonly block: DevicePublication },
  places: DevicePublicationLayout,
): Promise<Result<MountIdentity>> {
  const { published } = places;
  const device = await host.deviceOf(published);
  if (!device.ok) return doubtful<never>(device);
  if (device.value !== undefined) return block.bringOut(places, { path: published, device: device.value });
  const message = `NodePublishVolume said OK, but there is no block device at ${published}`;
  return fail({ code: 'published-not-a-device', message, effect: 'unknown', blocker: published });
}
