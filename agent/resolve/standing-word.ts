/** What is said of a volume that stands here by whoever attaches it for this node. */
import type { AttachmentSaid } from '../../reconciler/model/desired-state.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { AttachmentWord } from './attachment.ts';

export interface StandingWord {
  /** Why nothing new of it is set up, or that what stands is lost; undefined while all is well. */
  readonly word: AttachmentWord | undefined;
  /** The attachment that there is now; undefined where none is, or that is not known. */
  readonly uid: string | undefined;
  /** What that attachment says of the volume; undefined where it does not grant it. */
  readonly said?: AttachmentSaid | undefined;
}

/** Whoever attaches for this machine, asked about what stands here. */
export interface StandingWords {
  /** What somebody else may have taken from this node, or have here beside a call of ours, wanted by a pod or not. */
  standing(): readonly VolumeId[];
  /** Undefined of any other, and where it is none of his. */
  wordOf(volume: VolumeId): StandingWord | undefined;
}
