/** An expression about labels, as selectors of nodes and of objects have it (ValidateNodeSelectorRequirement). */
import type { FieldReader } from './field-reader.ts';

/** What does not fit the operator is refused, as by the API server. `key`: what its key is, for people. */
export function readLabelRule<T extends string>(
  rule: FieldReader,
  {
    key,
    operators,
    standIn,
  }: { readonly key: string; readonly operators: readonly T[]; readonly standIn: T },
): { readonly key: string; readonly operator: T; readonly values: readonly string[] } {
  const operator = rule.key('operator');
  return {
    key: rule.key('key').requiredText((text) => text !== '', key),
    operator: operator.requiredOneOf(operators, standIn),
    // Where there is no operator, nothing is known that the values have to fit.
    values: readValues(rule.key('values'), operator.text() ?? ''),
  };
}

function readValues(values: FieldReader, operator: string): readonly string[] {
  const read = values.list().map((one) => one.requiredText(() => true, 'a string'));
  if ((operator === 'In' || operator === 'NotIn') && read.length === 0)
    values.refuse(`is missing or empty; expected at least one value for ${operator}`);
  if ((operator === 'Exists' || operator === 'DoesNotExist') && read.length > 0)
    values.refuse(`has values; expected none with ${operator}`);
  if ((operator === 'Gt' || operator === 'Lt') && read.length !== 1)
    values.refuse(`has ${read.length} values; expected exactly one value for ${operator}`);
  return read;
}
