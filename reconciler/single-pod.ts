/** ReadWriteOncePod: one pod at a time has it, and one that may still have it counts (INV-9; KEP-2485). Pure. */
import type { Failure } from '../mount/failure.ts';
import type { PodUid, PublicationSpec } from '../plugins/volume.ts';
import type { ActualVolume } from './actual-state.ts';
import type { DesiredVolume } from './desired-state.ts';

/**
 * Why a place may not be set up now, asked of each. The volume belongs to the pod that has it, or may have it, wanted
 * or not; if none has, to the first that wants it. `placesRead`: see Gate.
 */
export function podsThatMustWait(
  { spec, publications }: DesiredVolume,
  actual: ActualVolume | undefined,
  placesRead: boolean,
): (place: PublicationSpec) => Failure | undefined {
  if (spec.kind !== 'csi' || !isForOnePod(spec.accessModes)) return () => undefined;
  if (!placesRead && (actual === undefined || actual.publications.size === 0)) return () => NOT_KNOWN_YET;
  const holders = [...(actual?.publications.values() ?? [])].map((one) => one.spec.pod);
  const [first] = publications.values();
  const owners = new Set<PodUid>(holders.map(({ uid }) => uid));
  if (owners.size === 0 && first !== undefined) owners.add(first.spec.pod.uid);
  return ({ pod }) => {
    // More than one may have it, from a time when it was shared: who is in stays, nobody comes in.
    if (owners.has(pod.uid)) return undefined;
    const [uid] = owners;
    const holder = holders.find((one) => one.uid === uid) ?? first?.spec.pod;
    const blocker =
      holder === undefined || holder.name === '' ? `pod ${uid}` : `${holder.namespace}/${holder.name}`;
    const message = `the volume is ReadWriteOncePod, and pod ${blocker} has it or may still have it`;
    return { code: 'volume-in-use', message, effect: 'none', blocker };
  };
}

const NOT_KNOWN_YET: Failure = {
  code: 'volume-in-use',
  message:
    'the volume is ReadWriteOncePod, and the state root has not been read whole: another pod may have it',
  effect: 'none',
};

function isForOnePod(modes: readonly string[]): boolean {
  return modes.length === 1 && modes[0] === 'ReadWriteOncePod';
}
