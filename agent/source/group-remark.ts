/** PersistentVolumes with a group that is none: nobody gets it, and whoever wrote it has to be told. */
import type { Sliced } from '../../mount/process/slices.ts';
import { fieldBelow } from '../../kubernetes/fields/field-reader.ts';
import { identityOf, type PersistentVolume, type Stamped } from '../../kubernetes/objects/objects.ts';
import { GROUP_ID } from '../../kubernetes/objects/read-pod-security.ts';
import { GID_ANNOTATION } from '../../kubernetes/objects/read-volume.ts';
import type { Rejection } from './objects-source.ts';

/** Pure. One for each. */
export function* groupRemarks(
  volumes: ReadonlyMap<unknown, Stamped<PersistentVolume>>,
): Sliced<readonly Rejection[]> {
  const remarks: Rejection[] = [];
  for (const volume of volumes.values()) {
    if (volume.supplementalGid === 'none')
      remarks.push({
        origin: volume.place,
        subject: identityOf(volume),
        field: fieldBelow('metadata.annotations', GID_ANNOTATION),
        message: `ignored: expected ${GROUP_ID}`,
      });
    yield;
  }
  return remarks;
}
