/** The secrets that a volume names for its driver, as the driver takes them: text by key. */
import { type Failure, fail, ok, type Result } from '../../mount/failure.ts';
import { NO_SECRETS, type VolumeSecrets } from '../../plugins/plugin.ts';
import { type SecretData, Sensitive } from '../../plugins/secret/sensitive.ts';
import { csiVolumeId, type VolumeSpec } from '../../plugins/volume.ts';
import {
  type CsiSource,
  type NamedReference,
  type ObjectKey,
  objectKey,
  type Secret,
} from '../../kubernetes/objects/objects.ts';
import { type DriverTerms, driverTerms } from './driver-terms.ts';
import { refuseMissing } from './missing.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';

type DesiredSecrets = Pick<DesiredObjects, 'secrets' | 'rejected'>;

/** The secrets of one volume, or none of them and what is in the way. */
export interface ResolvedSecrets {
  readonly secrets: VolumeSecrets;
  /** What is missing, if anything is: the volume must not climb without it, and goes on as soon as it is there. */
  readonly blocked: Failure | undefined;
}

/** None at hand, and the volume may have been set up with some. */
const UNKNOWN_SECRETS: VolumeSecrets = { ...NO_SECRETS, mayBeMore: true };

/** The secrets of a PersistentVolume. */
export interface ResolvedVolumeSecrets extends ResolvedSecrets {
  /** Why `secrets.expand` is not there although the volume names one. */
  readonly expandMissing: Failure | undefined;
}

/**
 * All or nothing: a volume must not climb with some of its secrets. By `reference-missing` or `spec-invalid`.
 *
 * The secret of ControllerPublish is demanded only where `attachesHere`: elsewhere the attacher has it, and no node may
 * read it (Kubernetes: `VisitPVSecretNames`). What is named and not at hand makes `mayBeMore` of the others.
 *
 * The secret for growing is apart: without it the volume is only not grown, whether growth is wanted or not. To block
 * it would keep new pods from data that is there, and would stop republishing, so that running pods lose their tokens;
 * whoever adds the secret gets the size, at once or, with a driver that cannot grow what is used, after the last pod.
 */
export function resolveSecrets(
  desired: DesiredSecrets,
  source: CsiSource,
  terms: TokenTerms,
  attachesHere: boolean,
): ResolvedVolumeSecrets {
  const controllerPublish = resolveSecret(desired, source.controllerPublishSecret);
  const stage = resolveSecret(desired, source.stageSecret);
  const publish = resolveSecret(desired, source.publishSecret);
  const expand = resolveSecret(desired, source.expandSecret);
  const expandMissing = expand.ok ? undefined : expand.failure;
  for (const one of [...(attachesHere ? [controllerPublish] : []), stage, publish]) {
    if (!one.ok) return { secrets: UNKNOWN_SECRETS, blocked: one.failure, expandMissing };
  }
  const secrets: VolumeSecrets = {
    controllerPublish: dataOf(controllerPublish),
    stage: dataOf(stage),
    publish: dataOf(publish),
    expand: dataOf(expand),
    ...(controllerPublish.ok && expand.ok ? {} : { mayBeMore: true }),
    ...tokensOf(terms),
  };
  return { secrets, blocked: undefined, expandMissing };
}

/** The one secret of an inline volume. */
export function resolvePublishSecret(
  desired: DesiredSecrets,
  reference: NamedReference | undefined,
  terms: TokenTerms,
): ResolvedSecrets {
  const publish = resolveSecret(desired, reference);
  if (!publish.ok) return { secrets: UNKNOWN_SECRETS, blocked: publish.failure };
  return { secrets: { ...NO_SECRETS, publish: publish.value, ...tokensOf(terms) }, blocked: undefined };
}

/**
 * What the teardown of a volume that nobody wants any more may take: the secret it was attached with, as it is now
 * (CSI ControllerUnpublishVolume; A-040). One that is gone is left out: teardown goes on without. The others
 * are there to be taken out of what the driver says; with its PersistentVolume gone nobody knows which they were.
 */
export function unwantedSecrets(
  desired: DesiredSecrets & Pick<DesiredObjects, 'volumes' | 'drivers' | 'awaited'>,
  spec: VolumeSpec,
): VolumeSecrets {
  if (spec.kind !== 'csi') return NO_SECRETS;
  const controllerPublish = dataOf(resolveSecret(desired, spec.controllerPublishSecret));
  const source = desired.volumes.get(spec.specName as ObjectKey)?.source;
  if (source?.kind !== 'csi' || csiVolumeId(source.driver, source.volumeHandle) !== spec.id)
    return { ...UNKNOWN_SECRETS, controllerPublish };
  const { secrets } = resolveSecrets(
    desired,
    source,
    driverTerms(desired, spec.driver, spec.lifecycle),
    false,
  );
  return { ...secrets, controllerPublish };
}

type TokenTerms = Pick<DriverTerms, 'tokenRequests' | 'refused'>;

/** A driver whose terms cannot be read may ask for some. */
function tokensOf({ tokenRequests, refused }: TokenTerms): Pick<VolumeSecrets, 'tokens'> {
  return tokenRequests.length > 0 || refused?.code === 'reference-missing' ? { tokens: true } : {};
}

function dataOf(result: Result<SecretData | undefined>): SecretData | undefined {
  return result.ok ? result.value : undefined;
}

/** One Secret as text by key; undefined where none is named. */
export function resolveSecret(
  desired: DesiredSecrets,
  reference: NamedReference | undefined,
): Result<SecretData | undefined> {
  if (reference === undefined) return ok(undefined);
  const key = objectKey(reference);
  const secret = desired.secrets.get(key);
  if (secret === undefined) {
    return refuseMissing(desired, `Secret ${key}`, { blocker: key });
  }
  const before = asTexts.get(secret);
  const texts = before ?? textsOf(secret, key);
  asTexts.set(secret, texts);
  return texts;
}

/** Each Secret is decoded once, however often the wish is read. */
const asTexts = new WeakMap<Secret, Result<SecretData>>();

function textsOf(secret: Secret, key: ObjectKey): Result<SecretData> {
  const texts: Record<string, string> = {};
  for (const [name, bytes] of secret.data.reveal()) {
    const text = decode(bytes);
    // gRPC strings are UTF-8: anything else would arrive as something else.
    if (text === undefined) {
      const message = `the key ${name} of Secret ${key} is not UTF-8 text, and a driver takes nothing else`;
      return fail({ code: 'spec-invalid', message, effect: 'none', blocker: key });
    }
    texts[name] = text;
  }
  return ok(new Sensitive(texts));
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
