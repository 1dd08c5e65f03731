/** What stands, and what of it is wanted otherwise by now: a volume is not set up anew under its pods. Pure. */
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { isSameValue } from '../../plugins/kinds/spec-fields.ts';
import type { PublicationSpec, VolumeSpec } from '../../plugins/volume.ts';
import { isOnTheGround } from '../../reconciler/model/actual-state.ts';
import { fieldsWantedOtherwise } from '../../reconciler/model/staged-spec.ts';
import type { PodPlace, VolumePair } from './status-places.ts';

const OF_PLACE = ['readOnly', 'fsGroup'] as const satisfies readonly (keyof PublicationSpec)[];

/** The volume as it stands; as it is wanted where nothing of it does. */
export function standingSpec({ spec, actual }: Pick<VolumePair, 'spec' | 'actual'>): VolumeSpec {
  return actual === undefined || isOnTheGround(actual) ? spec : actual.spec;
}

/** Whether containers only read it: of the place as it stands, or as it is wanted. */
export function isOnlyRead({ volume, spec, actual }: PodPlace): boolean {
  const { readOnly } = actual?.presence.kind === 'present' ? actual.spec : spec;
  // Its files are written by us alone (CVE-2017-1002102), as for the kubelet.
  return readOnly || traitsOf(standingSpec(volume)).hasContent === true;
}

/** Names of fields, never their values. Empty where nobody knows how it was set up. */
export function changedFields({ wanted, actual }: VolumePair): readonly string[] {
  if (wanted === undefined || actual === undefined || !traitsOf(wanted.spec).isShared) return [];
  const ofPlaces = OF_PLACE.filter((field) =>
    [...wanted.publications].some(([key, { spec }]) => {
      const there = actual.publications.get(key);
      return there?.presence.kind === 'present' && !isSameValue(spec[field], there.spec[field]);
    }),
  );
  return [...new Set([...fieldsWantedOtherwise(actual, wanted.spec), ...ofPlaces])];
}
