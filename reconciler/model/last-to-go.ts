/**
 * What an emptyDir holds is gone for good when it goes, so it is the last of its pod to go (AP-12): while anything else
 * of the pod cannot be taken down, something may still run there. Pure.
 */
import type { Failure } from '../../mount/failure.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { isOrphan } from '../../plugins/kinds/volume-questions.ts';
import { podOf, type PodUid, type PublicationKey, type VolumeId } from '../../plugins/volume.ts';
import type { ActualVolume } from './actual-state.ts';
import type { BeliefView } from './belief.ts';
import { type DesiredState, wantedAt } from './desired-state.ts';
import type { Operation } from './operation.ts';

const NOTHING: ReadonlyMap<PublicationKey, Failure> = new Map();

/**
 * The places of an emptyDir that must not go yet, each with the reason for people. `whyUnknown`: why a pod may have
 * something on the disk of which nobody knows; of what else it has the record may be lost.
 */
export function lastToGo(
  volume: ActualVolume | undefined,
  belief: BeliefView,
  desired: Pick<DesiredState, 'volumes' | 'doubt'>,
  whyUnknown: (pod: PodUid) => Failure | undefined,
): ReadonlyMap<PublicationKey, Failure> {
  if (volume === undefined || !isDataLost(volume)) return NOTHING;
  const wanted = desired.volumes.get(volume.spec.id)?.publications;
  const kept = new Map<PublicationKey, Failure>();
  for (const [key, { spec }] of volume.publications) {
    if (wanted?.has(key) === true) continue;
    const { uid } = spec.pod;
    const failure = desired.doubt ?? stillThere(uid, belief, desired) ?? notKnown(whyUnknown(uid));
    if (failure !== undefined) kept.set(key, failure);
  }
  return kept;
}

/** The emptyDirs that may have waited for the end of this operation: a publish may have come to nothing, too. */
export function waitingFor(operation: Operation, belief: BeliefView): readonly VolumeId[] {
  if (operation.kind !== 'unpublish' && operation.kind !== 'publish') return [];
  return lastToGoBeside([operation.publication], belief);
}

/** The emptyDirs of the pods that have these places. */
export function lastToGoBeside(places: readonly PublicationKey[], belief: BeliefView): readonly VolumeId[] {
  const pods = new Set(places.map(podOf));
  const beside = [...pods].flatMap((pod) => belief.ofPod(pod));
  return beside.filter(isDataLost).map(({ spec }) => spec.id);
}

function isDataLost({ spec }: ActualVolume): boolean {
  return traitsOf(spec).isDataLost === true;
}

function stillThere(
  pod: PodUid,
  belief: BeliefView,
  desired: Pick<DesiredState, 'volumes'>,
): Failure | undefined {
  for (const volume of belief.ofPod(pod)) {
    const { spec, publications } = volume;
    if (isDataLost(volume) || (isOrphan(spec) && isOfAnother(volume, belief, desired))) continue;
    for (const [key, place] of publications) {
      if (place.spec.pod.uid !== pod || desired.volumes.get(spec.id)?.publications.has(key) === true)
        continue;
      const name = place.spec.specName;
      const message = `its data is deleted last, when all else of the pod is down, and volume ${name} is still there`;
      return { code: 'removed-last', message, effect: 'none', blocker: name };
    }
  }
  return undefined;
}

/** An orphan in the place of an emptyDir waits for that one itself; in a wanted place it is not to go. */
function isOfAnother(
  orphan: ActualVolume,
  belief: BeliefView,
  desired: Pick<DesiredState, 'volumes'>,
): boolean {
  return [...orphan.publications.keys()].some(
    (key) =>
      wantedAt(desired.volumes, key).length > 0 ||
      belief.ofPod(podOf(key)).some((one) => isDataLost(one) && one.publications.has(key)),
  );
}

function notKnown(because: Failure | undefined): Failure | undefined {
  if (because === undefined) return undefined;
  const message = `its data is deleted last, and what else of the pod is there is not known: ${because.message}`;
  return { ...because, code: 'removed-last', message, effect: 'none' };
}
