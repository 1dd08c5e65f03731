/** What is wanted, as the sources say it: objects, what was refused of them, and what is not known. */
import type { Failure } from '../../mount/failure.ts';
import { compareText } from '../../mount/text/compare-text.ts';
import { type Sliced, wholly } from '../../mount/process/slices.ts';
import type { PodUid } from '../../plugins/volume.ts';
import { attachmentRemarks } from './attachment-remark.ts';
import { groupRemarks } from './group-remark.ts';
import { type ContentRevisions, createContentRevisions, type Revised } from './content-revision.ts';
import type { Rejection, SourcePart, SourceReading, SourceReport, MassRemoval } from './objects-source.ts';
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
  type VolumeAttachment,
  type ApiObject,
} from '../../kubernetes/objects/objects.ts';

/** Everything that is wanted at one moment; replaced as a whole, never changed in place. */
export interface DesiredObjects {
  /** False until every source has been listed once. */
  readonly complete: boolean;
  readonly pods: ReadonlyMap<PodUid, Stamped<Pod>>;
  readonly volumes: ReadonlyMap<ObjectKey, Stamped<PersistentVolume>>;
  readonly claims: ReadonlyMap<ObjectKey, Stamped<PersistentVolumeClaim>>;
  readonly drivers: ReadonlyMap<ObjectKey, Stamped<CsiDriver>>;
  readonly nodes: ReadonlyMap<ObjectKey, Stamped<Node>>;
  readonly attachments: ReadonlyMap<ObjectKey, Stamped<VolumeAttachment>>;
  readonly secrets: ReadonlyMap<ObjectKey, Revised<Secret>>;
  readonly configMaps: ReadonlyMap<ObjectKey, Revised<ConfigMap>>;
  readonly rejected: readonly Rejection[];
  /** Files (or other sources) that cannot be read now; what they said last stays wanted. */
  readonly unknownOrigins: ReadonlySet<string>;
  /** One of those of which nothing was ever known, and will be in a moment: what is missing may be in it. */
  readonly awaited?: string | undefined;
  /**
   * By the origin of whoever may name something: one beside it, of the same source, of which nothing is known, and why.
   * It could never be read, or there are too many objects with it. What is missing may be in it.
   */
  readonly unreadBeside: ReadonlyMap<string, string>;
  /** Pods of which it is not known what is wanted: nothing of theirs is taken down. */
  readonly frozenPods: ReadonlySet<PodUid>;
  /** Pods that a source shows, whatever it says of them, beside `pods`. */
  readonly shownPods: ReadonlySet<PodUid>;
  /** Why a source as a whole cannot be read now: what it said last stays wanted. */
  readonly doubt?: Failure | undefined;
  /** What the sources have to tell people of this moment. */
  readonly reports: readonly SourceReport[];
}

/** All that one source says, under its name. */
export interface NamedReading extends SourceReading {
  readonly name: string;
}

/** How the sources are put together. */
export interface Assembly {
  /** Objects wanted at one time, of all sources. */
  readonly objectsMax: number;
  readonly secrets: ContentRevisions<Secret>;
  readonly configMaps: ContentRevisions<ConfigMap>;
}

interface Gathered {
  readonly pods: Map<PodUid, Stamped<Pod>>;
  readonly byKind: {
    readonly [Kind in ApiObject['kind']]: Map<ObjectKey, Stamped<ApiObject & { kind: Kind }>>;
  };
  readonly rejected: Rejection[];
  readonly unknownOrigins: Set<string>;
  readonly frozenPods: Set<PodUid>;
  readonly shownPods: Set<PodUid>;
  readonly unreadBeside: Map<string, string>;
  awaited: string | undefined;
}

/**
 * Puts the sources together. Of two objects with one identity, and of two pods with one uid, the first is taken: by the
 * order of the sources, then by the name of the part, then by place in the part. The other is refused, and a pod so
 * contradicted is frozen: unknown is not unwanted. A part that would take the wish beyond `objectsMax` is left out and
 * unknown. The wish is complete when every source is, and there is one.
 */
export function* assembleDesiredObjects(
  readings: readonly NamedReading[],
  assembly: Assembly,
): Sliced<DesiredObjects> {
  const gathered = nothingGathered();
  let objects = 0;
  for (const reading of readings) {
    if (reading.doubt !== undefined)
      gathered.rejected.push({ origin: reading.name, message: reading.doubt.message });
    const remark = reading.report?.remark;
    if (remark !== undefined) gathered.rejected.push({ origin: reading.name, message: remark });
    objects = yield* addParts(gathered, reading.parts, objects, assembly.objectsMax);
  }
  // What they said last stays wanted as it is; only that they cannot be read has to be told.
  for (const { name, doubt } of readings) if (doubt !== undefined) gathered.unknownOrigins.add(name);
  const { pods, byKind, rejected, unknownOrigins, frozenPods, shownPods } = gathered;
  for (const { object, field, message } of yield* attachmentRemarks(byKind))
    rejected.push({ origin: object.place, subject: identityOf(object), field, message });
  rejected.push(...(yield* groupRemarks(byKind.PersistentVolume)));
  const secrets = yield* assembly.secrets.revise(byKind.Secret);
  const configMaps = yield* assembly.configMaps.revise(byKind.ConfigMap);
  for (const object of [...secrets.values(), ...configMaps.values()])
    if (object.isChangeIgnored === true)
      rejected.push({ origin: object.place, subject: identityOf(object), message: CHANGE_IGNORED });
  return {
    complete: readings.length > 0 && readings.every(({ complete }) => complete),
    pods,
    volumes: byKind.PersistentVolume,
    claims: byKind.PersistentVolumeClaim,
    drivers: byKind.CSIDriver,
    nodes: byKind.Node,
    attachments: byKind.VolumeAttachment,
    secrets,
    configMaps,
    rejected,
    unknownOrigins,
    awaited: gathered.awaited,
    unreadBeside: gathered.unreadBeside,
    frozenPods,
    shownPods,
    doubt: readings.find(({ doubt }) => doubt !== undefined)?.doubt,
    reports: readings.flatMap(({ report }) => report ?? []),
  };
}

function nothingGathered(): Gathered {
  return {
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
    shownPods: new Set(),
    unreadBeside: new Map(),
    awaited: undefined,
  };
}

const CHANGE_IGNORED =
  'it is immutable and was changed: what it said first counts for as long as it is there; give it another name, or ' +
  'delete it and write it anew';

/** The answer: how many objects there are now. */
function* addParts(
  gathered: Gathered,
  parts: readonly SourcePart[],
  objectsBefore: number,
  objectsMax: number,
): Sliced<number> {
  let objects = objectsBefore;
  const sorted = parts.toSorted((a, b) => compareText(a.name, b.name));
  const broken = sorted.find(({ isUnread, isAwaited }) => isUnread === true && isAwaited !== true);
  let unread = broken && `${broken.name}, of which nothing could be read so far: repair or delete it`;
  for (const part of sorted) {
    yield;
    for (const rejection of part.rejected) gathered.rejected.push(rejection);
    for (const pod of part.frozenPods) gathered.frozenPods.add(pod);
    for (const pod of part.shownPods ?? []) gathered.shownPods.add(pod);
    if (part.unknown) gathered.unknownOrigins.add(part.name);
    if (part.isAwaited === true) gathered.awaited ??= part.name;
    if (objects + part.objects.length > objectsMax) {
      gathered.unknownOrigins.add(part.name);
      const message = `with it there are more than ${objectsMax} objects`;
      gathered.rejected.push({ origin: part.name, message });
      unread ??= `${part.name}, which is left out: ${message}`;
      continue;
    }
    objects += part.objects.length;
    for (const object of part.objects) {
      add(gathered, object);
      yield;
    }
  }
  if (unread !== undefined) for (const { name } of parts) gathered.unreadBeside.set(name, unread);
  return objects;
}

/** The revisions begin above `revisionFloor`. */
export function createAssembly(revisionFloor: number, objectsMax = OBJECTS_MAX): Assembly {
  let revision = revisionFloor;
  const next = (): number => (revision += 1);
  return { objectsMax, secrets: createContentRevisions(next), configMaps: createContentRevisions(next) };
}

/** Far above any node's need: 110 pods. */
const OBJECTS_MAX = 50_000;

/** Undefined when no source keeps pods because too many went at once. */
export function massRemovalIn({ reports }: Pick<DesiredObjects, 'reports'>): MassRemoval | undefined {
  const all = reports.flatMap(({ massRemoval }) => massRemoval ?? []);
  if (all.length <= 1) return all[0];
  return {
    pods: new Set(all.flatMap(({ pods }) => [...pods])),
    sinceMs: Math.min(...all.map(({ sinceMs }) => sinceMs)),
    untilMs: Math.max(...all.map(({ untilMs }) => untilMs)),
  };
}

/** Nothing has been listed yet. */
export const NOTHING_DESIRED: DesiredObjects = wholly(assembleDesiredObjects([], createAssembly(0)));

function subjectOf({ volumeName, nodeName }: VolumeAttachment): AttachmentSubject {
  return { volumeName, nodeName };
}

function add(gathered: Gathered, object: Stamped<ApiObject>): void {
  const subject = identityOf(object);
  const refuse = (message: string): void => {
    const attachment = object.kind === 'VolumeAttachment' ? { attachment: subjectOf(object) } : {};
    gathered.rejected.push({ origin: object.place, subject, message, ...attachment });
    if (object.kind === 'Pod') gathered.frozenPods.add(object.reference.uid);
  };
  const ofKind = gathered.byKind[object.kind] as Map<ObjectKey, Stamped<ApiObject>>;
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
