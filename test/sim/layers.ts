/** What is mounted over what on one target. */
import { isBelow } from '../../mount/host.ts';
import type { Mount } from './sim-kernel.ts';
import type { Simulation } from './simulate.ts';

const lastMountChanges = new WeakMap<Simulation, number>();
/** Devices bound over one that had gone from the machine: the pod may have the number of that one still. */
const successors = new WeakSet<Mount>();

/** INV-12: nothing of ours is ever mounted twice on one target; drivers that stack are beyond us. */
export function checkLayers(sim: Simulation): void {
  if (lastMountChanges.get(sim) === sim.kernel.mountChanges) return;
  lastMountChanges.set(sim, sim.kernel.mountChanges);
  const driversStack = sim.plan.drivers.some(({ fates, locks }) => (fates.stack ?? 0) > 0 || !locks);
  const seen = new Map<string, Mount>();
  for (const mount of sim.kernel.mounts()) {
    const { target, fileSystem } = mount;
    if (sim.kernel.strangers.has(mount)) continue;
    const under = seen.get(target);
    if (under !== undefined && isSuccessor(sim, mount, under)) successors.add(mount);
    else if (under !== undefined && (fileSystem.type === 'tmpfs' || !driversStack))
      sim.violate('INV-12', `${target} is mounted twice`);
    seen.set(target, mount);
  }
}

function isSuccessor({ kernel, world }: Simulation, mount: Mount, under: Mount): boolean {
  if (successors.has(mount)) return true;
  const [now, before] = [mount.root.block, under.root.block];
  const isHeld = isBelow(mount.target, world.layout.blockDevices);
  return isHeld && now !== undefined && before !== undefined && now !== before && !kernel.devices.has(before);
}
