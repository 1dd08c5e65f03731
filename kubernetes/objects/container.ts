/** A container of a pod: what of the pod's volumes it sees, and where. */

/** In which list of the pod's specification it stands. */
export type ContainerKind = 'init' | 'container' | 'ephemeral';

export interface Container {
  readonly name: string;
  readonly kind: ContainerKind;
  readonly mounts: readonly VolumeMount[];
  readonly devices: readonly VolumeDevice[];
  /** Those of `env` that its mounts need, in the order in which they are written; a later one of a name counts. */
  readonly variables: readonly Variable[];
  /** Its own label, or the pod's; undefined when neither is written. */
  readonly seLinux: SeLinuxLabel | undefined;
}

/** Undefined parts have defaults. */
export interface SeLinuxLabel {
  readonly user: string | undefined;
  readonly role: string | undefined;
  readonly type: string | undefined;
  readonly level: string | undefined;
}

/** Whether mounts that are made later, on one side, are seen on the other (mount_namespaces(7)). */
export type MountPropagation = 'None' | 'HostToContainer' | 'Bidirectional';

/** Whether what is mounted below is read-only as well (KEP-3857). */
export type RecursiveReadOnly = 'Disabled' | 'IfPossible' | 'Enabled';

/** A volume of files in a container. */
export interface VolumeMount {
  /** The volume's name in the pod. */
  readonly volume: string;
  /** As written: a path that is not absolute is meant below `/`. */
  readonly path: string;
  readonly readOnly: boolean;
  readonly recursiveReadOnly: RecursiveReadOnly;
  readonly propagation: MountPropagation;
  /** The part of the volume that is meant; undefined: all of it. */
  readonly part: VolumePart | undefined;
}

/** `subPath`, or `subPathExpr`, in which `$(NAME)` stands for a variable of the container. */
export interface VolumePart {
  readonly kind: 'path' | 'expression';
  readonly text: string;
}

/** A raw block device in a container. */
export interface VolumeDevice {
  readonly volume: string;
  /** It is as it was written. */
  readonly path: string;
}

/** A variable of a container that a `subPathExpr` names, or that one of those names. */
export interface Variable {
  readonly name: string;
  readonly value: VariableValue;
}

export type VariableValue =
  /** `$(NAME)` in it stands for a variable that is written before. */
  | { readonly kind: 'expression'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'config-map'; readonly name: string; readonly key: string }
  /** A path cannot be made of it; `why` is for people. */
  | { readonly kind: 'refused'; readonly why: string };
