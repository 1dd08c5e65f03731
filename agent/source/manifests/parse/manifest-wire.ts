/** A reading on its way from the parser's process to the agent's: in parts, each of them cheap to decode. Pure. */
import { assert } from '../../../../mount/failure.ts';
import { Sensitive } from '../../../../plugins/secret/sensitive.ts';
import type { FileReading, ReadObject } from './file-reading.ts';
import type { ConfigMap, Secret, ApiObject } from '../../../../kubernetes/objects/objects.ts';

/** The size of one part, in values; one object alone may be more, up to the bound of its reader. */
const PART_VALUES_MAX = 4_000;
/** So many bytes of text go for one value. */
const BYTES_PER_VALUE = 256;

type Content = ReadonlyMap<string, Uint8Array>;

/** One long text and where each entry ends in it: thousands of small arrays take a hundred times as long to decode. */
interface PackedContent {
  readonly keys: readonly string[];
  readonly ends: readonly number[];
  readonly bytes: Uint8Array;
}

type Packed<T> = Omit<T, 'data'> & { readonly data: PackedContent };
type WireObject = Omit<ReadObject, 'object'> & {
  readonly object: Exclude<ApiObject, Secret | ConfigMap> | Packed<Secret> | Packed<ConfigMap>;
};
type Rest = Omit<FileReading, 'objects'>;

/** What is not an object, and the first objects: most files are one part. */
interface Head {
  readonly rest: Rest;
  readonly objects: readonly WireObject[];
}

/** The head, and then lists of objects. */
export function toParts({ objects, ...rest }: FileReading): readonly [Head, ...(readonly WireObject[])[]] {
  const first: WireObject[] = [];
  const parts: WireObject[][] = [];
  let part = first;
  let room = PART_VALUES_MAX - valuesIn(rest);
  for (const read of objects) {
    const values = valuesIn(read);
    if (values > room) {
      part = [];
      parts.push(part);
      room = PART_VALUES_MAX;
    }
    part.push(packed(read));
    room -= values;
  }
  return [{ rest, objects: first }, ...parts];
}

/** What `toParts` made, after its journey. */
export function fromParts([head, ...parts]: readonly unknown[]): FileReading {
  assert(head !== undefined, 'an answer has a head');
  const { rest, objects } = head as Head;
  const all = [objects, ...(parts as (readonly WireObject[])[])];
  return { ...rest, objects: all.flatMap((part) => part.map(unpacked)) };
}

function packed(read: ReadObject): WireObject {
  const { object } = read;
  if (object.kind === 'Secret') return { ...read, object: { ...object, data: pack(object.data.reveal()) } };
  if (object.kind === 'ConfigMap') return { ...read, object: { ...object, data: pack(object.data) } };
  return { ...read, object };
}

function unpacked(read: WireObject): ReadObject {
  const { object } = read;
  if (object.kind === 'Secret')
    return { ...read, object: { ...object, data: new Sensitive(unpack(object.data)) } };
  if (object.kind === 'ConfigMap') return { ...read, object: { ...object, data: unpack(object.data) } };
  return { ...read, object };
}

function pack(content: Content): PackedContent {
  let end = 0;
  const ends = [...content.values()].map((bytes) => (end += bytes.length));
  return { keys: [...content.keys()], ends, bytes: Buffer.concat([...content.values()]) };
}

function unpack({ keys, ends, bytes }: PackedContent): Content {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return new Map(keys.map((key, index) => [key, all.subarray(ends[index - 1] ?? 0, ends[index])]));
}

function valuesIn(value: unknown): number {
  if (value instanceof Sensitive) return valuesIn(value.reveal());
  if (value instanceof Uint8Array || typeof value === 'string') return 1 + value.length / BYTES_PER_VALUE;
  if (typeof value !== 'object' || value === null) return 1;
  const children: Iterable<unknown> = value instanceof Map ? value.values() : Object.values(value);
  let values = 1;
  for (const child of children) values += valuesIn(child);
  return values;
}
