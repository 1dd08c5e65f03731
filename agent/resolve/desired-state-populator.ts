/** From the wish to the desired state: every volume of every pod resolved, or the reason why it is not. Pure. */
import { type Failure, ok, type Result } from '../../mount/failure.ts';
import { type Sliced, sorted } from '../../mount/process/slices.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { imageOf, isDevice } from '../../plugins/kinds/volume-questions.ts';
import {
  type PodUid,
  type PublicationKey,
  publicationKey,
  type PublicationSpec,
  type Subpath,
  type VolumeId,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import type {
  DesiredPublication,
  DesiredState,
  DesiredVolume,
  UnresolvedVolume,
} from '../../reconciler/model/desired-state.ts';
import { attachmentUids, type AttachmentWord, attachmentWords } from './attachment.ts';
import type { StandingWords } from './standing-word.ts';
import { createBindings } from '../../kubernetes/binding/bind-claim.ts';
import { refuseMissing } from './missing.ts';
import type { Pod, Stamped } from '../../kubernetes/objects/objects.ts';
import type { Resolved, ResolveOptions } from './resolved.ts';
import { resolveVolume } from './resolve-volume.ts';
import { subpathsOf } from './subpaths.ts';
import { conflictOf, type Wanted } from './volume-conflict.ts';
import { HELD_READ_ONLY } from './wanted-size.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';
import { compareText } from '../../mount/text/compare-text.ts';

/** What the configuration and the machine have to say. */
export interface DesireOptions extends ResolveOptions {
  /** The pods that have the volume on this machine, or may have it; by default none. */
  readonly holdersOf?: (volume: VolumeId) => ReadonlySet<PodUid>;
  /** Nobody says anything where there is none. */
  readonly standing?: StandingWords | undefined;
}

/** One volume of one pod, and what it came to. */
interface Item {
  readonly pod: Stamped<Pod>;
  readonly volumeName: string;
  readonly resolved: Result<Resolved>;
  readonly subpaths: readonly Subpath[];
}

/** A publication while the volumes are gathered. */
interface GrowingPublication {
  readonly publication: DesiredPublication;
  /** The volume's name in the pod. */
  readonly volumeName: string;
  /** The driver asks for tokens of this pod, and there are none. */
  readonly tokenless: Failure | undefined;
}

interface Growing extends Pick<DesiredVolume, 'spec' | 'secrets' | 'blocked' | 'size'> {
  readonly places: Map<PublicationKey, GrowingPublication>;
}

/**
 * Guarantees: the same wish, with the same holders, gives the same state, whatever the order of its objects; what
 * cannot be resolved freezes its own pod and nothing else; of two pods that want one volume in different ways one that
 * has it already is served, else the one with the lower uid, and the other is unresolved.
 */
export function* desire(desired: DesiredObjects, options: DesireOptions): Sliced<DesiredState> {
  const growing = new Map<VolumeId, Growing>();
  const unresolved: UnresolvedVolume[] = [];
  const items = yield* resolveAll(desired, options);
  const owners = yield* ownersOf(items, options.holdersOf ?? (() => new Set()));
  for (const item of items) {
    yield;
    const { pod, volumeName, resolved } = item;
    const added = resolved.ok ? add(growing, owners, item, resolved.value) : resolved;
    const wanted = resolved.ok ? { spec: resolved.value.spec } : {};
    if (!added.ok) unresolved.push({ pod: pod.reference, volumeName, failure: added.failure, ...wanted });
  }
  const volumes = new Map<VolumeId, DesiredVolume>();
  const attachments = new Map<VolumeId, AttachmentWord>(yield* attachmentWords(desired, options.nodeName));
  const uids = new Map(yield* attachmentUids(desired, options.nodeName));
  for (const [id, volume] of growing) {
    const standing = needsNoAttach(volume) ? undefined : options.standing?.wordOf(id);
    if (standing?.word !== undefined && attachments.get(id)?.lost !== true)
      attachments.set(id, standing.word);
    if (standing?.uid !== undefined) uids.set(id, [standing.uid]);
    const finished = finish(volume, attachments.get(id), unresolved);
    volumes.set(id, standing?.said === undefined ? finished : { ...finished, attachment: standing.said });
    yield;
  }
  // What no pod wants any more may be another node's by now as well.
  for (const id of options.standing?.standing() ?? []) {
    if (growing.has(id)) continue;
    const said = options.standing?.wordOf(id);
    if (said?.word?.lost === true) attachments.set(id, said.word);
    if (said?.uid !== undefined) uids.set(id, [said.uid]);
    yield;
  }
  return {
    complete: desired.complete,
    volumes,
    frozenPods: new Set<PodUid>([...desired.frozenPods, ...unresolved.map(({ pod }) => pod.uid)]),
    unknownOrigins: desired.unknownOrigins,
    doubt: desired.doubt,
    unresolved,
    outOfService: desired.nodes.get(options.nodeName)?.outOfService ?? false,
    lostAttachments: new Set([...attachments].flatMap(([id, { lost }]) => (lost ? [id] : []))),
    attachmentUids: uids,
  };
}

/** By what the cluster says of its driver: what is found on a disk without a record does not tell. */
function needsNoAttach({ spec }: Pick<Growing, 'spec'>): boolean {
  return spec.kind === 'csi' && spec.attachRequired === false;
}

/** Every volume of every pod, in the order of the pods' uids. */
function* resolveAll(desired: DesiredObjects, options: DesireOptions): Sliced<readonly Item[]> {
  const allocatable = { ...options.capacity, ...desired.nodes.get(options.nodeName)?.allocatable };
  const bindings = yield* createBindings({
    ...desired,
    refuseMissing: (identity, whose) => refuseMissing(desired, identity, { whose }),
  });
  const sources = { desired, allocatable, bindings, options };
  const items: Item[] = [];
  const pods = yield* sorted(desired.pods.values(), (a, b) => compareText(a.reference.uid, b.reference.uid));
  for (const pod of pods) {
    for (const volume of pod.volumes) {
      const subpaths = subpathsOf(desired, pod, volume.name);
      const resolved = subpaths.ok ? resolveVolume(sources, pod, volume) : subpaths;
      items.push({ pod, volumeName: volume.name, resolved, subpaths: subpaths.ok ? subpaths.value : [] });
      yield;
    }
  }
  return items;
}

/** By whose wish each volume goes where pods differ: a pod that runs must not lose it to one that comes. */
function* ownersOf(
  items: readonly Item[],
  holdersOf: (volume: VolumeId) => ReadonlySet<PodUid>,
): Sliced<ReadonlyMap<VolumeId, Wanted>> {
  const owners = new Map<VolumeId, Wanted>();
  // As of one moment for each volume, however many slices its pods are in.
  const holdersBy = new Map<VolumeId, ReadonlySet<PodUid>>();
  for (const { pod, resolved } of items) {
    yield;
    if (!resolved.ok) continue;
    const { spec } = resolved.value;
    const owner = owners.get(spec.id);
    if (owner !== undefined) {
      const holders = holdersBy.get(spec.id) ?? holdersOf(spec.id);
      holdersBy.set(spec.id, holders);
      if (holders.has(owner.pod.uid) || !holders.has(pod.reference.uid)) continue;
    }
    owners.set(spec.id, { spec, pod: pod.reference });
  }
  return owners;
}

/** One volume for the node, one publication for the pod: a claim used twice in a pod is one place. */
function add(
  growing: Map<VolumeId, Growing>,
  owners: ReadonlyMap<VolumeId, Wanted>,
  { pod, volumeName, subpaths: parts }: Item,
  resolved: Resolved,
): Result<void> {
  const { spec, secrets, blocked, size, specName, generation, files, tokens } = resolved;
  const known = growing.get(spec.id);
  const owner = owners.get(spec.id);
  if (owner !== undefined && owner.spec !== spec) {
    const conflict = conflictOf(owner, { spec, pod: pod.reference });
    if (conflict !== undefined) return conflict;
  }
  const volume = known ?? {
    spec,
    secrets,
    blocked,
    size,
    places: new Map<PublicationKey, GrowingPublication>(),
  };
  const key = publicationKey(pod.reference.uid, specName);
  const twin = volume.places.get(key)?.publication;
  const readOnly = resolved.readOnly && (twin?.spec.readOnly ?? true);
  const subpaths = hasParts(spec) ? [...(twin?.spec.subpaths ?? []), ...parts] : [];
  volume.places.set(key, {
    publication: {
      ...namesOf(specName, volumeName, twin),
      spec: {
        ...{ key, pod: pod.reference, specName, readOnly, ...fsGroupOf(pod, spec), origin: pod.origin },
        ...(subpaths.length === 0 ? {} : { subpaths }),
      },
      generation,
      files,
      tokens: tokens?.kind === 'tokens' ? tokens.json : undefined,
      ...(resolved.hasDifferentLabels === true ? { hasDifferentLabels: true as const } : {}),
    },
    volumeName,
    tokenless: tokens?.kind === 'none' ? tokens.failure : undefined,
  });
  growing.set(spec.id, volume);
  return ok(undefined);
}

/** A device has none, and what is not mounted here has none here. */
function hasParts(spec: VolumeSpec): boolean {
  return !isDevice(spec) && imageOf(spec) === undefined;
}

/** Nothing for the many volumes that are called alike on both sides. */
function namesOf(
  specName: string,
  volumeName: string,
  twin: DesiredPublication | undefined,
): Pick<DesiredPublication, 'volumeNames'> {
  if (twin === undefined && specName === volumeName) return {};
  const before = twin === undefined ? [] : (twin.volumeNames ?? [specName]);
  return { volumeNames: [...before, volumeName] };
}

/** The pod's own files get it; what the host has, and devices, keep their owner (kubelet). Whether, says the driver. */
function fsGroupOf({ fsGroup }: Pod, spec: VolumeSpec): Pick<PublicationSpec, 'fsGroup'> {
  if (fsGroup === undefined || traitsOf(spec).isInPlace === true) return {};
  return isDevice(spec) ? {} : { fsGroup };
}

/**
 * A volume that no pod has tokens for is blocked; one that some have them for is theirs, and the other pods' is
 * unresolved: one pod without tokens must not hold up its neighbours, nor lose what it has mounted already.
 */
function finish(
  growing: Growing,
  attachment: AttachmentWord | undefined,
  unresolved: UnresolvedVolume[],
): DesiredVolume {
  const { spec, secrets, size } = growing;
  const places = [...growing.places];
  const served = places.filter(([, { tokenless }]) => tokenless === undefined);
  const [tokenless] = places.flatMap(([, place]) => place.tokenless ?? []);
  for (const [, { publication, volumeName, tokenless: failure }] of served.length === 0 ? [] : places) {
    if (failure !== undefined) unresolved.push({ pod: publication.spec.pod, volumeName, failure });
  }
  const kept = served.length === 0 ? places : served;
  const isOnlyRead = kept.every(([, { publication }]) => publication.spec.readOnly);
  return {
    spec,
    secrets,
    publications: new Map(kept.map(([key, { publication }]) => [key, publication])),
    blocked: growing.blocked ?? attachment?.blocked ?? (served.length === 0 ? tokenless : undefined),
    size: size === undefined || !isOnlyRead ? size : { ...size, held: HELD_READ_ONLY },
  };
}
