/** Why a Node does not list what is in use here: `in-use-unreported`. */
import type { ApiFailure } from '../../kubernetes/api/api-failure.ts';
import type { Failure } from '../../mount/failure.ts';

export function unreported(why: string): Failure {
  const message = `in-use report not acknowledged: ${why}`;
  return { code: 'in-use-unreported', message, effect: 'unknown', blocker: 'the API server' };
}

/** Written again at once, it would be changed again. */
export const KEPT_OTHERWISE: ApiFailure = {
  code: 'failed',
  message: 'the API server keeps another Node than it was given: does an admission webhook change it?',
  effect: 'none',
};

/** The Node is one that no agent has written on; `why`: what keeps the disk from being read, where that is known. */
export function unreadNode(nodeName: string, why: Failure | undefined): Failure {
  const unread = why === undefined ? 'is still being read' : `cannot be read: ${why.message}`;
  const failure = unreported(`Node ${nodeName} is a new one, and what stands here ${unread}`);
  return { ...failure, blocker: why?.blocker ?? nodeName };
}
