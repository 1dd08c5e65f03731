/** What a driver has published of a block volume, on its way to the pod. */
import { fail, type Result } from '../../../mount/failure.ts';
import type { Host, MountIdentity } from '../../../mount/host.ts';
import type { DevicePublication } from '../../device/device-publication.ts';
import type { DevicePublicationLayout } from '../../layout/place-in-pod.ts';
import { doubtful } from '../../steps.ts';

/** Until the driver's answer is looked at, a disk that was pulled out may have left its number to another. */
const LOOK_MS_MAX = 10_000;

/**
 * After NodePublishVolume was answered OK, at once: the kernel must have a block device at the target. As
 * `DevicePublication.bringOut`, and `published-not-a-device`; `device-replaced` also when the look took more than 10 s:
 * which disk has the number by then nobody can tell.
 */
export async function bringOutPublished(
  parts: { readonly host: Pick<Host, 'identifyDisk' | 'nowMs'>; readonly block: DevicePublication },
  places: DevicePublicationLayout,
): Promise<Result<MountIdentity>> {
  const { host, block } = parts;
  const { published } = places;
  const refuse = (code: 'device-replaced' | 'published-not-a-device', because: string) =>
    fail({
      code,
      message: `NodePublishVolume said OK, but ${because}`,
      effect: 'unknown',
      blocker: published,
    });
  const answeredMs = host.nowMs();
  const disk = await host.identifyDisk(published);
  if (!disk.ok) return doubtful<never>(disk);
  if (disk.value === undefined)
    return refuse('published-not-a-device', `there is no block device at ${published}`);
  if (host.nowMs() - answeredMs > LOOK_MS_MAX)
    return refuse('device-replaced', `a look at ${published} took more than ${LOOK_MS_MAX / 1_000} s`);
  return block.bringOut(places, { path: published, ...disk.value });
}
