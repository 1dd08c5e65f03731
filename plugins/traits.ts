/** What a kind of volume is like. Each folder of a kind declares its own, so that no floor above has to name it. */
import type { VolumeSpec } from './volume.ts';

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
  /** The one list of what staging fixes, and of what makes another try worth while. */
  readonly fields: FieldTable<Spec>;
  /** More pods than one can have it, so what is wanted of it can change while it stands. */
  readonly isShared: boolean;
}
