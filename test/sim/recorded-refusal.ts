/** What the record of a volume on disk says of a growth that was refused. Only that can another life know. */
import { sha256Hex } from '../../plugins/layout/layout.ts';
import { csiVolumeId, type VolumeId } from '../../plugins/volume.ts';
import type { RefusedExpansion } from '../../reconciler/model/actual-state.ts';
import { recordsOn } from './record-in.ts';
import type { Simulation } from './simulate.ts';

export function recordedRefusal(sim: Simulation, handle: string): RefusedExpansion | undefined {
  const volume = volumeOf(sim, handle);
  if (volume === undefined) return undefined;
  const record = recordsOn(sim.kernel, sim.world.layout).get(`${sha256Hex(volume)}.json`);
  return record?.ok === true ? record.value.refusedExpansion : undefined;
}

/** Was a file with the record of the volume damaged since then? */
export function isRecordForgotten(sim: Simulation, handle: string, sinceMs: number): boolean {
  const volume = volumeOf(sim, handle);
  return volume !== undefined && sim.world.trouble.isForgotten(volume, sinceMs);
}

function volumeOf({ world }: Simulation, handle: string): VolumeId | undefined {
  const driver = world.storage.drivers.find((one) => one.backing(handle) !== undefined);
  return driver && csiVolumeId(driver.name, handle);
}
