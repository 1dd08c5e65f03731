/** What a node gives to its pods, as far as a container's missing limit means it (kubelet: node allocatable). */
import type { FieldReader } from './field-reader.ts';
import { parseThousandths, wholeUnits } from './quantity.ts';

export type NodeResource = 'cpu' | 'memory' | 'ephemeral-storage';

/** Processors in thousandths of one, the others in bytes; what is not named is not known. */
export type NodeResources = Readonly<Partial<Record<NodeResource, bigint>>>;

const RIGHT_AMOUNT = 'an amount that is not negative, such as 500m or 64Mi';

/** `status.allocatable` of a Node, or another mapping of the kind. */
export function readNodeResources(reader: FieldReader): NodeResources {
  const amounts: Partial<Record<NodeResource, bigint>> = {};
  for (const resource of ['cpu', 'memory', 'ephemeral-storage'] as const) {
    const amount = readAmount(reader.key(resource), resource);
    if (amount !== undefined) amounts[resource] = amount;
  }
  return amounts;
}

/** In the resource's unit, rounded up; undefined when it is not written, or refused. */
export function readAmount(reader: FieldReader, resource: string): bigint | undefined {
  const text = reader.scalarText(RIGHT_AMOUNT);
  if (text === undefined) return undefined;
  const thousandths = parseThousandths(text);
  if (thousandths === undefined) reader.refuse(`expected ${RIGHT_AMOUNT}, found ${reader.shown()}`);
  return thousandths === undefined || resource === 'cpu' ? thousandths : wholeUnits(thousandths);
}
