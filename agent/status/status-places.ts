/** Which volumes and pods there are to tell of: what is wanted and what is there, put together. Pure. */
import type { PodReference, PodUid, PublicationSpec, VolumeSpec } from '../../plugins/volume.ts';
import type { ActualPublication, ActualVolume } from '../../reconciler/model/actual-state.ts';
import type {
  DesiredPublication,
  DesiredVolume,
  UnresolvedVolume,
} from '../../reconciler/model/desired-state.ts';
import type { StatusFacts } from './status-facts.ts';

/** One volume, as it is wanted and as it is; one of the two is there. */
export interface VolumePair {
  readonly spec: VolumeSpec;
  readonly wanted: DesiredVolume | undefined;
  readonly actual: ActualVolume | undefined;
}

/** One place of a volume in a pod, wanted or there. */
export interface PodPlace {
  readonly volume: VolumePair;
  readonly spec: PublicationSpec;
  readonly wanted: DesiredPublication | undefined;
  readonly actual: ActualPublication | undefined;
}

export interface PodPlaces {
  readonly reference: PodReference;
  readonly places: PodPlace[];
  readonly unresolved: UnresolvedVolume[];
}

/** All that are wanted or known, by id. */
export function volumesOf(view: StatusFacts): readonly VolumePair[] {
  const ids = new Set([...view.desired.volumes.keys(), ...view.actual.keys()]);
  return [...ids].sort().flatMap((id) => {
    const wanted = view.desired.volumes.get(id);
    const actual = view.actual.get(id);
    const spec = wanted?.spec ?? actual?.spec;
    return spec === undefined ? [] : [{ spec, wanted, actual }];
  });
}

/** Every pod that wants a volume or still has one, by namespace and name. */
export function podsOf(view: StatusFacts, pairs: readonly VolumePair[]): readonly PodPlaces[] {
  const pods = new Map<PodUid, PodPlaces>();
  const podOf = (reference: PodReference): PodPlaces => {
    const known = pods.get(reference.uid) ?? { reference, places: [], unresolved: [] };
    pods.set(reference.uid, known);
    return known;
  };
  for (const reference of view.pods) podOf(reference);
  for (const volume of pairs) {
    const wanted = volume.wanted?.publications;
    const actual = volume.actual?.publications;
    for (const key of new Set([...(wanted?.keys() ?? []), ...(actual?.keys() ?? [])])) {
      const spec = wanted?.get(key)?.spec ?? actual?.get(key)?.spec;
      if (spec === undefined) continue;
      podOf(spec.pod).places.push({ volume, spec, wanted: wanted?.get(key), actual: actual?.get(key) });
    }
  }
  for (const one of view.desired.unresolved) podOf(one.pod).unresolved.push(one);
  return inOrder([...pods.values()]);
}

/** Each name is made once: there are some ten comparisons of each pod. */
function inOrder(pods: readonly PodPlaces[]): readonly PodPlaces[] {
  const named = pods.map((pod) => {
    const { namespace, name, uid } = pod.reference;
    return { pod, name: `${namespace}/${name}/${uid}` };
  });
  return named.sort((a, b) => (a.name < b.name ? -1 : 1)).map(({ pod }) => pod);
}
