/**
 * One document of a manifest as an object of the wish, or why not. Fields that do not decide about volumes are ignored,
 * as are unknown ones; a field that does is checked completely, so that nothing below has to doubt it.
 */
import { parsePodUid, type PodUid } from '../../plugins/volume.ts';
import { readConfigMap, readSecret } from './read-content.ts';
import { type AttachmentSubject, attachmentSubject, readVolumeAttachment } from './read-attachment.ts';
import { identify, readMetadata } from './read-metadata.ts';
import { readCsiDriver } from './read-driver.ts';
import { API_VERSIONS, type Node, type ApiObject } from './objects.ts';
import { FieldReader, type Problem } from '../fields/field-reader.ts';
import { readNodeResources } from '../fields/node-resource.ts';
import { derivePodUid, readPod } from './read-pod.ts';
import { readClaim, readPersistentVolume } from './read-volume.ts';

/** Who a document is about, as far as that can be read even if the rest is wrong. */
export interface Subject {
  /** As `identityOf`: `Pod default/web`. */
  readonly identity: string;
  /** The uid that the document's pod has, or would have. */
  readonly pod: PodUid | undefined;
  /** What the document's VolumeAttachment is about. */
  readonly attachment?: AttachmentSubject;
}

/** What became of one document. */
export type ShapeReading =
  | { readonly kind: 'object'; readonly object: ApiObject }
  /** A whole object of the Kubernetes API that is not ours to read; named where somebody may look for pods of it. */
  | { readonly kind: 'ignored'; readonly identity?: string; readonly message: string }
  | {
      readonly kind: 'refused';
      readonly subject: Subject | undefined;
      readonly problems: readonly Problem[];
    };

type Reader = (reader: FieldReader, origin: string) => ApiObject;

const READERS: Readonly<Record<ApiObject['kind'], Reader>> = {
  Pod: readPod,
  PersistentVolume: readPersistentVolume,
  PersistentVolumeClaim: readClaim,
  StorageClass: (reader) => ({ kind: 'StorageClass', name: readMetadata(reader).name }),
  CSIDriver: readCsiDriver,
  Node: readNode,
  VolumeAttachment: readVolumeAttachment,
  Secret: readSecret,
  ConfigMap: readConfigMap,
};

const API_VERSION = /^[A-Za-z0-9./-]{1,128}$/;
const KIND = /^[A-Z][A-Za-z0-9]{0,62}$/;

/**
 * Pure and total. `origin` is the file's name, from which a pod without uid gets its own; `field` is where the object
 * begins in its document; `known` are the problems that the manifest's own syntax has already shown.
 */
export function readObject(
  value: unknown,
  origin: string,
  field = '',
  known: readonly Problem[] = [],
): ShapeReading {
  const problems: Problem[] = [...known];
  // A document that is only a text may be anything, a secret too.
  const reader = new FieldReader(value, field, problems, typeof value !== 'object');
  const kind = reader
    .key('kind')
    .requiredText((text) => KIND.test(text), 'the kind of an object, such as Pod');
  const rightVersion = 'the version of an API, such as v1';
  const apiVersion = reader.key('apiVersion').requiredText((text) => API_VERSION.test(text), rightVersion);
  if (!isOurs(kind)) {
    if (kind.endsWith('List'))
      reader.key('kind').refuse(`"${kind}" is not read here; write its items as documents`);
    if (problems.length === 0 && isNamed(value))
      return WORKLOADS.has(kind) ? ignoredWorkload(apiVersion, kind, value) : ignored(apiVersion, kind);
    reader
      .key('metadata')
      .key('name')
      .requiredText(() => true, 'a name');
    if (problems.length === 0) reader.key('kind').refuse(`"${kind}" cannot be read from here`);
    return { kind: 'refused', subject: undefined, problems };
  }
  const versions: readonly string[] = API_VERSIONS[kind];
  if (apiVersion !== '' && !versions.includes(apiVersion)) {
    if (isOfOthers(apiVersion) && problems.length === 0 && isNamed(value)) return ignored(apiVersion, kind);
    reader.key('apiVersion').refuse(`${reader.key('apiVersion').shown()} is not ${versions.join(' or ')}`);
  }
  const object = READERS[kind](reader, origin);
  if (problems.length === 0) return { kind: 'object', object };
  return { kind: 'refused', subject: subjectOf(kind, value, origin), problems };
}

function isOurs(kind: string): kind is ApiObject['kind'] {
  return Object.hasOwn(READERS, kind);
}

/** Groups without a dot, and those below k8s.io: in none of them Kubernetes has another kind that is called as ours. */
const GROUP_OF_KUBERNETES = /^(?:[^.]*|.+\.k8s\.io)$/;

function isOfOthers(apiVersion: string): boolean {
  const [group = '', version] = apiVersion.split('/');
  return version !== undefined && !GROUP_OF_KUBERNETES.test(group);
}

function isNamed(value: unknown): boolean {
  const problems: Problem[] = [];
  const name = new FieldReader(value, '', problems).key('metadata').key('name').text();
  return name !== undefined && name !== '' && problems.length === 0;
}

function ignored(apiVersion: string, kind: string): ShapeReading {
  const message = `${apiVersion} ${kind} has no part in volumes here and is ignored`;
  return { kind: 'ignored', message };
}

/** What a cluster makes pods and claims of. */
const WORKLOADS: ReadonlySet<string> = new Set([
  'CronJob',
  'DaemonSet',
  'Deployment',
  'Job',
  'PodTemplate',
  'ReplicaSet',
  'ReplicationController',
  'StatefulSet',
]);

function ignoredWorkload(apiVersion: string, kind: string, value: unknown): ShapeReading {
  const message =
    `${apiVersion} ${kind} is ignored: no pods and no claims are made of it here; ` +
    'write them as objects of kind Pod and PersistentVolumeClaim';
  const identity = identify(kind, value)?.text;
  return { kind: 'ignored', message, ...(identity === undefined ? {} : { identity }) };
}

/**
 * A pod counts as readable only when its spec has begun: a file cut short in the middle of a name must not be taken
 * for another pod.
 */
function subjectOf(kind: ApiObject['kind'], value: unknown, origin: string): Subject | undefined {
  const identity = identify(kind, value);
  if (identity === undefined) return undefined;
  if (kind === 'VolumeAttachment')
    return { identity: identity.text, pod: undefined, attachment: attachmentSubject(value) };
  if (kind !== 'Pod') return { identity: identity.text, pod: undefined };
  const reader = new FieldReader(value, '', []);
  if (!reader.key('spec').present) return undefined;
  const given = reader.key('metadata').key('uid');
  const uid = given.present ? parsePodUid(given.text() ?? '') : derivePodUid(origin, identity);
  return uid === undefined ? undefined : { identity: identity.text, pod: uid };
}

/** Set by whoever has made sure that the machine is off (KEP-2268). */
export const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** Those that are texts, as all of a Node are that an API server has taken. */
function readLabels(labels: FieldReader): Readonly<Record<string, string>> {
  const entries = labels.entries().map(([key, value]) => [key, value.text() ?? ''] as const);
  return Object.fromEntries(entries);
}

/** Whatever the value and effect of the taint are, its key says it. */
function readNode(reader: FieldReader): Node {
  const { name } = readMetadata(reader);
  const taints = reader.key('spec').key('taints').list();
  const outOfService = taints.some((taint) => taint.key('key').text() === OUT_OF_SERVICE);
  return {
    kind: 'Node',
    name,
    outOfService,
    labels: readLabels(reader.key('metadata').key('labels')),
    allocatable: readNodeResources(reader.key('status').key('allocatable')),
  };
}
