/** The values of an expression about labels, which have to fit its operator (ValidateNodeSelectorRequirement). */
import type { FieldReader } from './field-reader.ts';

/** `values` as they stand, each a string. What does not fit is refused, as by the API server. */
export function readRuleValues(values: FieldReader, operator: string): readonly string[] {
  const read = values.list().map((one) => one.requiredText(() => true, 'a string'));
  if ((operator === 'In' || operator === 'NotIn') && read.length === 0)
    values.refuse(`is missing or empty; expected at least one value for ${operator}`);
  if ((operator === 'Exists' || operator === 'DoesNotExist') && read.length > 0)
    values.refuse(`has values; expected none with ${operator}`);
  if ((operator === 'Gt' || operator === 'Lt') && read.length !== 1)
    values.refuse(`has ${read.length} values; expected exactly one value for ${operator}`);
  return read;
}
