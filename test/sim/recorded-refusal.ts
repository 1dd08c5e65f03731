/** Does the record of a volume on disk say that growing it was refused? Only then can another life know. */
import { sha256Hex } from '../../plugins/layout/layout.ts';
import { csiVolumeId } from '../../plugins/volume.ts';
import { recordsOn } from './record-in.ts';
import type { Simulation } from './simulate.ts';

export function hasRecordedRefusal({ world, kernel }: Simulation, handle: string): boolean {
  const driver = world.storage.drivers.find((one) => one.backing(handle) !== undefined);
  if (driver === undefined) return false;
  const record = recordsOn(kernel, world.layout).get(`${sha256Hex(csiVolumeId(driver.name, handle))}.json`);
  return record?.ok === true && record.value.refusedExpansion !== undefined;
}
