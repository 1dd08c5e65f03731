/** The shape of the document of /v1/pods/<pod>/mounts, version mooring/v1 (docs/API.md): what each container sees. */
import type { ContainerKind, MountPropagation } from '../../kubernetes/objects/container.ts';
import type { Reason, VolumeState } from '../status/volume-status.ts';

/** One place in a container, of files or of a device. */
export interface PlaceInContainer {
  /** The volume's name in the pod. */
  readonly volume: string;
  /** Absolute, exact to the byte. */
  readonly containerPath: string;
  /**
   * What is to be bound there: absolute, exact to the byte, never a path at which the volume may not be yet. Null: it
   * is not ready, and `sentence` says why; or it is an image.
   */
  readonly hostPath: string | null;
  readonly readOnly: boolean;
  readonly state: VolumeState;
  /** Null when it is ready to be bound. */
  readonly sentence: string | null;
  /** What is in the way of the volume; null when nothing is known to be. */
  readonly reason: Reason | null;
}

export interface ContainerMount extends PlaceInContainer {
  /** What is mounted below is read-only as well: `if-possible` where the runtime can, `required` or not at all. */
  readonly recursiveReadOnly: 'no' | 'if-possible' | 'required';
  readonly propagation: MountPropagation;
  /** The part of the volume that is meant, as written: a `subPath` or `subPathExpr`. Null: all of it. */
  readonly subPath: string | null;
  /** The image that what starts the container has to mount there, read-only: nothing of it is on this node. */
  readonly image: { readonly reference: string; readonly pullPolicy: string } | null;
}

/** The label that the pod states for the container; null: not written. */
export interface StatedLabel {
  readonly user: string | null;
  readonly role: string | null;
  readonly type: string | null;
  readonly level: string | null;
}

export interface ContainerMounts {
  readonly name: string;
  readonly kind: ContainerKind;
  readonly seLinux: StatedLabel | null;
  readonly mounts: readonly ContainerMount[];
  readonly devices: readonly PlaceInContainer[];
}

export interface MountsDocument {
  readonly apiVersion: 'mooring/v1';
  readonly kind: 'Mounts';
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Every place of every container is ready: it is there, or what starts the container mounts it. */
  readonly ready: boolean;
  readonly containers: readonly ContainerMounts[];
}
