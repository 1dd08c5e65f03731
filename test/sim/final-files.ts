/** Every file and directory below the agent's root has a reason, when all is healed (INV-18). */
import { stagingPathOf } from '../../plugins/kinds/volume-questions.ts';
import { tombstonesOf } from '../../reconciler/model/tombstone.ts';
import type { Inode } from './file-tree.ts';
import { isOrphanWaiting, type Wanted } from './final-places.ts';
import { intentsOf, isLocalDevice, localStageOf } from './local-volumes.ts';
import { iscsiKept, iscsiStage } from './iscsi-volumes.ts';
import { csiOf, placeIn } from './pod-volume.ts';
import type { Simulation } from './simulate.ts';
import { ROOT } from './sim-paths.ts';
import { bindOf } from './subpaths.ts';

export function leftOver(sim: Simulation, wanted: Wanted): string | undefined {
  const root = sim.kernel.walk(ROOT);
  return typeof root === 'string'
    ? 'the root is gone'
    : strangerBelow(sim, ROOT, root.inode, pathsOf(sim, wanted));
}

/** All that may be there, with the directories above. */
function pathsOf(sim: Simulation, wanted: Wanted): ReadonlySet<string> {
  const keep = new Set<string>();
  const keepWithParents = (path: string): void => {
    // What is above a directory that is kept is kept already.
    for (let at = path; at.length > ROOT.length && !keep.has(at); at = at.slice(0, at.lastIndexOf('/')))
      keep.add(at);
  };
  const { layout } = sim.world;
  for (const { pod, volume, target } of wanted.places) {
    const bind = bindOf(sim, pod, volume);
    if (bind !== undefined) keepWithParents(bind.target);
    if (volume.kind === 'host-path' || volume.kind === 'image') continue;
    keepWithParents(target);
    const stage =
      volume.kind === 'local'
        ? localStageOf(layout, volume)
        : volume.kind === 'iscsi'
          ? iscsiStage(layout, volume)
          : undefined;
    if (stage !== undefined) keepWithParents(stage);
    if (volume.kind === 'local' && isLocalDevice(volume))
      keepWithParents(sim.world.mountPointOf(pod, volume));
    const csi = csiOf(pod, volume);
    if (csi?.block === true) {
      const { published, held, data } = layout.blockPublication(placeIn(pod, volume));
      for (const path of [published, held, `${data}/vol_data.json`]) keepWithParents(path);
      // What a pod that came and went left goes with the last one, or when the next one comes (seed 349588205).
      keepWithParents(`${data}/.vol_data.json.tmp`);
    } else if (csi !== undefined) {
      const directory = target.slice(0, target.lastIndexOf('/'));
      keep.add(`${directory}/vol_data.json`);
      // As of a stage: papers that are right are not written again.
      keep.add(`${directory}/.vol_data.json.tmp`);
    }
    const marker = volume.kind === 'empty-dir' ? volume.name : `wrapped_${volume.name}`;
    if (csi === undefined && volume.kind !== 'local' && volume.kind !== 'nfs' && volume.kind !== 'iscsi')
      keepWithParents(`${layout.pods}/${pod.uid}/plugins/kubernetes.io~empty-dir/${marker}/ready`);
  }
  for (const [path, { block }] of wanted.stages) {
    keepWithParents(path);
    const directory = path.slice(0, path.lastIndexOf('/'));
    if (!block) keep.add(`${directory}/vol_data.json`);
    else keep.add(`${path}/device`);
    // What a write left that was cut short goes with the volume: papers that are right are not written again.
    keep.add(`${directory}/.vol_data.json.tmp`);
  }
  for (const known of sim.view()?.reconciler.actual().values() ?? []) {
    const { spec, publications } = known;
    // Where a late stage left a directory, while its volume stands as something else, it goes with the volume.
    for (const one of tombstonesOf(known)) {
      const late = one.operation === 'stage' ? stagingPathOf(one.spec ?? spec, layout) : undefined;
      if (late !== undefined) keepWithParents(late);
    }
    if (spec.kind === 'orphan' && isOrphanWaiting(spec.id, publications.keys(), wanted.waiting))
      keepWithParents(spec.path);
  }
  // What is empty there, whoever emptied it, goes with the pod (seed 477789892).
  for (const key of wanted.waiting)
    keepWithParents(`${layout.pods}/${key.slice(0, key.indexOf('/'))}/volumes/kubernetes.io~csi`);
  for (const driver of sim.plan.drivers) {
    keepWithParents(`${layout.plugins}/${driver.name}/csi.sock`);
    keepWithParents(`${layout.registry}/${driver.name}-reg.sock`);
    keepWithParents(`${layout.plugins}/kubernetes.io/csi/${driver.name}`);
  }
  for (const path of iscsiKept(sim, wanted.places)) keepWithParents(path);
  // An mkfs that was cut short is told of until the volume is staged.
  for (const path of intentsOf(layout)) keepWithParents(path);
  for (const shared of ['', '/staging', '/publish']) keepWithParents(`${layout.blockDevices}${shared}`);
  for (const path of [
    layout.localStages,
    layout.localDevices,
    layout.pods,
    layout.registry,
    layout.records,
    layout.source,
  ])
    keepWithParents(path);
  return keep;
}

function strangerBelow(
  sim: Simulation,
  path: string,
  directory: Inode,
  keep: ReadonlySet<string>,
): string | undefined {
  for (const [name, child] of directory.entries) {
    const at = `${path}/${name}`;
    if (at.startsWith(`${sim.world.layout.records}/`)) continue;
    if (!keep.has(at)) return `${at} is left over`;
    // A volume's content, on disk or mounted, is nobody's business here.
    if (child.mountsOn > 0 || isVolumeRoot(at)) continue;
    const below = strangerBelow(sim, at, child, keep);
    if (below !== undefined) return below;
  }
  return undefined;
}

function isVolumeRoot(path: string): boolean {
  return (
    /\/volumes\/kubernetes\.io~(?:empty-dir|secret|configmap)\/[^/]+$/.test(path) || path.endsWith('/mount')
  );
}
