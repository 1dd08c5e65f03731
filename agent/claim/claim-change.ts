/** All that a node has to write on one claim, as one change of its status. Pure. */
import { CLAIM_PROTECTION, isHeldBack } from '../../kubernetes/fields/protection.ts';
import type { PodUid } from '../../plugins/volume.ts';
import { conditionsIn, isMarkedBy, withMark, withoutMark } from './claim-mark.ts';
import { type GrowthFacts, growthChange, type StatusChange } from './growth-report.ts';

/** Why one writes. */
export interface ClaimFacts {
  readonly nodeName: string;
  /** As Kubernetes writes a time. */
  readonly wall: string;
  /** Pods that may only have it when it is sure to stay. */
  readonly pods: readonly PodUid[];
  /** Nothing of its volume is here any more. */
  readonly isGone: boolean;
  /** Undefined when no pod here wants its volume. */
  readonly growth: GrowthFacts | undefined;
}

/** Undefined: nothing. */
export function claimChange(
  claim: Readonly<Record<string, unknown>>,
  { nodeName, wall, pods, isGone, growth }: ClaimFacts,
): StatusChange | undefined {
  const before = conditionsIn(claim);
  const grown = growth === undefined ? undefined : growthChange(claim, before, growth, wall);
  const { conditions = before, ...others } = (grown ?? {}) as { readonly conditions?: typeof before };
  const isMarkedAnew = pods.length > 0 && isHeldBack(claim, CLAIM_PROTECTION);
  const isUnmarked = !isMarkedAnew && isGone && isMarkedBy(nodeName, claim);
  if (isMarkedAnew) return { ...others, conditions: withMark(conditions, { nodeName, pods, wall }) };
  return isUnmarked ? { ...others, conditions: withoutMark(conditions) } : grown;
}
