/** Manifests of people who mean harm, or whose generator ran wild: each as large as a file may be. */
import { DEFAULT_MANIFEST_LIMITS } from '../../agent/source/manifests/parse/manifest-limits.ts';

/** `head` and then `unit` again and again, as often as the bytes allow, and then `tail`. */
function filled(bytes: number, head: string, unit: (index: number) => string, tail = ''): string {
  const parts = [head];
  let left = bytes - head.length - tail.length;
  for (let index = 0; ; index += 1) {
    const next = unit(index);
    if (next.length > left) break;
    parts.push(next);
    left -= next.length;
  }
  return parts.join('') + tail;
}

const CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hostile}\n';
const POD = 'apiVersion: v1\nkind: Pod\nmetadata: {name: hostile}\nspec:\n';

/** One of each class, by name: what it does to a reader of YAML. */
export const HOSTILE: Readonly<Record<string, (bytes: number) => string>> = {
  'alias-bomb': (bytes) =>
    filled(bytes, 'a0: &a0 [x, x]\n', (index) => `a${index + 1}: &a${index + 1} [*a${index}, *a${index}]\n`),
  anchors: (bytes) => filled(bytes, '', (index) => `- &anchor${index} x\n`),
  'deep-flow': (bytes) => filled(bytes, '', () => '['),
  'deep-block': (bytes) => filled(bytes, '', (index) => `${' '.repeat(Math.min(index, 1_000))}a:\n`),
  'deep-json': (bytes) => filled(bytes, '{"a":', () => '{"a":', '1'),
  'flow-sequence': (bytes) => filled(bytes, '[', () => 'a,', ']\n'),
  'flow-mapping': (bytes) => filled(bytes, '{x: {', (index) => `k${index}: 1, `, '}}\n'),
  'block-sequence': (bytes) => filled(bytes, 'items:\n', () => '- a\n'),
  'block-mapping': (bytes) => filled(bytes, `${CONFIG_MAP}data:\n`, (index) => `  k${index}: ""\n`),
  documents: (bytes) => filled(bytes, '', () => '---\n'),
  'empty-objects': (bytes) => filled(bytes, 'kind: List\nitems:\n', () => '- {}\n'),
  tags: (bytes) => filled(bytes, '', (index) => `- !tag${index} x\n`),
  directives: (bytes) => filled(bytes, '', () => '%YAML 1.2\n---\na\n...\n'),
  'long-plain': (bytes) => filled(bytes, 'a: ', () => 'x '),
  'long-folded': (bytes) => filled(bytes, 'a: x\n', () => '  x\n'),
  'long-quoted': (bytes) => filled(bytes, 'a: "', () => '\\x41', '"\n'),
  'quoted-lines': (bytes) => filled(bytes, 'a: "', () => 'x\n  ', '"\n'),
  'long-key': (bytes) => filled(bytes, '? "', () => 'kk', '"\n: 1\n'),
  'question-marks': (bytes) => filled(bytes, '', () => '? '),
  dashes: (bytes) => filled(bytes, '', () => '- '),
  comments: (bytes) => filled(bytes, CONFIG_MAP, () => '#\n'),
  'merge-keys': (bytes) => filled(bytes, 'a: &a {b: 1}\nc:\n', () => '- {<<: *a}\n'),
  'twice-the-same': (bytes) => filled(bytes, `${CONFIG_MAP}data:\n`, () => '  same: ""\n'),
  'pod-volumes': (bytes) =>
    filled(bytes, `${POD}  containers: [{name: a}]\n  volumes:\n`, (index) => `  - {name: v${index}}\n`),
  'json-numbers': (bytes) => filled(bytes, '{"kind":"List","items":[0', () => ',0', ']}'),
};

/** So many files of the largest size that is read, of every class in turn. */
export function hostileManifests(
  count: number,
  bytes = DEFAULT_MANIFEST_LIMITS.fileBytesMax,
): ReadonlyMap<string, string> {
  const classes = Object.entries(HOSTILE);
  return new Map(
    Array.from({ length: count }, (_, index) => {
      const [name, make] = classes[index % classes.length] as (typeof classes)[number];
      return [`${String(index).padStart(3, '0')}-${name}.yaml`, make(bytes)];
    }),
  );
}
