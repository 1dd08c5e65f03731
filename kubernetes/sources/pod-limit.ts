/** What a pod as a whole may use of a resource that its volumes in memory are counted to. */
import type { FieldReader } from '../fields/field-reader.ts';
import { readAmount } from '../fields/node-resource.ts';

const HUGE_PAGES = 'hugepages-';

/**
 * The pod's limit of memory in bytes, as the kubelet gives it to the pod's cgroup: what is written for the pod as a
 * whole, else the most that its containers may have at a time, its overhead included. Undefined where one of them has
 * no limit.
 */
export function podMemoryLimit(spec: FieldReader): bigint | undefined {
  const whole = limitOf(spec, 'memory');
  if (whole > 0n) return whole;
  const all = [...spec.key('containers').list(), ...spec.key('initContainers').list()];
  if (all.some((one) => limitOf(one, 'memory') === 0n)) return undefined;
  return limitOfContainers(spec, 'memory') + (readAmount(spec.key('overhead').key('memory'), 'memory') ?? 0n);
}

/**
 * The sizes of the huge pages that the pod as a whole or a container asks for or may use, as in the resource's name
 * (`2Mi`), in order.
 */
export function hugePageSizes(spec: FieldReader): readonly string[] {
  const owners = [spec, ...spec.key('containers').list(), ...spec.key('initContainers').list()];
  const names = owners.flatMap((owner) => {
    const resources = owner.key('resources');
    return [...resources.key('limits').entries(), ...resources.key('requests').entries()].map(
      ([name]) => name,
    );
  });
  const sizes = names.flatMap((name) => (name.startsWith(HUGE_PAGES) ? [name.slice(HUGE_PAGES.length)] : []));
  return [...new Set(sizes)].sort();
}

/** The bytes of huge pages of this size that the pod may have, by its own word or by its containers'; 0: none. */
export function podHugePageLimit(spec: FieldReader, size: string): bigint {
  const resource = HUGE_PAGES + size;
  const whole = limitOf(spec, resource);
  return whole > 0n ? whole : limitOfContainers(spec, resource);
}

/**
 * Init containers run one after the other, each beside those before it that go on (`restartPolicy: Always`), and the
 * containers beside all of these.
 */
function limitOfContainers(spec: FieldReader, resource: string): bigint {
  let besides = 0n;
  let most = 0n;
  for (const container of spec.key('initContainers').list()) {
    const limit = limitOf(container, resource);
    if (besides + limit > most) most = besides + limit;
    if (container.key('restartPolicy').text() === 'Always') besides += limit;
  }
  for (const container of spec.key('containers').list()) besides += limitOf(container, resource);
  return besides > most ? besides : most;
}

/** 0: none is written. */
function limitOf(owner: FieldReader, resource: string): bigint {
  return readAmount(owner.key('resources').key('limits').key(resource), resource) ?? 0n;
}
