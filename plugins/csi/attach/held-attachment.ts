/** The rung `attach` where attaching is the business of somebody with whom this node does not speak yet. */
import { fail } from '../../../mount/failure.ts';
import type { Attachment } from './attachment.ts';

/**
 * In a cluster its attach/detach controller attaches, and this node has to tell it what is in use before it stages
 * anything, which it does not do yet. So a volume that has to be attached is held, and nothing of it is begun. What
 * `called` has attached in an earlier life, without a cluster, is detached by it.
 */
export function holdAttachments(called: Attachment): Attachment {
  return {
    isNeeded: ({ attachRequired }) => attachRequired !== false,
    async attach({ driver }) {
      const message =
        `volumes of driver ${driver} are to be attached by the controller of the cluster, which this version does ` +
        'not work with yet: only drivers are served whose CSIDriver object says attachRequired: false';
      return fail({ code: 'not-attached', message, effect: 'none', blocker: `CSIDriver ${driver}` });
    },
    detach: called.detach,
  };
}
