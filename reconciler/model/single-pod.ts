/** ReadWriteOncePod: one pod at a time has it, and one that may still have it counts (RC-18, KEP-2485). Pure. */
import type { Failure } from '../../mount/failure.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import {
  RECONSTRUCTED,
  type PodReference,
  type PodUid,
  type PublicationKey,
  type PublicationSpec,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import type { ActualPublication, ActualVolume } from './actual-state.ts';
import type { DesiredVolume } from './desired-state.ts';
import { isHeld } from './group-doubt.ts';

/**
 * Why a place may not be set up now, asked of each. The volume belongs to the pods that surely have it; if none has, to
 * one that may have it, wanted or not; if none may, to the first that wants it. And nobody is set up while a place on
 * its way out may be in use. `placesRead`: see Gate.
 */
export function podsThatMustWait(
  desired: DesiredVolume,
  actual: ActualVolume | undefined,
  placesRead: boolean,
): (place: PublicationSpec) => Failure | undefined {
  if (!isForOnePod(desired.spec) && !isForOnePod(actual?.spec)) return () => undefined;
  const places = [...(actual?.publications.values() ?? [])];
  if (!placesRead && places.length === 0) return () => NOT_KNOWN_YET;
  const [first] = places.length > 0 ? ownersOf(places) : desired.publications.values();
  const owners = places.length > 0 ? podsOf(ownersOf(places)) : podsOf(first === undefined ? [] : [first]);
  const leaving = places.find(({ spec: { pod, key }, untold }) => {
    return !owners.has(pod.uid) && (untold === true || !desired.publications.has(key));
  });
  return ({ pod }) => {
    const before = owners.has(pod.uid) ? leaving : first;
    return before === undefined ? undefined : inUseFailure(before.spec.pod);
  };
}

/**
 * The place came beside the pod that has the volume, or may have it, as the late effect of a call does, and no pod was
 * ever told of it: it goes, wanted or not. One that a pod may have been told of stays as it is.
 */
export function isSurplus(desired: DesiredVolume, known: ActualVolume, key: PublicationKey): boolean {
  if (!isForOnePod(desired.spec) && !isForOnePod(known.spec)) return false;
  const there = known.publications.get(key);
  if (there?.untold !== true) return false;
  return !podsOf(ownersOf([...known.publications.values()])).has(there.spec.pod.uid);
}

/**
 * More than one surely has it only from a time when it was shared: who is in stays, nobody comes in. In doubt it is one
 * alone: before what is only found on disk, and before what nobody was ever told of, in the order they came.
 */
function ownersOf(places: readonly ActualPublication[]): readonly ActualPublication[] {
  const holders = places.filter((one) => isHeld(one) && one.untold !== true);
  if (holders.length > 0) return holders;
  return places.toSorted((a, b) => doubtOf(a) - doubtOf(b)).slice(0, 1);
}

function podsOf(places: readonly { readonly spec: PublicationSpec }[]): ReadonlySet<PodUid> {
  return new Set(places.map(({ spec }) => spec.pod.uid));
}

function doubtOf({ untold, spec }: ActualPublication): number {
  if (untold === true) return 2;
  return spec.origin === RECONSTRUCTED ? 1 : 0;
}

const NOT_KNOWN_YET: Failure = {
  code: 'volume-in-use',
  message:
    'the volume is ReadWriteOncePod, and the state root has not been read whole: another pod may have it',
  effect: 'none',
};

function inUseFailure({ name, namespace, uid }: PodReference): Failure {
  const title = name === '' ? uid : `${namespace}/${name}`;
  const message = `the volume is ReadWriteOncePod, and pod ${title} has it or may still have it`;
  const blocker = name === '' ? `pod ${uid}` : title;
  return { code: 'volume-in-use', message, effect: 'none', blocker };
}

function isForOnePod(spec: VolumeSpec | undefined): boolean {
  return spec !== undefined && traitsOf(spec).isForOnePod?.(spec) === true;
}
