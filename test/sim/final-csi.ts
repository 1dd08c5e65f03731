/** What drivers and storage hold when all is healed: nothing more than the wish, nothing less. */
import { csiVolumeId } from '../../plugins/volume.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { Backing } from './backing.ts';
import { attachesNow } from './driver-nature.ts';
import type { Wanted } from './final-places.ts';
import type { Disk } from './manifests.ts';
import { heldOf } from './local-volumes.ts';
import { groupsDiffer } from './final-groups.ts';
import { csiOf, placeIn } from './pod-volume.ts';
import type { SimDriver } from './sim-driver.ts';
import type { Simulation } from './simulate.ts';

export function volumesDiffer(sim: Simulation, wanted: Wanted): string | undefined {
  return (
    holdsDiffer(sim, wanted) ??
    booksDiffer(sim, wanted) ??
    sizesDiffer(sim, wanted) ??
    groupsDiffer(sim, wanted)
  );
}

/** One loop device for each published device, and no other; with one for each that was there before, and is gone. */
function holdsDiffer(sim: Simulation, { places }: Wanted): string | undefined {
  const { devices } = sim.kernel;
  const kept = new Set<string>();
  for (const { pod, volume } of places) {
    const csi = csiOf(pod, volume);
    const local = volume.kind === 'local' ? heldOf(volume) : undefined;
    if (csi?.block !== true && local === undefined) continue;
    const path = sim.world.mountPointOf(pod, volume);
    const held = devices.holds().filter((hold) => hold.path === path);
    const present = held.map((hold) => hold.device).filter((device) => devices.has(device));
    const device = local ?? (csi && sim.world.storage.backingOf(csi)?.device);
    if (present.length !== 1 || present[0] !== device)
      return `${path}: ${present.join(' and ') || 'nothing'} is held, not ${device}`;
    kept.add(path);
  }
  const left = devices.holds().find((hold) => !kept.has(hold.path));
  return left === undefined ? undefined : `${left.loop} still holds ${left.path}`;
}

/** The drivers' books. */
function booksDiffer(sim: Simulation, { places }: Wanted): string | undefined {
  if (sim.world.trouble.recordsDamaged) return undefined;
  const targets = new Map<string, string[]>();
  for (const { pod, volume, target } of places) {
    const csi = csiOf(pod, volume);
    if (csi === undefined) continue;
    const { published } = sim.world.layout.blockPublication(placeIn(pod, volume));
    targets.set(csi.handle, [...(targets.get(csi.handle) ?? []), csi.block ? published : target]);
  }
  for (const driver of sim.world.storage.drivers) {
    // A call that a driver without locks finishes late undoes what was settled since; nobody can tell.
    if (!takesTurns(sim, driver.name)) continue;
    for (const backing of driver.backings()) {
      const wrong =
        bookDiffers(backing, targets.get(backing.handle) ?? []) ??
        attachmentsDiffer(sim, driver, backing, targets.has(backing.handle));
      if (wrong !== undefined) return `${backing.handle}: ${wrong}`;
    }
  }
  return undefined;
}

function bookDiffers(backing: Backing, targets: readonly string[]): string | undefined {
  const extra = [...backing.resources].find((target) => !targets.includes(target));
  if (extra !== undefined) return `the driver was never told to unpublish ${extra}`;
  if (backing.ephemeral && targets.length === 0) return 'its pod is gone, and it is not';
  if (targets.length === 0 && backing.stagedAt.size > 0) return 'the driver was never told to unstage it';
  if (targets.length === 0 && backing.loops.size > 0)
    return 'the driver has a loop device of its stage still';
  if (targets.length === 0 && backing.device !== undefined) return `still has device ${backing.device}`;
  return undefined;
}

/** Under the node id that it was set up under, if its driver attached it, and under no other, unless that is told. */
function attachmentsDiffer(
  sim: Simulation,
  driver: SimDriver,
  { handle, ephemeral, attachments, setUpUnder }: Backing,
  isWanted: boolean,
): string | undefined {
  const ids = [...attachments.keys()];
  if (!isWanted) {
    const isTold = isDetachTold(sim, { driver: driver.name, handle });
    return ids.length === 0 || isTold ? undefined : `still attached under ${ids.join()}`;
  }
  if (ephemeral) return undefined;
  const [path, under] = [...setUpUnder].find(([, one]) => !attachments.has(one)) ?? [];
  // A cluster attaches by what its CSINode says, and knows nothing of what a driver says since (seed 73836928).
  if (under !== undefined && sim.cluster === undefined)
    return `not attached under ${under}, by which ${path} was set up`;
  // What a life of its driver set up that attaches nothing is attached when something of it is set up the next time.
  const { everyMs, withoutController } = sim.plan.nodeIds;
  const mayBeFree = everyMs > 0 && withoutController > 0 && !sim.world.isRepublished(handle);
  if (attachesNow(driver.nature) && ids.length === 0 && !mayBeFree) return 'not attached';
  const known = knownOf(sim, { driver: driver.name, handle });
  const late = known?.tombstones?.map(({ node }) => node) ?? [];
  const extra = ids.find((id) => id !== known?.attachedNode && !late.includes(id));
  return extra === undefined || sim.cluster !== undefined ? undefined : `attached under ${extra}, too`;
}

/** Its driver has no controller service any more, and that is said of it: it is attached, or may be. */
export function isDetachTold(sim: Simulation, { driver, handle }: Pick<Disk, 'driver' | 'handle'>): boolean {
  if (sim.world.storage.driverOf(driver)?.nature.controller !== 'left-out') return false;
  const obstacles = sim.view()?.reconciler.obstacles() ?? [];
  return obstacles.some(({ volume, operation, code }) => {
    const isIt = volume === csiVolumeId(driver, handle) && operation === 'detach';
    return isIt && code === 'driver-unimplemented';
  });
}

function takesTurns(sim: Simulation, driver: string): boolean {
  return sim.plan.drivers.some(({ name, locks }) => name === driver && locks);
}

/** As large as wished, unless the driver has said that it cannot be, or not now. */
function sizesDiffer(sim: Simulation, { places }: Wanted): string | undefined {
  // What a lost record knew of a size nobody says again; then it is taken to be as wished.
  if (sim.world.trouble.recordsDamaged) return undefined;
  for (const { volume } of places) {
    if (volume.kind !== 'csi') continue;
    const { disk } = volume;
    const driver = sim.world.storage.driverOf(disk.driver);
    const backing = sim.world.storage.backingOf(disk);
    if (driver === undefined || backing === undefined || driver.nature.expands === 'no') continue;
    if (backing.nodeBytes >= disk.bytes || isOnlyRead(sim, disk)) continue;
    // More than the storage has: it is not asked again while the agent knows of anything of it, which may be longer
    // than the driver does.
    if (disk.bytes > backing.limitBytes || isRefused(sim, disk)) continue;
    return `${disk.handle}: the node sees ${backing.nodeBytes} bytes of ${disk.bytes}`;
  }
  return undefined;
}

/** What the agent believes of it. */
export function knownOf(sim: Simulation, volume: Pick<Disk, 'driver' | 'handle'>): ActualVolume | undefined {
  return sim.view()?.reconciler.actual().get(csiVolumeId(volume.driver, volume.handle));
}

/** The agent remembers that it was refused, and it was. */
function isRefused(sim: Simulation, disk: Disk): boolean {
  const isRemembered = knownOf(sim, disk)?.refusedExpansion !== undefined;
  return isRemembered && sim.world.oracle.wasRefused(disk.handle, disk.bytes);
}

function isOnlyRead(sim: Simulation, disk: Disk): boolean {
  const uses = [...sim.world.pods.values()].flatMap(({ volumes }) =>
    volumes.flatMap((one) => (one.kind === 'csi' && one.disk === disk ? [one.readOnly] : [])),
  );
  return uses.every((readOnly) => readOnly);
}
