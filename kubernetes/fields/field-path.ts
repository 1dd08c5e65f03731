/** The fields of a pod that a volume can show (`fieldRef.fieldPath`), and their text as the kubelet writes it. */
import { isLabelKey } from '../../plugins/volume.ts';
import { goQuote } from './go-quote.ts';

export type FieldPath =
  | { readonly kind: 'name' | 'namespace' | 'uid' }
  /** All of them; with a key that one alone, and nothing when the pod has none of that key. */
  | { readonly kind: 'labels' | 'annotations'; readonly key: string | undefined };

/** Asked only for what the path names. */
export interface PodMetadata {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  labels(): ReadonlyMap<string, string>;
  annotations(): ReadonlyMap<string, string>;
}

/** What completes "expected …". */
export const RIGHT_FIELD_PATH =
  "metadata.name, metadata.namespace, metadata.uid, metadata.labels, metadata.annotations, metadata.labels['<key>'] " +
  "or metadata.annotations['<key>']";

const SUBSCRIPTED = /^metadata\.(labels|annotations)\['(.*)'\]$/s;
const WHOLE = /^metadata\.(name|namespace|uid|labels|annotations)$/;

/** Undefined for what a volume cannot show, and for a key that no label or annotation can have. */
export function parseFieldPath(text: string): FieldPath | undefined {
  const [, kind, key] = SUBSCRIPTED.exec(text) ?? [];
  if (kind === 'labels' || kind === 'annotations') {
    // The prefix of an annotation may have capitals (IsQualifiedName of the key in lower case).
    const asked = kind === 'annotations' ? key?.toLowerCase() : key;
    return asked !== undefined && isLabelKey(asked) ? { kind, key } : undefined;
  }
  const [, field] = WHOLE.exec(text) ?? [];
  if (field === 'labels' || field === 'annotations') return { kind: field, key: undefined };
  return field === 'name' || field === 'namespace' || field === 'uid' ? { kind: field } : undefined;
}

/** Total. All labels or annotations are lines `key="value"`, sorted by key, without a line end after the last. */
export function fieldText(path: FieldPath, pod: PodMetadata): string {
  if (path.kind !== 'labels' && path.kind !== 'annotations') return pod[path.kind];
  const entries = pod[path.kind]();
  if (path.key !== undefined) return entries.get(path.key) ?? '';
  return [...entries]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${goQuote(value)}`)
    .join('\n');
}
