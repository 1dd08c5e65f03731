/** What is said of a volume that stands here by whoever attaches it for this node. */
import type { AttachmentSaid } from '../../reconciler/model/desired-state.ts';
import type { AttachmentWord } from './attachment.ts';

export interface StandingWord {
  /** Why nothing new of it is set up, or that what stands is lost; undefined while all is well. */
  readonly word: AttachmentWord | undefined;
  /** The attachment that there is now; undefined where none is, or that is not known. */
  readonly uid: string | undefined;
  /** What that attachment says of the volume; undefined where it does not grant it. */
  readonly said?: AttachmentSaid | undefined;
}
