/** The state of this node at a start, from the records and the mount table. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { Ground } from '../../mount/ground.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { Log } from '../../mount/process/log.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import { lookAtDevices } from '../../reconciler/recovery/pod-device.ts';
import type { RecordStore, UnreadableRecord } from '../../reconciler/recovery/record-store.ts';
import { recover } from '../../reconciler/recovery/recover.ts';
import { tellOfRecords } from './record-log.ts';

export interface RebuildParts {
  readonly host: Host;
  readonly layout: Layout;
  readonly ground: Ground;
  readonly records: RecordStore;
  readonly log: Log;
}

export interface RebuiltState {
  readonly recovered: ActualState;
  readonly unreadable: readonly UnreadableRecord[];
}

/** The ground has learnt what our directories lie in. A failure means that the state root cannot be used. */
export async function rebuildState(parts: RebuildParts): Promise<Result<RebuiltState>> {
  const { host, layout, ground, log } = parts;
  const before = await host.mountPlaceOf(layout.records);
  if (!before.ok) return before;
  const loaded = await parts.records.load();
  if (!loaded.ok) return loaded;
  const table = await host.readMountTable(layout.root);
  // Without it nobody knows whether the records are ours: another file system may lie over them.
  if (!table.ok) return table;
  const after = await host.mountPlaceOf(layout.records);
  if (!after.ok) return after;
  // Whoever lay over them while they were read may be gone from the table.
  if (before.value.within !== after.value.within) return placeChanged(layout.records);
  const grounded = ground.learn(table.value);
  if (!grounded.ok) return grounded;
  const taken = await parts.records.takeOver();
  if (!taken.ok) return taken;
  tellOfRecords(loaded.value, log);
  const { records, unreadable } = loaded.value;
  const volumes = records.map(({ spec, publications }) => {
    return { spec, places: publications.map((one) => one.spec) };
  });
  const shown = await lookAtDevices(host, layout, volumes);
  return ok({
    recovered: recover({ records, table: table.value, shown, bootId: host.bootId, layout }),
    unreadable,
  });
}

function placeChanged(records: AbsolutePath): Result<never> {
  const message = `something was mounted or unmounted over ${records} while the records were read`;
  return fail({ code: 'mount-foreign', message, effect: 'none', blocker: records });
}
