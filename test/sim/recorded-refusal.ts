/** What the record of a volume on disk says of a growth that was refused. Only that can another life know. */
import { sha256Hex } from '../../plugins/layout/layout.ts';
import { csiVolumeId } from '../../plugins/volume.ts';
import type { RefusedExpansion } from '../../reconciler/model/actual-state.ts';
import { recordsOn } from './record-in.ts';
import type { Simulation } from './simulate.ts';

export function recordedRefusal({ world, kernel }: Simulation, handle: string): RefusedExpansion | undefined {
  const driver = world.storage.drivers.find((one) => one.backing(handle) !== undefined);
  if (driver === undefined) return undefined;
  const record = recordsOn(kernel, world.layout).get(`${sha256Hex(csiVolumeId(driver.name, handle))}.json`);
  return record?.ok === true ? record.value.refusedExpansion : undefined;
}

/** Was a file with the record of the volume damaged since then? */
export function isRecordForgotten({ world }: Simulation, handle: string, sinceMs: number): boolean {
  const { storage, trouble } = world;
  return storage.drivers.some(({ name }) => trouble.isForgotten(csiVolumeId(name, handle), sinceMs));
}
