/** From a claim in a pod to the PersistentVolume behind it, as a volume to set up. */
import { ok, type Result } from '../../mount/failure.ts';
import { csiVolumeId, type CsiVolumeSpec, type PodReference } from '../../plugins/volume.ts';
import { resolveSecrets } from './csi-secrets.ts';
import { type DriverTerms, driverTerms } from './driver-terms.ts';
import { refuseMissing } from './missing.ts';
import {
  type CsiSource,
  type NamedReference,
  objectKey,
  type PersistentVolume,
  type Pod,
  type PodVolume,
} from '../../kubernetes/objects/objects.ts';
import { whyUnsupported } from '../../kubernetes/sources/other-kinds.ts';
import { refuse } from '../../kubernetes/fields/refuse.ts';
import {
  resolveHostPathVolume,
  resolveIscsiVolume,
  resolveLocal,
  resolveNfsVolume,
} from './resolve-in-tree.ts';
import { PLAIN, type Resolved, type Sources } from './resolved.ts';
import { seLinuxContext } from './selinux-context.ts';
import { wantedSize } from './wanted-size.ts';

/** A claim that the pod names; `readOnly` is the pod's word. */
export function resolveClaim(
  sources: Sources,
  pod: Pod,
  volume: Pick<PodVolume, 'block'>,
  source: { readonly claimName: string; readonly readOnly: boolean },
): Result<Resolved> {
  const { desired, bindings, options } = sources;
  const key = objectKey({ namespace: pod.reference.namespace, name: source.claimName });
  const bound = bindings.volumeOf(key);
  if (!bound.ok) return bound;
  const claim = desired.claims.get(key);
  if (claim === undefined) return refuseMissing(desired, `PersistentVolumeClaim ${key}`);
  const persistent = bound.value;
  if (claim.volumeMode !== persistent.volumeMode) {
    const message =
      `PersistentVolumeClaim ${key} has volumeMode ${claim.volumeMode}, ` +
      `and its PersistentVolume ${persistent.name} has ${persistent.volumeMode}`;
    return refuse('claim-mismatch', message);
  }
  const denied = claim.accessModes.filter((one) => !persistent.accessModes.includes(one));
  if (denied.length > 0) {
    const message =
      `PersistentVolumeClaim ${key} wants accessModes ${claim.accessModes.join(', ')}, ` +
      `and its PersistentVolume ${persistent.name} has ${persistent.accessModes.join(', ')}`;
    return refuse('claim-mismatch', message);
  }
  const wrongUse = wrongUseOf(persistent, volume.block);
  if (wrongUse !== undefined) return refuse('spec-invalid', wrongUse);
  const { source: csi, name } = persistent;
  if (csi.kind === 'unsupported')
    return refuse('kind-unsupported', `PersistentVolume ${name}: ${whyUnsupported(csi.what)}`);
  const { readOnly } = source;
  if (csi.kind === 'local') return resolveLocal(sources, persistent, csi, readOnly);
  if (csi.kind === 'host-path')
    return resolveHostPathVolume(sources, pod, { volume: persistent, source: csi, readOnly });
  if (csi.kind === 'iscsi')
    return resolveIscsiVolume(sources, pod, { volume: persistent, source: csi, readOnly });
  if (csi.kind === 'nfs')
    return resolveNfsVolume(sources, pod, { volume: persistent, source: csi, readOnly });
  const terms = driverTerms(desired, csi.driver, 'Persistent');
  const attachesHere = options.attachment === 'called' && terms.fields.attachRequired !== false;
  const { secrets, blocked, expandMissing } = resolveSecrets(desired, csi, terms, attachesHere);
  return ok({
    ...PLAIN,
    spec: csiSpec(persistent, csi, terms, options.seLinux ? pod : undefined),
    specName: name,
    readOnly,
    secrets,
    blocked: terms.refused ?? blocked,
    generation: generationOf(terms, options.republishEpoch),
    size: wantedSize(persistent, claim, expandMissing?.message),
    tokens: tokensOf(sources, terms, pod.reference),
    hasDifferentLabels: options.seLinux && isLabelled(persistent, terms) && pod.seLinux === 'different',
  });
}

/** A generic ephemeral volume: the claim `<pod>-<volume>`, and only if it is this pod's own (KEP-1698). */
export function resolveOwnClaim(sources: Sources, pod: Pod, volume: PodVolume): Result<Resolved> {
  const { namespace, name, uid } = pod.reference;
  const claimName = `${name}-${volume.name}`;
  const key = objectKey({ namespace, name: claimName });
  const claim = sources.desired.claims.get(key);
  if (claim === undefined) {
    const advice =
      '. A cluster makes it from volumeClaimTemplate; stand-alone nobody does: write it yourself, with ' +
      `metadata.ownerReferences: [{apiVersion: v1, kind: Pod, name: ${name}, uid: ${uid}, controller: true}]`;
    const whose = ` of the ephemeral volume ${volume.name}`;
    return refuseMissing(sources.desired, `PersistentVolumeClaim ${key}`, { whose, blocker: key, advice });
  }
  if (claim.ownerPodUid !== uid) {
    const owner = claim.ownerPodUid === undefined ? 'of no pod' : `of the pod with uid ${claim.ownerPodUid}`;
    const message =
      `PersistentVolumeClaim ${key} is ${owner}, and the ephemeral volume ${volume.name} ` +
      `of pod ${podName(pod.reference)} (uid ${uid}) needs one of its own (metadata.ownerReferences)`;
    return refuse('claim-mismatch', message, key);
  }
  return resolveClaim(sources, pod, volume, { claimName, readOnly: false });
}

/** Empty unless the driver wants to be asked again and again. */
export function generationOf({ requiresRepublish }: DriverTerms, republishEpoch: number): string {
  return requiresRepublish ? `republish-${republishEpoch}` : '';
}

/** Undefined for a driver that asks for none. */
export function tokensOf(
  { options }: Sources,
  { tokenRequests }: DriverTerms,
  pod: PodReference,
): Resolved['tokens'] {
  return tokenRequests.length === 0 ? undefined : options.tokens.tokensFor(pod, tokenRequests);
}

function podName(pod: NamedReference): string {
  return objectKey(pod);
}

function wrongUseOf({ name, volumeMode }: PersistentVolume, block: boolean): string | undefined {
  if (volumeMode === 'Block' && !block) {
    return `PersistentVolume ${name} is a device (volumeMode Block), and the pod mounts it: use volumeDevices`;
  }
  if (volumeMode === 'Filesystem' && block) {
    return `PersistentVolume ${name} is files (volumeMode Filesystem), and the pod wants a device: use volumeMounts`;
  }
  return undefined;
}

/** A device has neither a file system nor mount options, and so no label either. */
function isLabelled({ volumeMode }: PersistentVolume, { seLinuxMount }: DriverTerms): boolean {
  return volumeMode !== 'Block' && seLinuxMount;
}

function csiSpec(
  volume: PersistentVolume,
  source: CsiSource,
  terms: DriverTerms,
  labelledPod: Pod | undefined,
): CsiVolumeSpec {
  const isBlock = volume.volumeMode === 'Block';
  return {
    kind: 'csi',
    id: csiVolumeId(source.driver, source.volumeHandle),
    driver: source.driver,
    volumeHandle: source.volumeHandle,
    specName: volume.name,
    fsType: isBlock ? '' : source.fsType,
    mountOptions: isBlock ? [] : volume.mountOptions,
    volumeAttributes: source.volumeAttributes,
    accessModes: volume.accessModes,
    readOnly: source.readOnly,
    mode: volume.volumeMode,
    seLinuxContext: isLabelled(volume, terms) ? seLinuxContext(labelledPod?.seLinux) : '',
    ...(volume.reachableFrom === undefined ? {} : { reachableFrom: volume.reachableFrom }),
    ...(source.controllerPublishSecret === undefined
      ? {}
      : { controllerPublishSecret: source.controllerPublishSecret }),
    ...terms.fields,
  };
}
