/** The mark on a claim that is being deleted: pods of this node are about to have its volume. Pure. */
import type { ApiFailure } from '../../kubernetes/api/api-failure.ts';
import { isMapping, mappingIn } from '../../kubernetes/fields/plain-value.ts';

type Json = Readonly<Record<string, unknown>>;

/** A type of our own: conditions are what a node may write of a claim (NodeRestriction). */
const IN_USE = 'mooring.dev/InUse';

/** The mark was taken, and is not there. */
export const KEPT_AS_IT_WAS: ApiFailure = {
  code: 'failed',
  message: 'it keeps the claim as it was: does an admission webhook change what is written?',
  effect: 'none',
};

export function conditionsIn(claim: Json): readonly Json[] {
  const { conditions } = mappingIn(claim['status']);
  return Array.isArray(conditions) ? conditions.filter(isMapping) : [];
}

/** Another node may have marked it since: one type of condition is there once. */
export function isMarkedBy(nodeName: string, claim: Json): boolean {
  return conditionsIn(claim).some((one) => isMark(one) && one['reason'] === nodeName);
}

/**
 * `pods`: by uid, so that a mark for another pod is another one, and makes a new version of the claim. `wall`: as
 * Kubernetes writes a time.
 */
export function withMark(
  conditions: readonly Json[],
  {
    nodeName,
    pods,
    wall,
  }: { readonly nodeName: string; readonly pods: readonly string[]; readonly wall: string },
): readonly Json[] {
  const before = conditions.find(isMark);
  const mark = {
    type: IN_USE,
    status: 'True',
    reason: nodeName,
    message: `volumes of pods are set up: ${pods.toSorted().join(', ')}`,
    lastProbeTime: wall,
    lastTransitionTime: before?.['lastTransitionTime'] ?? wall,
  };
  return [...conditions.filter((one) => !isMark(one)), mark];
}

export function withoutMark(conditions: readonly Json[]): readonly Json[] {
  return conditions.filter((one) => !isMark(one));
}

function isMark({ type }: Json): boolean {
  return type === IN_USE;
}
