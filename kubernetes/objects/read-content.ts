/** Secrets, ConfigMaps, and how a pod's volume shows them as files. */
import { cleanPath, parseContentTree } from '../../plugins/pod/content-tree.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import { readMetadata } from './read-metadata.ts';
import { CONTENT_KEY, OBJECT_NAME } from '../fields/object-name.ts';
import type { ContentItem, ContentSource } from './content-source.ts';
import type { ConfigMap, Secret } from './objects.ts';
import type { FieldReader } from '../fields/field-reader.ts';

const MODE_MAX = 0o777;
const DEFAULT_MODE = 0o644;
const RIGHT_MODE = 'permission bits from 0 to 0777 (octal in YAML, 511 at most in JSON)';
/** One loop over characters: groups in it would cost stack for each, and a Secret may be many megabytes. */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** `stringData` is merged over `data`, as by the API server. No value is ever part of a problem. */
export function readSecret(reader: FieldReader): Secret {
  const { namespace, name, uid } = readMetadata(reader);
  const data = readData(reader.key('data').hide(), fromBase64);
  for (const [key, content] of readData(reader.key('stringData').hide(), fromText)) data.set(key, content);
  const immutable = readImmutable(reader);
  return { kind: 'Secret', namespace, name, uid, immutable, data: new Sensitive(data) };
}

/** A ConfigMap; a key may not be in both data and binaryData, as in Kubernetes. */
export function readConfigMap(reader: FieldReader): ConfigMap {
  const { namespace, name, uid } = readMetadata(reader);
  const data = readData(reader.key('data'), fromText);
  const binary = reader.key('binaryData');
  for (const [key, content] of readData(binary, fromBase64)) {
    if (data.has(key)) binary.key(key).refuse('this key is in data too');
    data.set(key, content);
  }
  return { kind: 'ConfigMap', namespace, name, uid, immutable: readImmutable(reader), data };
}

function readImmutable(reader: FieldReader): boolean {
  return reader.key('immutable').flag(false);
}

function readData(reader: FieldReader, decode: (value: FieldReader) => Uint8Array): Map<string, Uint8Array> {
  const [keeps, right] = CONTENT_KEY;
  const data = new Map<string, Uint8Array>();
  for (const [key, value] of reader.entries()) {
    if (keeps(key)) data.set(key, decode(value));
    else value.refuse(`expected ${right}`);
  }
  return data;
}

/** An absent value is empty content. */
function fromText(value: FieldReader): Uint8Array {
  return Buffer.from(value.text() ?? '', 'utf8');
}

/** Whole groups of four, the last one with its padding. */
function isBase64(text: string): boolean {
  return text.length % 4 === 0 && BASE64.test(text);
}

function fromBase64(value: FieldReader): Uint8Array {
  const text = (value.text() ?? '').replace(/[\r\n]/g, '');
  if (isBase64(text)) return Buffer.from(text, 'base64');
  value.refuse('expected base64 with its padding');
  return new Uint8Array();
}

/**
 * The secret or configMap source of a pod's volume, or of a part of one, whose `defaultMode` is the volume's; `name` is
 * the field that holds the object's name.
 */
export function readContentSource(
  kind: ContentSource['kind'],
  name: FieldReader,
  source: FieldReader,
  defaultMode: number = readDefaultMode(source),
): ContentSource {
  const items = source.key('items');
  return {
    kind,
    name: name.requiredText(...OBJECT_NAME),
    optional: source.key('optional').flag(false),
    defaultMode,
    items: items.present ? readItems(items) : undefined,
  };
}

/** Undefined when it is not written, or refused. */
export function readMode(reader: FieldReader): number | undefined {
  return reader.integer(0, MODE_MAX, RIGHT_MODE);
}

/** As the API server defaults it. */
export function readDefaultMode(source: FieldReader): number {
  return readMode(source.key('defaultMode')) ?? DEFAULT_MODE;
}

function readItems(items: FieldReader): readonly ContentItem[] | undefined {
  const read = items.list().map((item) => ({
    key: item.key('key').requiredText(...CONTENT_KEY),
    path: cleanPath(readContentPath(item.key('path'))),
    mode: readMode(item.key('mode')),
  }));
  // What was refused above is '' here, and has its problem already.
  const paths = new Set(read.map((one) => one.path).filter((one) => one !== ''));
  if (!fitTogether([...paths])) items.refuse('one path is a directory of another');
  return read.length === 0 ? undefined : read;
}

const RIGHT_PATH =
  'a relative path without "..", not beginning with "..", each component at most 255 bytes, at most 2,048 together';

/** Where a file of a volume goes, below its root; empty when it was refused. */
export function readContentPath(reader: FieldReader): string {
  return reader.requiredText(isContentPath, RIGHT_PATH);
}

/** The rule of the writer itself, so that nothing is refused only when it is too late. */
function isContentPath(path: string): boolean {
  return fitTogether([path]);
}

/** No path is the same as another one, or a directory of it. */
export function fitTogether(paths: readonly string[]): boolean {
  return parseContentTree(new Map(paths.map((one) => [one, { content: new Uint8Array(), mode: 0 }]))).ok;
}
