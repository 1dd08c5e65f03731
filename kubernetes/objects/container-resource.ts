/** What a container may use and asks for, as a volume of the pod shows it (`resourceFieldRef`). */
import type { DownwardValue } from './content-source.ts';
import { type FieldReader, quoted } from '../fields/field-reader.ts';
import { readAmount } from '../fields/node-resource.ts';
import { LABEL_NAME } from '../fields/object-name.ts';
import { dividedUp } from '../fields/quantity.ts';

const RESOURCE = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-[0-9]{1,19}[KMGTPE]i)$/;
const RIGHT_RESOURCE =
  'limits or requests of cpu, memory, ephemeral-storage or hugepages-<size>, such as limits.memory';
/** Processors are counted in thousandths. */
const CPU_DIVISORS: ReadonlySet<bigint> = new Set([1n, 1_000n]);
const RIGHT_CPU_DIVISOR = '1 or 1m';
/** Bytes are divided by 1, and by each prefix of Kubernetes up to E and Ei. */
const BYTES_DIVISORS: ReadonlySet<bigint> = new Set(
  [0n, 1n, 2n, 3n, 4n, 5n, 6n].flatMap((power) => [10n ** (3n * power), 2n ** (10n * power)]),
);
const RIGHT_BYTES_DIVISOR = '1 or a prefix after it, such as 1k, 1M, 1Ki or 1Mi';

/**
 * As the kubelet: rounded up to whole divisors; a limit that is missing or 0 is the node's (not of huge pages: they are
 * never overcommitted), and a request that is missing is the limit. `containers` are those that have resources of their
 * own: not the ephemeral ones.
 */
export function readContainerResource(
  reference: FieldReader,
  containers: readonly FieldReader[],
): DownwardValue {
  const named = reference.key('containerName');
  const name = named.requiredText(...LABEL_NAME);
  const container = containers.find((one) => one.key('name').text() === name);
  if (container === undefined && name !== '')
    named.refuse(`${quoted(name)} is not the name of a container in spec.containers or spec.initContainers`);
  const text = reference.key('resource').requiredText((one) => RESOURCE.test(one), RIGHT_RESOURCE);
  const [, side = '', resource = ''] = RESOURCE.exec(text) ?? [];
  const divisor = readDivisor(reference.key('divisor'), resource);
  if (container === undefined || resource === '') return { kind: 'text', text: '' };
  const amounts = container.key('resources');
  const limit = readAmount(amounts.key('limits').key(resource), resource);
  if (side === 'requests') {
    const request = readAmount(amounts.key('requests').key(resource), resource) ?? limit ?? 0n;
    return { kind: 'text', text: String(dividedUp(request, divisor)) };
  }
  const isOvercommitted = resource === 'cpu' || resource === 'memory' || resource === 'ephemeral-storage';
  if ((limit ?? 0n) === 0n && isOvercommitted) return { kind: 'allocatable', resource, divisor };
  return { kind: 'text', text: String(dividedUp(limit ?? 0n, divisor)) };
}

/** It is in the resource's unit; one that is missing or 0 is 1. */
function readDivisor(reader: FieldReader, resource: string): bigint {
  const isCpu = resource === 'cpu';
  const one = isCpu ? 1_000n : 1n;
  const divisor = readAmount(reader, resource) ?? 0n;
  if (divisor === 0n) return one;
  if ((isCpu ? CPU_DIVISORS : BYTES_DIVISORS).has(divisor)) return divisor;
  reader.refuse(`expected ${isCpu ? RIGHT_CPU_DIVISOR : RIGHT_BYTES_DIVISOR}, found ${reader.shown()}`);
  return one;
}
