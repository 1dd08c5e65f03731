/** Which nodes a nodeSelector means, by their labels. Pure. */
import type { TopologyRule } from '../../plugins/volume.ts';

/** The first rule of each term that does not hold; undefined: the node is meant. Empty: no term has any rule. */
export function brokenRules(
  terms: readonly (readonly TopologyRule[])[],
  holds: (rule: TopologyRule) => boolean,
): readonly TopologyRule[] | undefined {
  // A term without rules selects no node.
  const judged = terms.filter((rules) => rules.length > 0).map((rules) => rules.find((rule) => !holds(rule)));
  const broken = judged.filter((rule) => rule !== undefined);
  return broken.length < judged.length ? undefined : broken;
}
