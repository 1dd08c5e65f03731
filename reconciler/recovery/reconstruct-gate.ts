/** What looking at the layout on disk has taught, and what it allows: the orphans, and whether all was read. */
import type { Failure } from '../../mount/failure.ts';
import type { Belief } from '../model/belief.ts';
import { isOrphan } from '../../plugins/kinds/volume-questions.ts';
import type { PodUid, VolumeId } from '../../plugins/volume.ts';
import { LayoutReading, type LayoutReadingParts } from './layout-reading.ts';
import { type Reconstruction, mergeFound } from './reconstruct.ts';
import { lastToGoBeside, lastToGo } from '../model/last-to-go.ts';
import type { Log } from '../../mount/process/log.ts';
import { contestedPlaces, isExplained, orphansBeside, whyLeftStaged } from '../model/orphan.ts';
import type { Operation } from '../model/operation.ts';
import type { Gate } from '../model/plan.ts';

export interface ReconstructGateParts extends LayoutReadingParts {
  readonly log: Log;
  /** What was found joins it. */
  readonly belief: Belief;
  readonly isBusy: (volume: VolumeId) => boolean;
  /** Nothing of it is to be remembered. */
  readonly forget: (volume: VolumeId) => void;
}

export interface ReconstructGate {
  /** As Reconciler.takeReconstructed. */
  take(found: Reconstruction): void;
  /** The part of the gate that depends on the layout. */
  gateOf(volume: VolumeId): Pick<Gate, 'layoutRead' | 'placesRead' | 'possibleUse' | 'contested'>;
  /** Why the pod may have something on the disk of which nobody knows. */
  whyUnknown(pod: PodUid): Failure | undefined;
  /** Before a volume is planned: an orphan that is explained by now is forgotten. */
  visit(volume: VolumeId): void;
  /** It may explain an orphan of its place. */
  ended(operation: Operation): void;
  forgotten(volume: VolumeId): void;
}

export function createReconstructGate(parts: ReconstructGateParts): ReconstructGate {
  const { log, belief, desired, isBusy, touch } = parts;
  const actual = belief.volumes;
  const orphans = new Set<VolumeId>();
  const reading = new LayoutReading(parts);
  for (const [id, { spec }] of actual) if (isOrphan(spec)) orphans.add(id);

  function forgetGone(id: VolumeId): void {
    if (!orphans.has(id) || isBusy(id)) return;
    log.info('orphan gone', { volume: id });
    const places = [...(actual.get(id)?.publications.keys() ?? [])];
    parts.forget(id);
    for (const one of [id, ...lastToGoBeside(places, belief)]) touch(one);
  }

  return {
    take(found) {
      for (const id of found.gone) forgetGone(id);
      for (const volume of found.volumes) {
        const { id } = volume.spec;
        const merged = mergeFound(actual.get(id), volume);
        if (merged === undefined) continue;
        belief.reconstruct(merged);
        if (isOrphan(volume.spec)) orphans.add(id);
        log.info('volume found on disk', { volume: id });
        touch(id);
      }
      reading.note(found);
    },
    gateOf(volume) {
      const isStrange = orphans.has(volume);
      const left = isStrange ? whyLeftStaged(actual.get(volume)) : undefined;
      const contested = isStrange
        ? contestedPlaces(volume, belief, desired())
        : lastToGo(actual.get(volume), belief, desired(), (pod) => reading.whyUnknown(pod));
      const gate = reading.gateOf(volume);
      return left === undefined
        ? { ...gate, contested }
        : { ...gate, layoutRead: false, possibleUse: left, contested };
    },
    whyUnknown: (pod) => reading.whyUnknown(pod),
    visit(volume) {
      if (orphans.has(volume) && !isBusy(volume) && isExplained(volume, belief)) parts.forget(volume);
    },
    ended(operation) {
      for (const orphan of orphansBeside(operation, belief)) touch(orphan);
    },
    forgotten: (volume) => {
      orphans.delete(volume);
      reading.forgotten(volume);
    },
  };
}
