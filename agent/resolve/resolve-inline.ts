/** A CSI volume that is written in the pod itself, as a volume to set up (KEP-596). */
import { csiVolumeId, inlineVolumeHandle } from '../../plugins/volume.ts';
import { resolvePublishSecret } from './csi-secrets.ts';
import { driverTerms } from './driver-terms.ts';
import type { InlineSource, Pod } from '../../kubernetes/objects/objects.ts';
import { generationOf, tokensOf } from './resolve-claim.ts';
import { PLAIN, type Resolved, type Sources } from './resolved.ts';

/**
 * As the kubelet tells the driver of it: never attached or staged, ReadWriteOnce, without mount options, and so without
 * an SELinux context (`VolumeSupportsSELinuxMount`).
 */
export function resolveInline(sources: Sources, pod: Pod, name: string, source: InlineSource): Resolved {
  const { desired, options } = sources;
  const { uid, namespace } = pod.reference;
  const terms = driverTerms(desired, source.driver, 'Ephemeral');
  const secretName = source.publishSecretName;
  const reference = secretName === undefined ? undefined : { namespace, name: secretName };
  const { secrets, blocked } = resolvePublishSecret(desired, reference, terms);
  const volumeHandle = inlineVolumeHandle(uid, name);
  return {
    ...PLAIN,
    spec: {
      kind: 'csi',
      id: csiVolumeId(source.driver, volumeHandle),
      driver: source.driver,
      volumeHandle,
      specName: name,
      fsType: source.fsType,
      mountOptions: [],
      volumeAttributes: source.volumeAttributes,
      accessModes: ['ReadWriteOnce'],
      readOnly: source.readOnly,
      mode: 'Filesystem',
      seLinuxContext: '',
      ...terms.fields,
    },
    specName: name,
    readOnly: source.readOnly,
    secrets,
    blocked: terms.refused ?? blocked,
    generation: generationOf(terms, options.republishEpoch),
    tokens: tokensOf(sources, terms, pod.reference),
  };
}
