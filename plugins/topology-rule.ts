/** Which nodes are meant by expressions about their labels. Pure. */
import type { TopologyRule } from './volume.ts';

/** As Kubernetes has it of a node whose labels are all known; `label` undefined: it has none of that key. */
export function isTrueOf({ operator, values }: TopologyRule, label: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return label !== undefined && values.includes(label);
    case 'NotIn':
      return label === undefined || !values.includes(label);
    case 'Exists':
      return label !== undefined;
    case 'DoesNotExist':
      return label === undefined;
    case 'Gt':
      return isGreater(label, values[0]);
    case 'Lt':
      return isGreater(values[0], label);
  }
}

/** False where either is no whole number. */
function isGreater(a: string | undefined, b: string | undefined): boolean {
  const [left, right] = [wholeNumber(a), wholeNumber(b)];
  return left !== undefined && right !== undefined && left > right;
}

/** As Go's strconv.ParseInt has it, of base 10 and 64 bits. */
function wholeNumber(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?[0-9]{1,64}$/.test(text)) return undefined;
  const number = text.startsWith('+') ? BigInt(text.slice(1)) : BigInt(text);
  return BigInt.asIntN(64, number) === number ? number : undefined;
}

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

/** The words about a rule that does not hold: what a nodeAffinity wants. */
export function wordsOf(rule: TopologyRule | undefined): string {
  return rule === undefined
    ? 'has no rules'
    : `wants ${rule.key} ${rule.operator} ${rule.values.join(', ')}`.trim();
}
