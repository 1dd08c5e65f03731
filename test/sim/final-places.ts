/** What has to be where, by the wish, when all is healed; of a volume for one pod alone, who of several has it. */
import { isOrphan } from '../../plugins/kinds/volume-questions.ts';
import { csiVolumeId, type CsiVolumeSpec, type PodUid, publicationKey } from '../../plugins/volume.ts';
import { deviceOf } from './backing.ts';
import type { Disk, PodVolume, SimPod } from './manifests.ts';
import { csiOf, type DriverVolume, specNameOf, specOf } from './pod-volume.ts';
import type { Simulation } from './simulate.ts';

export interface Place {
  readonly pod: SimPod;
  readonly volume: PodVolume;
  readonly target: string;
}

export interface Wanted {
  readonly places: readonly Place[];
  /** Volumes in use that may be staged, by staging path. */
  readonly stages: ReadonlyMap<string, DriverVolume>;
  readonly volumeIds: ReadonlySet<string>;
  /** Pods that must wait for another pod's volume: `<pod uid>/<specName>`. */
  readonly waiting: ReadonlySet<string>;
  /** What is mounted for those, and goes when they have their turn. */
  readonly unexplained: ReadonlySet<string>;
}

export function wantedPlaces(sim: Simulation): Wanted {
  const { world } = sim;
  const places: Place[] = [];
  const stages = new Map<string, DriverVolume>();
  const volumeIds = new Set<string>();
  const waiting = new Set<string>();
  const unexplained = new Set<string>();
  for (const pod of world.pods.values()) {
    for (const volume of pod.volumes) {
      if (mustWait(sim, pod, volume)) {
        waiting.add(`${pod.uid}/${specNameOf(volume)}`);
        if (isUnexplained(sim, pod, volume)) unexplained.add(world.mountPointOf(pod, volume));
        continue;
      }
      places.push({ pod, volume, target: world.targetOf(pod, volume) });
      const spec = specOf(pod, volume);
      const csi = csiOf(pod, volume);
      if (csi === undefined) volumeIds.add(spec.id);
      else volumeIds.add(csiVolumeId(csi.driver, csi.handle));
      if (csi !== undefined && !csi.ephemeral)
        stages.set(world.layout.stagingPath(spec as CsiVolumeSpec), csi);
    }
  }
  return { places, stages, volumeIds, waiting, unexplained };
}

/**
 * Another pod has what only one may have, or has as files what is wished as a device, or has it by what its attachment
 * no longer says (D-116); the machine says which. If none has it, all are asked for it.
 */
function mustWait(sim: Simulation, pod: SimPod, volume: PodVolume): boolean {
  if (volume.kind !== 'csi') return false;
  const { disk } = volume;
  const isForOne = disk.accessMode === 'ReadWriteOncePod' || disk.block !== disk.wishedBlock;
  if (!isForOne && !isSetUpOtherwise(sim, disk)) return false;
  const rivals = [...sim.world.pods.values()].filter((other) => {
    return other !== pod && other.volumes.some((one) => one.kind === 'csi' && one.disk === disk);
  });
  const isThere = (who: SimPod): boolean =>
    sim.kernel.mountsAt(sim.world.mountPointOf(who, volume)).length > 0 && !isUnexplained(sim, who, volume);
  return !isThere(pod) && rivals.some(isThere);
}

/** What came late behind a damaged record: nobody has it by that (seed 1414310117). */
function isUnexplained(sim: Simulation, { uid }: SimPod, volume: PodVolume): boolean {
  const key = publicationKey(uid as PodUid, specNameOf(volume));
  const known = [...(sim.view()?.reconciler.actual().values() ?? [])];
  const at = known.filter(({ publications }) => publications.has(key));
  return at.length > 0 && at.every(({ spec }) => isOrphan(spec));
}

/**
 * Who has a volume keeps it by the context that it was set up by, however long it stays, and who comes waits for it:
 * seeds 210, 228 and 246 of `cluster-contexts` end so. Only where both contexts are known and differ, and only in a
 * cluster: a machine by itself attaches anew, and nothing moves what is attached.
 */
function isSetUpOtherwise({ cluster, world: { storage } }: Simulation, disk: Disk): boolean {
  const backing = storage.backingOf(disk);
  const device = backing === undefined ? undefined : deviceOf(backing);
  if (cluster === undefined || device === undefined) return false;
  return backing?.setUpBy !== undefined && backing.setUpBy !== device;
}

/** What nobody explains in the place of a pod that waits for its turn goes when that one has it (seed 349589156). */
export function isOrphanWaiting(
  volume: string,
  publications: Iterable<string>,
  waiting: Wanted['waiting'],
): boolean {
  return volume.startsWith('mooring/orphan/') && [...publications].some((key) => waiting.has(key));
}
