/** An emptyDir: its medium, and how large it may become. */
import type { FieldReader } from '../fields/field-reader.ts';
import { parseQuantityBytes } from '../fields/quantity.ts';
import { hugePageSizes, podHugePageLimit, podMemoryLimit } from './pod-limit.ts';

export interface EmptyDirSource {
  readonly kind: 'empty-dir';
  readonly medium: 'disk' | 'memory' | 'huge-pages';
  /** In memory it is the smaller one of `sizeLimit` and what the pod may use; 0: neither is written. */
  readonly sizeLimitBytes: number;
  /** 0: another medium. */
  readonly hugePageBytes: number;
}

const HUGE_PAGES = 'HugePages';
const RIGHT_MEDIUM = '"", Memory, HugePages or HugePages-<size>, such as HugePages-2Mi';
const RIGHT_SIZE = 'a size that is not negative, such as 64Mi';

/** `spec` is the pod's: how large a volume in memory may become, its containers say. */
export function readEmptyDir(source: FieldReader, spec: FieldReader): EmptyDirSource {
  const field = source.key('medium');
  const isHuge = (text: string): boolean => text === HUGE_PAGES || text.startsWith(`${HUGE_PAGES}-`);
  const medium = field.text((text) => ['', 'Memory'].includes(text) || isHuge(text), RIGHT_MEDIUM) ?? '';
  const limit = source.key('sizeLimit');
  const text = limit.scalarText(RIGHT_SIZE);
  const wanted = text === undefined ? 0 : parseQuantityBytes(text);
  if (wanted === undefined) limit.refuse(`expected ${RIGHT_SIZE}, found ${limit.shown()}`);
  const sizeLimitBytes = wanted ?? 0;
  if (isHuge(medium)) return readHugePages({ field, limit, spec }, medium, sizeLimitBytes);
  if (medium === '') return { kind: 'empty-dir', medium: 'disk', sizeLimitBytes, hugePageBytes: 0 };
  const ofPod = Number(podMemoryLimit(spec) ?? 0n);
  const sizes = [sizeLimitBytes, ofPod].filter((bytes) => bytes > 0);
  const smallest = sizes.length === 0 ? 0 : Math.min(...sizes);
  return { kind: 'empty-dir', medium: 'memory', sizeLimitBytes: smallest, hugePageBytes: 0 };
}

interface HugePageFields {
  readonly field: FieldReader;
  readonly limit: FieldReader;
  readonly spec: FieldReader;
}

/** As in the kubelet the size of a page is that of the one kind of huge pages that the containers have. */
function readHugePages(
  { field, limit, spec }: HugePageFields,
  medium: string,
  sizeLimitBytes: number,
): EmptyDirSource {
  const nothing: EmptyDirSource = {
    kind: 'empty-dir',
    medium: 'huge-pages',
    sizeLimitBytes,
    hugePageBytes: 0,
  };
  const known = hugePageSizes(spec);
  const named = medium === HUGE_PAGES ? undefined : medium.slice(HUGE_PAGES.length + 1);
  const [size, ...others] = named === undefined ? known : [named];
  const pageBytes = size === undefined ? undefined : parseQuantityBytes(size);
  if (others.length > 0) {
    field.refuse(
      `the containers have huge pages of ${known.join(' and ')}; expected HugePages-<one of them>`,
    );
    return nothing;
  }
  if (size === undefined || pageBytes === undefined || pageBytes < 1 || !known.includes(size)) {
    const resource = `hugepages-${named ?? '<size>'}`;
    field.refuse(`no container has ${resource} in its resources.limits; expected one that does`);
    return nothing;
  }
  const ofPod = Number(podHugePageLimit(spec, size));
  const bytes = sizeLimitBytes > 0 && sizeLimitBytes < ofPod ? sizeLimitBytes : ofPod;
  const whole = bytes - (bytes % pageBytes);
  if (whole === 0)
    limit.refuse(`the volume would have room for no page of ${size}; expected ${size} at least`);
  return { ...nothing, sizeLimitBytes: whole, hugePageBytes: pageBytes };
}
