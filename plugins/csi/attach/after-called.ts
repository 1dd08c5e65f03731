/** Attachments that are granted now, on a node whose earlier life may have made some itself. */
import type { Attachment } from './attachment.ts';

/** What this node attached by its own call is detached by its own call first: nobody else knows of it. */
export function afterCalled(granted: Attachment, called: Attachment): Attachment {
  return {
    isNeeded: (spec) => granted.isNeeded(spec),
    attach: (spec, call) => granted.attach(spec, call),
    async detach(spec, call) {
      if (call.facts.attachedNode !== undefined) {
        const detached = await called.detach(spec, call);
        if (!detached.ok) return detached;
      }
      return granted.detach(spec, call);
    },
  };
}
