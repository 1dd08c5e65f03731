import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMountTimes } from '../../../agent/timing/mount-times.ts';
import { parsePodUid, publicationKey } from '../../../plugins/volume.ts';
import { csiSpec } from '../../plugins/csi-spec.ts';
import { readExposition } from '../metrics/exposition.ts';

const SPEC = csiSpec('a.test', 'handle', 'pv', {});
const KEY = publicationKey(parsePodUid('0b4f8c1e-2222-4333-8444-55556666000a') ?? assert.fail(), 'pv');
const WANTED = { volumes: new Map([[SPEC.id, { publications: new Map([[KEY, {}]]) }]]) } as never;
const NOTHING = { volumes: new Map() } as never;
const STANDS = new Map([
  [SPEC.id, { publications: new Map([[KEY, { presence: { kind: 'present' } }]]) }],
]) as never;

function world() {
  let nowMs = 0;
  const times = createMountTimes({ nowMs: () => nowMs });
  const later = (ms: number): void => {
    nowMs += ms;
  };
  const mounted = (): void => times.mounted(SPEC.id, KEY, 'kubernetes.io/csi:a.test');
  const seen = () => {
    const { samples } = readExposition(times.text());
    const of = (part: string) => samples.find(({ name }) => name.endsWith(part))?.value;
    return [of('_count'), of('_sum')];
  };
  return { times, later, mounted, seen };
}

test('a mount takes from the first wish for it to the first time that it is there', () => {
  const { times, later, mounted, seen } = world();
  times.wanted(WANTED, new Map());
  later(3_000);
  times.wanted(WANTED, new Map());
  later(1_000);
  mounted();
  later(9_000);
  times.wanted(WANTED, new Map());
  mounted();
  assert.deepEqual(seen(), [1, 4]);
});

test('wanted again after it was not, it is waited for anew', () => {
  const { times, later, mounted, seen } = world();
  times.wanted(WANTED, new Map());
  mounted();
  times.wanted(NOTHING, new Map());
  times.wanted(WANTED, new Map());
  later(2_000);
  mounted();
  assert.deepEqual(seen(), [2, 2]);
});

test('what stands when it is first wanted, as after a restart, and what nobody wants, is waited for by nobody', () => {
  const { times, later, mounted, seen } = world();
  mounted();
  times.wanted(WANTED, STANDS);
  later(5_000);
  mounted();
  assert.deepEqual(seen(), [undefined, undefined]);
});
