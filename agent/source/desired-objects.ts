/** What is wanted, as the sources say it: objects, what was refused of them, and what is not known. */
import type { Failure } from '../../mount/failure.ts';
import type { Cancel } from '../../mount/host.ts';
import { type Sliced, wholly } from '../../mount/process/slices.ts';
import type { PodUid } from '../../plugins/volume.ts';
import { attachmentRemarks } from './attachment-remark.ts';
import type { AttachmentSubject } from '../../kubernetes/objects/read-attachment.ts';
import {
  type ConfigMap,
  type CsiDriver,
  identityOf,
  keyOf,
  type Node,
  type ObjectKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type Secret,
  type Stamped,
  type StorageClass,
  type VolumeAttachment,
  type WishObject,
} from '../../kubernetes/objects/objects.ts';

/** Something in a source that is not taken, and why. For people; holds no secret. */
export interface Rejection {
  /** The file, and after `#` the document in it counted from 1: `web.yaml#2`. */
  readonly origin: string;
  /** `Pod default/web`, as far as it could be read. */
  readonly subject?: string;
  /** `spec.volumes[2].hostPath.type`. */
  readonly field?: string;
  readonly message: string;
  /** Of a VolumeAttachment that is not taken: of which volume it is not known whether it is attached. */
  readonly attachment?: AttachmentSubject;
}

/** Everything that is wanted at one moment; replaced as a whole, never changed in place. */
export interface Wish {
  /** False until every source has been listed once. */
  readonly complete: boolean;
  readonly pods: ReadonlyMap<PodUid, Stamped<Pod>>;
  readonly volumes: ReadonlyMap<ObjectKey, Stamped<PersistentVolume>>;
  readonly claims: ReadonlyMap<ObjectKey, Stamped<PersistentVolumeClaim>>;
  readonly storageClasses: ReadonlyMap<ObjectKey, Stamped<StorageClass>>;
  readonly drivers: ReadonlyMap<ObjectKey, Stamped<CsiDriver>>;
  readonly nodes: ReadonlyMap<ObjectKey, Stamped<Node>>;
  readonly attachments: ReadonlyMap<ObjectKey, Stamped<VolumeAttachment>>;
  readonly secrets: ReadonlyMap<ObjectKey, Stamped<Secret>>;
  readonly configMaps: ReadonlyMap<ObjectKey, Stamped<ConfigMap>>;
  readonly rejected: readonly Rejection[];
  /** Files (or other sources) that cannot be read now; what they said last stays wanted. */
  readonly unknownOrigins: ReadonlySet<string>;
  /** Pods of which it is not known what is wanted: nothing of theirs is taken down. */
  readonly frozenPods: ReadonlySet<PodUid>;
  /** Pods that are wanted only because too many vanished at once; undefined when there are none. */
  readonly vanishing: Vanishing | undefined;
  /** Why the source as a whole cannot be read now: what it said last stays wanted. */
  readonly doubt?: Failure | undefined;
}

/** Pods that are still wanted although their manifests are gone, because too many of them went at once. */
export interface Vanishing {
  readonly pods: ReadonlySet<PodUid>;
  /** Host clock: when the first of them was seen to be gone. */
  readonly sinceMs: number;
  /** Host clock: when the last of them is believed to be gone, unless it has come back. */
  readonly untilMs: number;
}

/** Where objects come from: a directory of manifests, or an API server. */
export interface WishSource {
  /** Settles after the first listing, whether it succeeded or not (`current().complete` says so). */
  start(): Promise<void>;
  /** Nothing is read and no listener is called any more. */
  stop(): void;
  current(): Wish;
  /** Called after `current()` has changed, never for a listing that says the same again. */
  onChange(listener: () => void): Cancel;
}

/** What one source says: the part of the wish that it alone answers for. */
export interface SourceWish {
  readonly name: string;
  readonly objects: readonly Stamped<WishObject>[];
  readonly rejected: readonly Rejection[];
  readonly unknown: boolean;
  readonly frozenPods: ReadonlySet<PodUid>;
}

interface Gathered {
  readonly pods: Map<PodUid, Stamped<Pod>>;
  readonly byKind: {
    readonly [Kind in WishObject['kind']]: Map<ObjectKey, Stamped<WishObject & { kind: Kind }>>;
  };
  readonly rejected: Rejection[];
  readonly unknownOrigins: Set<string>;
  readonly frozenPods: Set<PodUid>;
}

/**
 * Puts the sources together. Of two objects with one identity, and of two pods with one uid, the first by source name
 * and then by place in the source is taken, the other is refused, and a pod so contradicted is frozen: unknown is not
 * unwanted. A source that would take the wish beyond `objectsMax` is left out and unknown.
 */
export function* assembleWish(
  complete: boolean,
  sources: readonly SourceWish[],
  objectsMax: number,
): Sliced<Wish> {
  const gathered: Gathered = {
    pods: new Map(),
    byKind: {
      Pod: new Map(),
      PersistentVolume: new Map(),
      PersistentVolumeClaim: new Map(),
      StorageClass: new Map(),
      CSIDriver: new Map(),
      Node: new Map(),
      VolumeAttachment: new Map(),
      Secret: new Map(),
      ConfigMap: new Map(),
    },
    rejected: [],
    unknownOrigins: new Set(),
    frozenPods: new Set(),
  };
  let objects = 0;
  for (const source of sources.toSorted((a, b) => compareText(a.name, b.name))) {
    yield;
    for (const rejection of source.rejected) gathered.rejected.push(rejection);
    for (const pod of source.frozenPods) gathered.frozenPods.add(pod);
    if (source.unknown) gathered.unknownOrigins.add(source.name);
    if (objects + source.objects.length > objectsMax) {
      gathered.unknownOrigins.add(source.name);
      gathered.rejected.push({
        origin: source.name,
        message: `with it there are more than ${objectsMax} objects`,
      });
      continue;
    }
    objects += source.objects.length;
    for (const object of source.objects) {
      add(gathered, object);
      yield;
    }
  }
  const { pods, byKind, rejected, unknownOrigins, frozenPods } = gathered;
  for (const { object, field, message } of yield* attachmentRemarks(byKind))
    rejected.push({ origin: object.place, subject: identityOf(object), field, message });
  return {
    complete,
    pods,
    volumes: byKind.PersistentVolume,
    claims: byKind.PersistentVolumeClaim,
    storageClasses: byKind.StorageClass,
    drivers: byKind.CSIDriver,
    nodes: byKind.Node,
    attachments: byKind.VolumeAttachment,
    secrets: byKind.Secret,
    configMaps: byKind.ConfigMap,
    rejected,
    unknownOrigins,
    frozenPods,
    vanishing: undefined,
  };
}

/** Nothing has been listed yet. */
export const EMPTY_WISH: Wish = wholly(assembleWish(false, [], 0));

/** By code unit: the same on every machine and in every language. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function subjectOf({ volumeName, nodeName }: VolumeAttachment): AttachmentSubject {
  return { volumeName, nodeName };
}

function add(gathered: Gathered, object: Stamped<WishObject>): void {
  const subject = identityOf(object);
  const refuse = (message: string): void => {
    const attachment = object.kind === 'VolumeAttachment' ? { attachment: subjectOf(object) } : {};
    gathered.rejected.push({ origin: object.place, subject, message, ...attachment });
    if (object.kind === 'Pod') gathered.frozenPods.add(object.reference.uid);
  };
  const ofKind = gathered.byKind[object.kind] as Map<ObjectKey, Stamped<WishObject>>;
  const twin = ofKind.get(keyOf(object));
  if (twin !== undefined) return refuse(`${twin.place} has one of the same name, which is taken`);
  if (object.kind === 'Pod') {
    const other = gathered.pods.get(object.reference.uid);
    if (other !== undefined) {
      return refuse(`it has the uid of ${identityOf(other)} in ${other.place}, which is taken`);
    }
    gathered.pods.set(object.reference.uid, object);
  }
  ofKind.set(keyOf(object), object);
}
