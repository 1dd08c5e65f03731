/**
 * What an emptyDir holds is gone for good when it goes, so it is the last of its pod to go (AP-12): while anything else
 * of the pod cannot be taken down, something may still run there. Pure.
 */
import type { Failure } from '../mount/failure.ts';
import type { PodUid, PublicationKey, VolumeId } from '../plugins/volume.ts';
import type { ActualState, ActualVolume } from './actual-state.ts';
import type { DesiredState } from './desired-state.ts';
import type { Operation } from './operation.ts';

const NOTHING: ReadonlyMap<PublicationKey, Failure> = new Map();

/**
 * The places of an emptyDir that must not go yet, each with the reason for people. `whyUnknown`: why a pod may have
 * something on the disk of which nobody knows; of what else it has the record may be lost.
 */
export function lastToGo(
  volume: ActualVolume | undefined,
  actual: ActualState,
  desired: Pick<DesiredState, 'volumes' | 'doubt'>,
  whyUnknown: (pod: PodUid) => Failure | undefined,
): ReadonlyMap<PublicationKey, Failure> {
  if (volume?.spec.kind !== 'empty-dir') return NOTHING;
  const wanted = desired.volumes.get(volume.spec.id)?.publications;
  const kept = new Map<PublicationKey, Failure>();
  for (const [key, { spec }] of volume.publications) {
    if (wanted?.has(key) === true) continue;
    const { uid } = spec.pod;
    const failure = desired.doubt ?? stillThere(uid, actual, desired) ?? notKnown(whyUnknown(uid));
    if (failure !== undefined) kept.set(key, failure);
  }
  return kept;
}

/** The emptyDirs that may have waited for the end of this operation. */
export function waitingFor(operation: Operation, actual: ActualState): readonly VolumeId[] {
  if (operation.kind !== 'unpublish') return [];
  const pod = operation.publication.slice(0, operation.publication.indexOf('/'));
  const isOfPod = ({ publications }: ActualVolume): boolean =>
    [...publications.values()].some(({ spec }) => spec.pod.uid === pod);
  return [...actual.values()]
    .filter((one) => one.spec.kind === 'empty-dir' && isOfPod(one))
    .map(({ spec }) => spec.id);
}

function stillThere(
  pod: PodUid,
  actual: ActualState,
  desired: Pick<DesiredState, 'volumes'>,
): Failure | undefined {
  for (const [id, { spec, publications }] of actual) {
    // An orphan may wait for the emptyDir whose place it is in.
    if (spec.kind === 'empty-dir' || spec.kind === 'orphan') continue;
    for (const [key, place] of publications) {
      if (place.spec.pod.uid !== pod || desired.volumes.get(id)?.publications.has(key) === true) continue;
      const name = place.spec.specName;
      const message = `its data is deleted last, when all else of the pod is down, and volume ${name} is still there`;
      return { code: 'removed-last', message, effect: 'none', blocker: name };
    }
  }
  return undefined;
}

function notKnown(because: Failure | undefined): Failure | undefined {
  if (because === undefined) return undefined;
  const message = `its data is deleted last, and what else of the pod is there is not known: ${because.message}`;
  return { ...because, code: 'removed-last', message, effect: 'none' };
}
