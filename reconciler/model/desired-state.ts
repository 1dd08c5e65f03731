/** What should be: built by the agent floor from the wish, read by the planner. */
import type { Failure } from '../../mount/failure.ts';
import type { PublishContext, VolumeFiles, VolumeSecrets } from '../../plugins/plugin.ts';
import type { Sensitive } from '../../plugins/secret/sensitive.ts';
import {
  type Bytes,
  podOf,
  type PodReference,
  type PodUid,
  type PublicationKey,
  type PublicationSpec,
  type VolumeId,
  type VolumeSpec,
} from '../../plugins/volume.ts';

export interface DesiredPublication {
  readonly spec: PublicationSpec;
  /** What the pod calls it: a claim that it names twice is one place. Absent: as `specName`. */
  readonly volumeNames?: readonly string[];
  /** Changes when the published content should; empty for kinds without content. Not derived from secret bytes. */
  readonly generation: string;
  readonly files: VolumeFiles | undefined;
  /** JSON of the service account tokens the driver asked for; undefined when it asks for none. */
  readonly tokens: Sensitive<string> | undefined;
  /** It could be mounted with a label of SELinux, and is not, because the containers of the pod have different ones. */
  readonly hasDifferentLabels?: true;
}

/** How large a volume is to be on this node. */
export interface WantedSize {
  readonly bytes: Bytes;
  /** What it was said to have when last seen; undefined: nobody says, so it is taken to have what is wanted. */
  readonly knownBytes: Bytes | undefined;
  /** Why it is not grown although it could be: read-only, refused by the cluster, not needed on the node. */
  readonly held: string | undefined;
  /** That a claim asks for more than that, for people; undefined when none does. */
  readonly claimLarger?: string | undefined;
}

/** A volume's attachment by its uid. What it says may be confidential. */
export interface AttachmentSaid {
  readonly uid: string;
  readonly publishContext: PublishContext;
}

export interface DesiredVolume {
  readonly spec: VolumeSpec;
  readonly secrets: VolumeSecrets;
  readonly publications: ReadonlyMap<PublicationKey, DesiredPublication>;
  /** Wanted, but not to be climbed yet (a secret is missing, say); nothing of it is torn down either. */
  readonly blocked: Failure | undefined;
  /** By which it may be here now, and what that says of it; undefined: there is none, or it is not known. */
  readonly attachment?: AttachmentSaid | undefined;
  /** Undefined for a volume of no known size. */
  readonly size: WantedSize | undefined;
}

/** A volume of a pod that could not be resolved to a VolumeSpec. */
export interface UnresolvedVolume {
  readonly pod: PodReference;
  readonly volumeName: string;
  readonly failure: Failure;
  /** What it would be if another pod did not want the same volume otherwise; undefined where that is not why. */
  readonly spec?: VolumeSpec;
}

export interface DesiredState {
  /** False until every source has been listed once after start; nothing is torn down before (INV-15). */
  readonly complete: boolean;
  readonly volumes: ReadonlyMap<VolumeId, DesiredVolume>;
  /** Unknown is not unwanted: for these pods nothing is torn down. */
  readonly frozenPods: ReadonlySet<PodUid>;
  /** Sources that cannot be read now: publications that came from them are frozen too. */
  readonly unknownOrigins: ReadonlySet<string>;
  /**
   * Pods that nobody wants, as far as is known, and that are kept as they are for a time all the same: nothing of them
   * is torn down, nothing new is set up. Each with the reason.
   */
  readonly heldPods?: ReadonlyMap<PodUid, Failure>;
  /** Why it is not known at all now what is wanted; what is deleted for good waits until it is. */
  readonly doubt?: Failure | undefined;
  readonly unresolved: readonly UnresolvedVolume[];
  /** The node carries the mark `node.kubernetes.io/out-of-service`: its CSI volumes were given to others (KEP-2268). */
  readonly outOfService: boolean;
  /**
   * The cluster says that these are not attached to this node: one of which something stands here goes into
   * quarantine (B-2). What is wanted of them is `blocked`, so that nothing is set up where nothing stands.
   */
  readonly lostAttachments: ReadonlySet<VolumeId>;
  /**
   * The uids of the attachments by which they are here, the one to set up under first; those of which nobody says one
   * are missing. Something stands and was set up under another: quarantine (FN-01).
   */
  readonly attachmentUids: ReadonlyMap<VolumeId, readonly string[]>;
}

export const NOTHING_KNOWN: DesiredState = {
  complete: false,
  volumes: new Map(),
  frozenPods: new Set(),
  unknownOrigins: new Set(),
  unresolved: [],
  outOfService: false,
  lostAttachments: new Set(),
  attachmentUids: new Map(),
};

type WantedVolumes = DesiredState['volumes'];

/** What is wanted, by where it is to be. */
interface WishIndex {
  readonly places: ReadonlyMap<PublicationKey, readonly DesiredVolume[]>;
  readonly pods: ReadonlyMap<PodUid, readonly PublicationKey[]>;
}

/** Made once for each wish: many ask, one place after the other. */
const indices = new WeakMap<WantedVolumes, WishIndex>();

/** The volumes that are wanted in a place; of two the manifests contradict each other. */
export function wantedAt(volumes: WantedVolumes, place: PublicationKey): readonly DesiredVolume[] {
  return indexOf(volumes).places.get(place) ?? [];
}

/** Any volume is wanted for it. */
export function isPodWanted(volumes: WantedVolumes, pod: PodUid): boolean {
  return indexOf(volumes).pods.has(pod);
}

/** Where the pod is to have its volumes. */
export function placesOf(volumes: WantedVolumes, pod: PodUid): readonly PublicationKey[] {
  return indexOf(volumes).pods.get(pod) ?? [];
}

/** The pods with volumes that could not be resolved: made once for each wish, too. */
const unresolvedPods = new WeakMap<readonly UnresolvedVolume[], ReadonlySet<PodUid>>();

/** Something that the pod wants could not be resolved. */
export function isUnresolved(unresolved: readonly UnresolvedVolume[], pod: PodUid): boolean {
  const known = unresolvedPods.get(unresolved) ?? new Set(unresolved.map((one) => one.pod.uid));
  unresolvedPods.set(unresolved, known);
  return known.has(pod);
}

function indexOf(volumes: WantedVolumes): WishIndex {
  const known = indices.get(volumes);
  if (known !== undefined) return known;
  const places = new Map<PublicationKey, DesiredVolume[]>();
  for (const volume of volumes.values()) {
    for (const place of volume.publications.keys()) {
      const there = places.get(place);
      if (there === undefined) places.set(place, [volume]);
      else there.push(volume);
    }
  }
  const pods = new Map<PodUid, PublicationKey[]>();
  for (const place of places.keys()) {
    const pod = podOf(place);
    const before = pods.get(pod);
    if (before === undefined) pods.set(pod, [place]);
    else before.push(place);
  }
  const index: WishIndex = { places, pods };
  indices.set(volumes, index);
  return index;
}
