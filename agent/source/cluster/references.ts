/** Which objects the pods of this node lead to, by name: nothing else is read of a cluster. Pure. */
import type { ContentSource } from '../../../kubernetes/objects/content-source.ts';
import {
  type IscsiSource,
  type NamedReference,
  objectKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type PodVolume,
} from '../../../kubernetes/objects/objects.ts';

export type ContentReference = { readonly kind: 'Secret' | 'ConfigMap' } & NamedReference;
export type ClaimReference = { readonly kind: 'PersistentVolumeClaim' } & NamedReference;
export type StorageReference = ClaimReference | { readonly kind: 'PersistentVolume'; readonly name: string };
export type Reference = ContentReference | StorageReference;

/** As `identityOf` says it of the object. */
export function referenceKey(reference: Reference): string {
  return `${reference.kind} ${'namespace' in reference ? objectKey(reference) : reference.name}`;
}

/** The right that an administrator has to give where a server denies it; a node has it by `system:node`. */
export function rightToRead({ kind }: Reference): string {
  switch (kind) {
    case 'PersistentVolumeClaim':
      return 'get persistentvolumeclaims';
    case 'PersistentVolume':
      return 'get persistentvolumes';
    case 'Secret':
      return 'list and watch secrets';
    case 'ConfigMap':
      return 'list and watch configmaps';
  }
}

/** What the pod itself names: in its volumes, and in the variables that paths of their parts are made of. */
export function podReferences({ reference, volumes, containers }: Pod): readonly Reference[] {
  const { namespace } = reference;
  const values = containers.flatMap(({ variables }) => variables.map(({ value }) => value));
  return [
    ...volumes.flatMap((volume) => volumeReferences(volume, reference)),
    ...values.flatMap((value) => (value.kind === 'config-map' ? [contentReference(value, namespace)] : [])),
  ];
}

function volumeReferences({ name, source }: PodVolume, pod: NamedReference): readonly Reference[] {
  const { namespace } = pod;
  switch (source.kind) {
    case 'claim':
      return [{ kind: 'PersistentVolumeClaim', namespace, name: source.claimName }];
    case 'own-claim':
      return [{ kind: 'PersistentVolumeClaim', namespace, name: `${pod.name}-${name}` }];
    case 'csi-inline':
      return source.publishSecretName === undefined
        ? []
        : [{ kind: 'Secret', namespace, name: source.publishSecretName }];
    case 'iscsi':
      return source.secret === undefined ? [] : [{ kind: 'Secret', namespace, name: source.secret.name }];
    case 'secret':
    case 'config-map':
      return [contentReference(source, namespace)];
    case 'projected':
      return source.sources.flatMap((one) =>
        one.kind === 'secret' || one.kind === 'config-map' ? [contentReference(one, namespace)] : [],
      );
    case 'empty-dir':
    case 'host-path':
    case 'nfs':
    case 'downward-api':
    case 'image':
    case 'unsupported':
      return [];
  }
}

function contentReference(
  { kind, name }: Pick<ContentSource, 'kind' | 'name'>,
  namespace: string,
): Reference {
  return { kind: kind === 'secret' ? 'Secret' : 'ConfigMap', namespace, name };
}

export function claimReferences({ volumeName }: PersistentVolumeClaim): readonly Reference[] {
  return volumeName === undefined ? [] : [{ kind: 'PersistentVolume', name: volumeName }];
}

/** Those that a node may read: the secret of ControllerPublish is not among them. */
export function volumeSecrets({ source, claimRef }: PersistentVolume): readonly Reference[] {
  if (source.kind === 'iscsi') return secretOfIscsi(source, claimRef);
  if (source.kind !== 'csi') return [];
  const named = [source.stageSecret, source.publishSecret, source.expandSecret];
  return named.flatMap((one) => (one === undefined ? [] : [{ kind: 'Secret' as const, ...one }]));
}

/** Without a namespace of its own it is in that of the pods of its claim. */
function secretOfIscsi(
  { secret }: IscsiSource,
  claimRef: PersistentVolume['claimRef'],
): readonly Reference[] {
  const namespace = secret?.namespace === '' ? claimRef?.namespace : secret?.namespace;
  return secret === undefined || namespace === undefined
    ? []
    : [{ kind: 'Secret', namespace, name: secret.name }];
}
