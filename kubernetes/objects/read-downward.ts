/** Volumes that show fields of their own pod (`downwardAPI`). */
import { cleanPath } from '../../plugins/pod/content-tree.ts';
import { fieldText, parseFieldPath, type PodMetadata, RIGHT_FIELD_PATH } from '../fields/field-path.ts';
import { readContainerResource } from './container-resource.ts';
import type { DownwardFile, DownwardSource, DownwardValue } from './content-source.ts';
import type { FieldReader } from '../fields/field-reader.ts';
import type { NamedReference } from './objects.ts';
import { fitTogether, readContentPath, readDefaultMode, readMode } from './read-content.ts';

/** The pod around a volume. */
export interface PodFields {
  readonly spec: FieldReader;
  readonly metadata: PodMetadata;
  /** Those with resources of their own. */
  readonly containers: readonly FieldReader[];
}

/** `reader` is at the pod; what is wrong with a label or annotation is a problem only of a pod that shows it. */
export function podFields(
  reader: FieldReader,
  { name, namespace, uid }: NamedReference & { readonly uid: string },
): PodFields {
  const metadata = reader.key('metadata');
  const texts = (key: string): ReadonlyMap<string, string> =>
    new Map(
      metadata
        .key(key)
        .entries()
        .map(([one, value]) => [one, value.text() ?? '']),
    );
  const spec = reader.key('spec');
  return {
    spec,
    metadata: {
      name,
      namespace,
      uid,
      labels: () => texts('labels'),
      annotations: () => texts('annotations'),
    },
    containers: ['containers', 'initContainers'].flatMap((key) => spec.key(key).list()),
  };
}

export function readDownwardSource(source: FieldReader, pod: PodFields): DownwardSource {
  const items = source.key('items');
  const files = new Map(readDownwardFiles(items, pod).map((file) => [file.path, file] as const));
  files.delete('');
  if (!fitTogether([...files.keys()])) items.refuse('one path is a directory of another');
  return { kind: 'downward-api', defaultMode: readDefaultMode(source), files: [...files.values()] };
}

/** Each item, in order, whether its path is another one's or not; the path of one that was refused is empty. */
export function readDownwardFiles(items: FieldReader, pod: PodFields): readonly DownwardFile[] {
  return items.list().map((item) => ({
    path: cleanPath(readContentPath(item.key('path'))),
    mode: readMode(item.key('mode')),
    value: readValue(item, pod),
  }));
}

function readValue(item: FieldReader, pod: PodFields): DownwardValue {
  const [field, resource] = [item.key('fieldRef'), item.key('resourceFieldRef')];
  if (field.present === resource.present)
    item.refuse(
      `has ${field.present ? 'both' : 'neither'} fieldRef and resourceFieldRef; expected one of them`,
    );
  if (resource.present) return readContainerResource(resource, pod.containers);
  field.key('apiVersion').text((text) => text === 'v1', 'v1');
  if (!field.present) return { kind: 'text', text: '' };
  const path = field
    .key('fieldPath')
    .requiredText((text) => parseFieldPath(text) !== undefined, RIGHT_FIELD_PATH);
  const parsed = parseFieldPath(path);
  return { kind: 'text', text: parsed === undefined ? '' : fieldText(parsed, pod.metadata) };
}
