/** Planted bugs about what comes anew or late: attachments, and the effects of calls that were given up. */
import { begin } from '../../reconciler/actual-state.ts';
import type { Mutant } from './mutant.ts';
import type { Mutation } from './simulate.ts';
import { aboutReplacedAttachments } from './stories.ts';

/** Whatever attachment there is now is taken for the one that the volume was set up under. */
const takesAttachmentsByName: Mutation = {
  policy: {
    begin: (known, operation, publication) => ({
      ...begin(known, operation, publication),
      attachmentUid: undefined,
    }),
  },
  plan: aboutReplacedAttachments,
};

export const LATE_MUTANTS: readonly Mutant[] = [
  {
    name: 'takes an attachment that was made anew for the one of before',
    caughtBy: ['FN-01'],
    make: () => takesAttachmentsByName,
  },
];
