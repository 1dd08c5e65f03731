/** The metadata of every object: who it is. */
import { type NamedReference, objectKey, type ApiObject } from './objects.ts';
import { DRIVER_NAME, LABEL_NAME, type NameRule, OBJECT_NAME, OBJECT_UID } from '../fields/object-name.ts';
import { FieldReader, type Problem } from '../fields/field-reader.ts';

/** Metadata as read; `deleted` says that deletion has been asked for. */
export interface Metadata extends NamedReference {
  readonly uid: string | undefined;
  readonly deleted: boolean;
  readonly finalizers: readonly string[];
  /** The pod that controls this object (metadata.ownerReferences); undefined when it is no pod, or nobody. */
  readonly ownerPodUid: string | undefined;
}

/** The namespace is `default` where none is given, as for kubectl. */
export function readMetadata(reader: FieldReader, nameRule: NameRule = OBJECT_NAME): Metadata {
  const metadata = reader.key('metadata');
  return {
    name: metadata.key('name').requiredText(...nameRule),
    namespace: readNamespace(metadata),
    uid: metadata.key('uid').text(...OBJECT_UID),
    deleted: metadata.key('deletionTimestamp').present,
    finalizers: metadata
      .key('finalizers')
      .list()
      .map((one) => one.text() ?? ''),
    ownerPodUid: readOwner(metadata.key('ownerReferences')),
  };
}

/** Kubernetes: at most one owner controls an object, and only that one counts (`IsControlledBy`). */
function readOwner(references: FieldReader): string | undefined {
  for (const reference of references.list()) {
    const controls = reference.key('controller').flag(false);
    if (!controls || reference.key('kind').text() !== 'Pod') continue;
    return reference.key('uid').requiredText(...OBJECT_UID);
  }
  return undefined;
}

/** One annotation, by its whole name. */
export function annotation(reader: FieldReader, name: string): FieldReader {
  return reader.key('metadata').key('annotations').key(name);
}

function readNamespace(metadata: FieldReader): string {
  return (
    metadata.key('namespace').text((text) => text === '' || LABEL_NAME[0](text), LABEL_NAME[1]) || 'default'
  );
}

const CLUSTER_WIDE: ReadonlySet<string> = new Set<ApiObject['kind']>([
  'PersistentVolume',
  'StorageClass',
  'CSIDriver',
  'Node',
  'VolumeAttachment',
]);

/** Who an object is, without its kind. */
export interface Identity extends NamedReference {
  /** As `identityOf` says it. */
  readonly text: string;
}

/**
 * The identity alone, of an object whose other fields may be wrong; undefined when it cannot be read. A kind that is
 * not ours is taken for one with a namespace.
 */
export function identify(kind: string, value: unknown): Identity | undefined {
  const problems: Problem[] = [];
  const metadata = new FieldReader(value, '', problems).key('metadata');
  const name = metadata.key('name').requiredText((text) => text !== '', 'a name');
  const namespace = readNamespace(metadata);
  if (problems.length > 0 || !(OBJECT_NAME[0](name) || DRIVER_NAME[0](name))) return undefined;
  return {
    name,
    namespace,
    text: `${kind} ${CLUSTER_WIDE.has(kind) ? name : objectKey({ namespace, name })}`,
  };
}
