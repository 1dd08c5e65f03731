/** Whose group the files of volumes have: at every moment what the root says, and when all is healed never two. */
import type { Wanted } from './final-places.ts';
import { inodesOf } from './file-tree.ts';
import type { SimPod } from './manifests.ts';
import { csiOf } from './pod-volume.ts';
import type { Simulation } from './simulate.ts';
import { isOwned } from './tree-ownership.ts';

/**
 * RS-09: a root that says that the volume is a group's is believed by the next walk (OnRootMismatch), so it is true at
 * every moment, in the middle of a walk and after a crash in it. What a driver gives away itself is its own.
 */
export function checkRoots(sim: Simulation): void {
  if (sim.plan.features.fsGroupShare === 0) return;
  for (const driver of sim.world.storage.drivers) {
    if (driver.nature.mountGroup) continue;
    for (const { handle, fileSystem } of driver.backings()) {
      const { root } = fileSystem;
      if (!isOwned(root, { gid: root.gid, readOnly: true })) continue;
      const other = inodesOf(root).find(({ gid }) => gid !== root.gid);
      if (other === undefined) continue;
      const text = `the root says group ${root.gid}, and "${other.name}" has ${other.gid}`;
      return sim.violate('RS-09', `${handle}: ${text}`);
    }
  }
}

/**
 * RC-16: whoever has the volume with a group, all of its files have one group. The group is the pod's if all that ever
 * wrote it had the same; else the last who came has given it to his.
 */
export function groupsDiffer(sim: Simulation, { places }: Wanted): string | undefined {
  for (const { pod, volume } of places) {
    const csi = csiOf(pod, volume);
    if (csi === undefined || csi.block || csi.readOnly || pod.fsGroup === undefined) continue;
    const groups = sim.world.storage.wishHistory(csi.handle)?.groups.size;
    const backing = sim.world.storage.backingOf(csi);
    if (backing === undefined || !isApplied(sim, pod, csi.driver, volume)) continue;
    const inodes = inodesOf(backing.fileSystem.root);
    const gid = groups === 1 ? pod.fsGroup.gid : backing.fileSystem.root.gid;
    const wrong = inodes.find((inode) => inode.gid !== gid);
    if (wrong !== undefined) return `${csi.handle}: "${wrong.name}" has the group ${wrong.gid}, not ${gid}`;
  }
  return undefined;
}

function isApplied(
  sim: Simulation,
  pod: SimPod,
  driverName: string,
  volume: SimPod['volumes'][number],
): boolean {
  const plan = sim.plan.drivers.find(({ name }) => name === driverName);
  if (pod.fsGroup === undefined || plan === undefined) return false;
  if (plan.nature.mountGroup) return true;
  if (volume.kind === 'csi' && sim.world.storage.wishHistory(volume.disk.handle)?.isChanged) return false;
  // Published while its CSIDriver object was unreadable, or not there, a pod's own disk was under another policy.
  const mayHaveBeenOther = volume.kind === 'csi' && volume.disk.owner !== undefined;
  const { events, absence } = sim.plan;
  if (mayHaveBeenOther && (events.storageVanishes > 0 || absence.everyMs > 0)) return false;
  const policy = plan.described ? plan.fsGroupPolicy : 'ReadWriteOnceWithFSType';
  if (policy !== 'ReadWriteOnceWithFSType') return policy === 'File';
  return volume.kind === 'csi' && volume.disk.fsType !== '' && volume.disk.accessMode !== 'ReadWriteMany';
}
