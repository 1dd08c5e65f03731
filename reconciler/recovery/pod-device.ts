/**
 * What pods see of their block volumes, and whether it is held. Of such a volume the mount table shows only what we
 * bound; the pod's link leads to what the driver made, a bind or a node, and that may go or be replaced without us:
 * somebody unmounts it, or a call that was given up takes effect (DR-08). The loop device that holds ours may be
 * detached by anybody (ST-17).
 */
import { ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, DeviceNumber, Host } from '../../mount/host.ts';
import { isDevice } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { PublicationSpec, VolumeSpec } from '../../plugins/volume.ts';

/** By the path of the pod's link. One that could not be looked at is left out. */
export type ShownDevices = ReadonlyMap<AbsolutePath, ShownDevice>;

export interface ShownDevice {
  /** Undefined: the link leads to none. */
  readonly device: DeviceNumber | undefined;
  /** Is anything held where ours is bound? Undefined: that could not be looked at. */
  readonly isHeld: boolean | undefined;
}

export interface ShownVolume {
  readonly spec: VolumeSpec;
  readonly places: readonly PublicationSpec[];
}

/**
 * Two looks for each place of a block volume and one for all of them, none for any other; no device is opened, so a
 * dead one is no matter.
 */
export async function lookAtDevices(
  host: Pick<Host, 'readLink' | 'deviceOf' | 'heldPaths'>,
  layout: Layout,
  volumes: readonly ShownVolume[],
): Promise<ShownDevices> {
  const devices = volumes.filter(({ spec }) => isDevice(spec));
  const places = devices.flatMap(({ spec, places: known }) => {
    return known.map((place) => layout.devicePublication(spec, place));
  });
  const shown = new Map<AbsolutePath, ShownDevice>();
  if (places.length === 0) return shown;
  const paths = await host.heldPaths(layout.root);
  const holds = paths.ok ? new Set(paths.value) : undefined;
  for (const { link, published, held } of places) {
    const device = await deviceBehind(host, link, published);
    if (device.ok) shown.set(link, { device: device.value, isHeld: holds?.has(held) });
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
