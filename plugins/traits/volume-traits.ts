/** What a kind of volume is like. Each folder of a kind declares its own, so that no floor above has to name it. */
import type { AbsolutePath } from '../../mount/host.ts';
import type { Layout, PodFolders } from '../layout/layout.ts';
import type { PlaceInPod } from '../layout/place-in-pod.ts';
import type { VolumeDataOwner } from '../layout/volume-data-text.ts';
import type {
  AccessMode,
  CsiVolumeSpec,
  PluginName,
  PodUid,
  VolumeMode,
  VolumeSpec,
  WantedImage,
} from '../volume.ts';

/** What becomes of one field of a specification when the wish changes under a volume that stands. */
export interface FieldRule<Spec> {
  /** Staging fixes it: it stays as it was told until the volume is down. Absent: it is about the next pod only. */
  fixed?(spec: Spec): boolean;
  /** It decides where on disk the volume is, so it is known of a volume that was found there. */
  readonly place?: true;
  /** A pod that comes cannot have a volume that stands like this and is wanted otherwise. */
  excludes?(standing: Spec): boolean;
  /** Pods that want it otherwise can have the volume one after the other. Absent: one of them is wrong for good. */
  readonly inTurn?: true;
  /** The driver says it of all its volumes, so no two pods can want it otherwise at one time. */
  readonly ofDriver?: true;
  /** The value with all ways to write it made one. */
  meaning?(spec: Spec): unknown;
  /** What people call it; absent: the name of the field. */
  readonly title?: string;
}

/** Every field but the identity, in the order in which people are told of them. */
export type FieldTable<Spec> = {
  readonly [Field in Exclude<keyof Spec, 'kind' | 'id'>]-?: FieldRule<Spec>;
};

export interface VolumeTraits<Spec extends VolumeSpec = VolumeSpec> {
  readonly kind: Spec['kind'];
  /** The kubelet's name for it; its volumes' ids begin with it, and its directories in pods are called by it. */
  readonly plugin: PluginName;
  /** The one list of what staging fixes, and of what makes another try worth while. */
  readonly fields: FieldTable<Spec>;
  /** More pods than one can have it, so what is wanted of it can change while it stands. */
  readonly isShared: boolean;
  /** What is in it is gone for good when it is taken down. */
  readonly isDataLost?: true;
  /** A marker of the kubelet's tells that it was set up: its own, or that of the directory it wraps. */
  readonly marker?: 'own' | 'wrapped';
  /** It has files that the wish brings: a start does not know their generation and has to look at them. */
  readonly hasContent?: true;
  /** The pod sees it where it is on this machine anyway: no mount is made for it. */
  readonly isInPlace?: true;
  /**
   * How its mount is told from a stranger's: by the kind of device that its driver mounts, or by its plugin alone,
   * because it may be on anything. Absent: by our label, for what is mounted is a tmpfs of ours.
   */
  readonly mountToldBy?: 'device' | 'plugin';
  /** Pods have a directory of ours: nothing is ever mounted there. */
  isPlain?(spec: Spec): boolean;
  /** The image whose files it is: what starts the containers mounts them, and there is no path to them here. */
  image?(spec: Spec): WantedImage;
  /** Who is asked to set it up; undefined: it is done here, and no call can take effect late. */
  driver?(spec: Spec): string | undefined;
  /** Where it is staged for all of its pods; absent: it has no such place. */
  stagingPath?(spec: Spec, layout: Layout): AbsolutePath | undefined;
  /** The directory of what it has on this node for all of its pods, with the paper that tells of it. */
  stagingDirectory?(spec: Spec, layout: Layout): AbsolutePath;
  /** Where the directories lie in which its volumes are staged, each called by its volume. */
  readonly stages?: NamedStages<Spec>;
  /** Pods have a device of it and not files. */
  isDevice?(spec: Spec): boolean;
  /** Where what pods have of its devices lies, each called by its volume; absent: papers tell whose they are. */
  readonly devices?: NamedDevices<Spec>;
  /** How its file system is to be, when that may die by itself; undefined: it has none that is looked at. */
  fileSystem?(spec: Spec): FileSystemTerms | undefined;
  /** What people call it; absent: they know it by its id. */
  shownName?(spec: Spec): string;
  /** What it is called where its id is shown beside: by its object, its pod, its driver, or where it was found. */
  name(spec: Spec): string;
  /** What its driver calls it; absent: it has none. */
  handle?(spec: Spec): string;
  /** The PersistentVolume it is of, by name; absent or undefined: of none. */
  persistentVolume?(spec: Spec): string | undefined;
  /** How it may be used, by the wish; absent: the wish does not say. */
  accessModes?(spec: Spec): readonly AccessMode[];
  /** One pod at a time has it. */
  isForOnePod?(spec: Spec): boolean;
  /** It is written in its pod: unpublished once, it has ended, and it is never attached. */
  isInline?(spec: Spec): boolean;
  /** Where it was found, if nobody wanted it. It can only be taken down. */
  orphanPath?(spec: Spec): AbsolutePath;
  /** As it is recorded now: with what records of older versions lack. */
  completed?(spec: Spec): Spec;
  /** Only its staging directory tells of it: not even its name is known. */
  isNameless?(spec: Spec): boolean;
  /** Where in a pod its mount is; absent: in the volume's directory there. */
  foundTarget?(place: PlaceInPod, layout: Layout): AbsolutePath;
  /** As its place in a pod tells, where that is all that tells of it. */
  fromPlace?(place: FoundPlace): Spec;
  /** As its paper tells, the kubelet's vol_data.json: the rest matters on the way up only. */
  fromPaper?(data: VolumeDataOwner, specName: string, mode: VolumeMode): Spec;
  /** A mount, or what is left of one, that nothing explains. */
  fromMount?(path: AbsolutePath): Spec;
}

/** What tells whether a file system may be read-only though nothing has happened to it. */
export type FileSystemTerms = Pick<CsiVolumeSpec, 'accessModes' | 'mountOptions' | 'readOnly'>;

/**
 * Directories that tell by their names alone which volume is staged there. A kind without `fromPlace` and `fromPaper`
 * is known in a pod by what is staged of the same file system.
 */
export interface NamedStages<Spec> {
  directory(layout: Layout): AbsolutePath;
  /** They lie one directory deeper: a name has that of its directory before it, and a slash between. */
  readonly isGrouped?: true;
  /** Undefined: no volume's name. */
  fromName(name: string): Spec | undefined;
}

/** Directories that tell by their names alone which pods have a device of which volume. */
export interface NamedDevices<Spec> {
  directory(layout: Layout): AbsolutePath;
  fromName(name: string): Spec;
  /** What pods hold of one, each called by the uid of its pod. */
  ofVolume(name: string, layout: Layout): AbsolutePath;
  /** The links of a pod. */
  links(folders: PodFolders): AbsolutePath;
}

/** What is in a pod's directory of a volume of which nothing else is known. */
export interface FoundPlace {
  readonly pod: PodUid;
  readonly name: string;
  readonly isMounted: boolean;
}
