/** From a claim to its PersistentVolume, by static binding: two pointers that must not contradict each other. */
import { ok, type Result } from '../../mount/failure.ts';
import type { Sliced } from '../../mount/process/slices.ts';
import { compareText } from '../../mount/text/compare-text.ts';
import { refuse } from '../fields/refuse.ts';
import {
  type ObjectKey,
  objectKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
} from '../objects/objects.ts';

/** What there is to be bound, and what is said of an object that is not there. */
export interface Bindable {
  readonly claims: ReadonlyMap<ObjectKey, PersistentVolumeClaim>;
  readonly volumes: ReadonlyMap<ObjectKey, PersistentVolume>;
  /** Refuses by `reference-missing`. `identity` is as `identityOf` says it; `whose` follows it in the sentence. */
  readonly refuseMissing: (identity: string, whose?: string) => ReturnType<typeof refuse>;
}

/** Answers for one wish; made once, so that each claim costs two look-ups. */
export interface Bindings {
  /** `reference-missing`, `claim-not-bound` or `claim-mismatch`; each names both sides. */
  volumeOf(claim: ObjectKey): Result<PersistentVolume>;
}

/** Whoever reads it has a pod that waits for what will never come. */
const LEAVING = 'is being deleted, and is not protected any more: delete the pod, too';

/** Pure; nothing of it must change while the bindings are used. */
export function* createBindings({ claims, volumes, refuseMissing }: Bindable): Sliced<Bindings> {
  const byClaimRef = new Map<ObjectKey, PersistentVolume[]>();
  for (const volume of volumes.values()) {
    yield;
    if (volume.claimRef === undefined) continue;
    const key = objectKey(volume.claimRef);
    const others = byClaimRef.get(key);
    if (others === undefined) byClaimRef.set(key, [volume]);
    else others.push(volume);
  }
  const firstByVolumeName = yield* claimsByVolumeName(claims);

  function volumeOf(key: ObjectKey): Result<PersistentVolume> {
    const claim = claims.get(key);
    if (claim === undefined) return refuseMissing(`PersistentVolumeClaim ${key}`);
    if (claim.leaving) return refuse('reference-missing', `PersistentVolumeClaim ${key} ${LEAVING}`);
    const bound = boundTo(key, claim);
    if (!bound.ok || !bound.value.leaving) return bound;
    return refuse('reference-missing', `PersistentVolume ${bound.value.name} ${LEAVING}`);
  }

  function boundTo(key: ObjectKey, claim: PersistentVolumeClaim): Result<PersistentVolume> {
    if (claim.volumeName === undefined) return boundByVolume(key, claim, byClaimRef.get(key) ?? []);
    const volume = volumes.get(claim.volumeName);
    if (volume === undefined)
      return refuseMissing(`PersistentVolume ${claim.volumeName}`, ` of PersistentVolumeClaim ${key}`);
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
function* claimsByVolumeName(claims: Bindable['claims']): Sliced<ReadonlyMap<string, ObjectKey>> {
  const first = new Map<string, ObjectKey>();
  for (const [key, { volumeName }] of claims) {
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
