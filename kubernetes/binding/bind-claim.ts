/** From a claim to its PersistentVolume, by static binding: two pointers that must not contradict each other. */
import { ok, type Result } from '../../mount/failure.ts';
import type { Sliced } from '../../mount/process/slices.ts';
import {
  type ObjectKey,
  objectKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
} from '../../kubernetes/objects/objects.ts';
import { refuseMissing } from './missing.ts';
import { refuse } from '../source/refuse.ts';
import { compareText, type DesiredObjects } from '../source/desired-objects.ts';

/** Answers for one wish; made once, so that each claim costs two look-ups. */
export interface Bindings {
  /** `reference-missing`, `claim-not-bound` or `claim-mismatch`; each names both sides. */
  volumeOf(claim: ObjectKey): Result<PersistentVolume>;
}

/** Whoever reads it has a pod that waits for what will never come. */
const LEAVING = 'is being deleted, and is not protected any more: delete the pod, too';

/** Pure; the wish must not change while the bindings are used. */
export function* createBindings(
  desired: Pick<DesiredObjects, 'claims' | 'volumes' | 'rejected'>,
): Sliced<Bindings> {
  const byClaimRef = new Map<ObjectKey, PersistentVolume[]>();
  for (const volume of desired.volumes.values()) {
    yield;
    if (volume.claimRef === undefined) continue;
    const key = objectKey(volume.claimRef);
    const others = byClaimRef.get(key);
    if (others === undefined) byClaimRef.set(key, [volume]);
    else others.push(volume);
  }
  const firstByVolumeName = yield* claimsByVolumeName(desired);

  function volumeOf(key: ObjectKey): Result<PersistentVolume> {
    const claim = desired.claims.get(key);
    if (claim === undefined) return refuseMissing(desired, `PersistentVolumeClaim ${key}`);
    if (claim.leaving) return refuse('reference-missing', `PersistentVolumeClaim ${key} ${LEAVING}`);
    const bound = boundTo(key, claim);
    if (!bound.ok || !bound.value.leaving) return bound;
    return refuse('reference-missing', `PersistentVolume ${bound.value.name} ${LEAVING}`);
  }

  function boundTo(key: ObjectKey, claim: PersistentVolumeClaim): Result<PersistentVolume> {
    if (claim.volumeName === undefined) return boundByVolume(key, claim, byClaimRef.get(key) ?? []);
    const volume = desired.volumes.get(claim.volumeName);
    if (volume === undefined) {
      const whose = ` of PersistentVolumeClaim ${key}`;
      return refuseMissing(desired, `PersistentVolume ${claim.volumeName}`, { whose });
    }
    if (volume.claimRef !== undefined) return agree(key, claim, volume);
    const first = firstByVolumeName.get(volume.name);
    return first === key
      ? ok(volume)
      : refuse(
          'claim-mismatch',
          `PersistentVolume ${volume.name} is also named by PersistentVolumeClaim ${first}, and has no claimRef`,
        );
  }

  return { volumeOf };
}

/** The first by key of the claims that name one volume; only asked when the volume does not say whose it is. */
function* claimsByVolumeName(
  desired: Pick<DesiredObjects, 'claims'>,
): Sliced<ReadonlyMap<string, ObjectKey>> {
  const first = new Map<string, ObjectKey>();
  for (const [key, { volumeName }] of desired.claims) {
    yield;
    if (volumeName === undefined) continue;
    const known = first.get(volumeName);
    if (known === undefined || compareText(key, known) < 0) first.set(volumeName, key);
  }
  return first;
}

function boundByVolume(
  key: ObjectKey,
  claim: PersistentVolumeClaim,
  volumes: readonly PersistentVolume[],
): Result<PersistentVolume> {
  const [volume, other] = volumes;
  if (volume === undefined) {
    return refuse('claim-not-bound', `PersistentVolumeClaim ${key} is not bound to a PersistentVolume`);
  }
  if (other === undefined) return agree(key, claim, volume);
  return refuse(
    'claim-mismatch',
    `PersistentVolumes ${volume.name} and ${other.name} both have PersistentVolumeClaim ${key} as claimRef`,
  );
}

function agree(
  key: ObjectKey,
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
): Result<PersistentVolume> {
  const { claimRef } = volume;
  if (claimRef !== undefined && objectKey(claimRef) !== key) {
    return refuse(
      'claim-mismatch',
      `PersistentVolume ${volume.name} of PersistentVolumeClaim ${key} is bound to ${objectKey(claimRef)}`,
    );
  }
  if (claimRef?.uid !== undefined && claim.uid !== undefined && claimRef.uid !== claim.uid) {
    return refuse(
      'claim-mismatch',
      `PersistentVolume ${volume.name} is bound to an earlier PersistentVolumeClaim ${key}, of another uid`,
    );
  }
  return ok(volume);
}
