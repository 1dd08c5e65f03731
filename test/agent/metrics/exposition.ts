/** Reads the text format of Prometheus (version 0.0.4) as strictly as a scraper does. */
import assert from 'node:assert/strict';

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Exposition {
  readonly samples: readonly Sample[];
  /** By name of metric: `gauge`, `counter`, `histogram`. */
  readonly types: ReadonlyMap<string, string>;
}

const SAMPLE = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/g;

/** Fails on a line that is none, on a metric that is told twice, and on a sample of one that has no type. */
export function readExposition(text: string): Exposition {
  assert.ok(text.endsWith('\n'));
  const types = new Map<string, string>();
  const samples: Sample[] = [];
  for (const line of text.trimEnd().split('\n')) {
    const [, of, type] = /^# TYPE (\S+) (gauge|counter|histogram)$/.exec(line) ?? [];
    if (of !== undefined && type !== undefined) {
      assert.ok(!types.has(of), `${of} is there twice`);
      types.set(of, type);
    }
    if (line.startsWith('#')) continue;
    const [, name, pairs = '', value] = SAMPLE.exec(line) ?? assert.fail(`no sample: ${line}`);
    assert.ok(name !== undefined && Number.isFinite(Number(value)), line);
    assert.equal(pairs.replaceAll(LABEL, ''), '', line);
    const found = [...pairs.matchAll(LABEL)].map(([, label = '', said = '']) => [label, said] as const);
    const base = types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '');
    assert.ok(types.has(base), `${name} has no type`);
    samples.push({ name, labels: Object.fromEntries(found), value: Number(value) });
  }
  return { samples, types };
}
