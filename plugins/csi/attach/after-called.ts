/** Attachments that are granted now, on a node whose earlier life may have made some itself. */
import { fail, type Failure } from '../../../mount/failure.ts';
import type { VolumeCall } from '../../plugin.ts';
import type { CsiVolumeSpec } from '../../volume.ts';
import type { Attachment } from './attachment.ts';

/**
 * What this node attached by its own call is detached by its own call first: nobody else knows of it. Where that cannot
 * be made, whoever granted the volume to this node since detaches it, under the node id of today.
 */
export function afterCalled(granted: Attachment, called: Attachment): Attachment {
  const isGrantedToo = (spec: CsiVolumeSpec, { facts }: VolumeCall): boolean =>
    facts.isGranted === true && called.node?.(spec) === facts.attachedNode;

  return {
    isNeeded: (spec) => granted.isNeeded(spec),
    attach: (spec, call) => granted.attach(spec, call),
    async detach(spec, call) {
      if (call.facts.attachedNode !== undefined) {
        const detached = await called.detach(spec, call);
        if (!detached.ok && !isUnasked(detached.failure)) return detached;
        if (!detached.ok && !isGrantedToo(spec, call)) return fail(notGranted(detached.failure));
      }
      return granted.detach(spec, call);
    },
  };
}

/** The driver has no such service; what one answers to a detach leaves the effect unknown. */
function isUnasked({ code, effect }: Failure): boolean {
  return code === 'driver-unimplemented' && effect === 'none';
}

function notGranted(failure: Failure): Failure {
  const unknown = 'the cluster is not known to have attached it under the same node id';
  return { ...failure, message: `${failure.message}, and ${unknown}` };
}
