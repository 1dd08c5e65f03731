/** Can this node reach the volume? As far as the driver's own topology says (CSI NodeGetInfo; A-052). */
import { done, fail, type Result } from '../../../mount/failure.ts';
import { brokenRules, isTrueOf, wordsOf } from '../../topology-rule.ts';
import type { CsiVolumeSpec, TopologyRule } from '../../volume.ts';
import type { DriverInstance } from './driver.ts';

/** Names of the node itself, in expressions and in matchFields. */
const NODE_KEYS = ['kubernetes.io/hostname', 'metadata.name'] as const;

/**
 * `wrong-topology` when no term can hold here. Keys that neither the driver nor the node's name answers are not judged:
 * nobody else knows the node's labels. Keys are compared without case, as CSI has them.
 */
export function reachableFrom(
  spec: CsiVolumeSpec,
  driver: Pick<DriverInstance, 'topology'>,
  nodeName: string,
): Result<void> {
  const terms = spec.reachableFrom;
  if (terms === undefined) return done;
  const labels = new Map<string, string>(NODE_KEYS.map((key) => [key, nodeName]));
  for (const [key, value] of Object.entries(driver.topology)) labels.set(key.toLowerCase(), value);
  const broken = brokenRules(terms, (rule) => mayHold(rule, labels));
  if (broken === undefined) return done;
  const [rule] = broken;
  const here = labels.get(rule?.key.toLowerCase() ?? '') ?? 'nothing';
  const message =
    `the volume cannot be reached from this node: its nodeAffinity ${wordsOf(rule)}, ` +
    `and the driver says ${here}`;
  return fail({
    code: 'wrong-topology',
    message,
    effect: 'none',
    blocker: spec.driver,
  });
}

function mayHold(rule: TopologyRule, labels: ReadonlyMap<string, string>): boolean {
  const label = labels.get(rule.key.toLowerCase());
  return label === undefined || isTrueOf(rule, label);
}
