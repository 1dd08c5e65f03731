/**
 * What pods see of their block volumes. Of such a volume the mount table shows only what we bound and hold; the pod's
 * link leads to what the driver made, a bind or a node, and that may go or be replaced without us: somebody unmounts
 * it, or a call that was given up takes effect (DR-08).
 */
import { ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, DeviceNumber, Host } from '../../mount/host.ts';
import { isDevice } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { PublicationSpec, VolumeSpec } from '../../plugins/volume.ts';

/** Each link has its device by its path; undefined: it leads to none. One that could not be looked at is left out. */
export type ShownDevices = ReadonlyMap<AbsolutePath, DeviceNumber | undefined>;

export interface ShownVolume {
  readonly spec: VolumeSpec;
  readonly places: readonly PublicationSpec[];
}

/** Two looks for each place of a block volume, none for any other; no device is opened, so a dead one is no matter. */
export async function lookAtDevices(
  host: Pick<Host, 'readLink' | 'deviceOf'>,
  layout: Layout,
  volumes: readonly ShownVolume[],
): Promise<ShownDevices> {
  const shown = new Map<AbsolutePath, DeviceNumber | undefined>();
  for (const { spec, places } of volumes) {
    if (!isDevice(spec)) continue;
    for (const { link, published } of places.map((place) => layout.devicePublication(spec, place))) {
      const device = await deviceBehind(host, link, published);
      if (device.ok) shown.set(link, device.value);
    }
  }
  return shown;
}

async function deviceBehind(
  host: Pick<Host, 'readLink' | 'deviceOf'>,
  link: AbsolutePath,
  published: AbsolutePath,
): Promise<Result<DeviceNumber | undefined>> {
  const text = await host.readLink(link);
  if (!text.ok) {
    const { code } = text.failure;
    return code === 'path-missing' || code === 'path-wrong-kind' ? ok(undefined) : text;
  }
  return text.value === published ? host.deviceOf(published) : ok(undefined);
}
