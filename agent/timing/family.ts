/** One metric and its series, in the text format of Prometheus (version 0.0.4). */
import { printable } from '../../mount/text/printable.ts';
import type { Bytes } from '../../plugins/volume.ts';

export type Labels = Readonly<Record<string, string>>;

/** One metric: its series by their labels as text, so that none is said twice. */
export interface Family {
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  readonly series: Map<string, string>;
}

type Value = number | bigint | Bytes;

export function family(name: string, help: string, type: Family['type'] = 'gauge'): Family {
  return { name, help, type, series: new Map() };
}

/** The first to say a series wins. */
export function say({ series }: Family, value: Value, labels: Labels = {}): void {
  const text = labelText(labels);
  if (!series.has(text)) series.set(text, String(value));
}

/** One more of a series, or as many more. */
export function count(numbers: Family, labels: Labels, more = 1): void {
  const text = labelText(labels);
  numbers.series.set(text, String(Number(numbers.series.get(text) ?? 0) + more));
}

function labelText(labels: Labels): string {
  const pairs = labelPairs(labels);
  return pairs === '' ? '' : `{${pairs}}`;
}

/** `name="value"` of each, with commas between; whatever a value is, it stays one label. */
export function labelPairs(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(',');
}

/** Never reached by what a label names: a volume handle, each byte of it an escape. */
const LABEL_BYTES_MAX = 16_384;

/** Made printable, a label has no line end; of the format's three escapes two are left. */
function escaped(value: string): string {
  return printable(value, LABEL_BYTES_MAX).replaceAll('\\', '\\\\').replaceAll('"', '\\"');
}

export function textOf({ name, help, type, series }: Family): string {
  const lines = [...series].map(([labels, value]) => `${name}${labels} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}
