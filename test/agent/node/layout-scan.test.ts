/** When the layout is looked at again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLayoutScan } from '../../../agent/node/layout-scan.ts';
import { NOTHING_DESIRED } from '../../../agent/source/desired-objects.ts';
import { fail } from '../../../mount/failure.ts';
import { createGround } from '../../../mount/ground.ts';
import { type Host, parseAbsolutePath } from '../../../mount/host.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { createMemoryHost } from '../../plugins/memory-host.ts';
import { value } from '../../value.ts';

const RESYNC_MS = 60_000;
const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);

/** A machine whose mount table can be read when `readable` says so, and the waits of its scan, in order. */
function machine(readable: (scan: number) => boolean) {
  const memory = createMemoryHost();
  memory.plant(layout.pods, { kind: 'directory' });
  memory.plant(layout.plugins, { kind: 'directory' });
  const waitsMs: number[] = [];
  const told: string[] = [];
  let scans = 0;
  let next: (() => void) | undefined;
  let settled = (): void => {};
  const host: Host = {
    ...memory,
    async readMountTable(about) {
      scans += 1;
      if (readable(scans)) return memory.readMountTable(about);
      return fail({ code: 'input-output', message: 'no table', effect: 'none' });
    },
    timer(delayMs, fire) {
      waitsMs.push(delayMs);
      next = fire;
      settled();
      return () => {};
    },
  };
  const ground = createGround(memory, layout.root, [layout.pods, layout.plugins]);
  const scan = createLayoutScan({
    ...{ host, layout, ground },
    reader: { current: () => NOTHING_DESIRED, read: (joining) => joining?.join() },
    reconciler: { actual: () => new Map(), takeReconstructed: () => {} },
    resyncMs: RESYNC_MS,
    onScanned: () => told.push('scanned'),
    onPlaces: (read) => told.push(read === 'places' ? read : read.code),
    onWhole: () => told.push('whole'),
  });
  return {
    memory,
    ground,
    waitsMs,
    told,
    /** Until the next scan has ended and waits. */
    async once(): Promise<void> {
      const waiting = new Promise<void>((resolve) => {
        settled = resolve;
      });
      if (next === undefined) scan.start();
      else next();
      await waiting;
    },
  };
}

test('what cannot be read is looked at again soon, then ever later, at most at the resync', async () => {
  const { once, waitsMs } = machine(() => false);
  for (let scan = 0; scan < 7; scan += 1) await once();
  assert.deepEqual(waitsMs, [5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000]);
});

test('once all could be read, the next trouble is looked at soon again', async () => {
  const { once, waitsMs } = machine((scan) => scan === 3);
  for (let scan = 0; scan < 4; scan += 1) await once();
  assert.deepEqual(waitsMs, [5_000, 10_000, RESYNC_MS, 5_000]);
});

test('INV-5: what could not be read counts as read after several looks, and at once when all could be', async () => {
  const never = machine(() => false);
  for (let scan = 0; scan < 3; scan += 1) await never.once();
  const unread = ['scanned', 'table-unreadable'];
  assert.deepEqual(never.told, [...unread, ...unread, ...unread]);
  await never.once();
  assert.deepEqual(never.told.slice(6), ['scanned', 'places']);
  const late = machine((scan) => scan === 2);
  for (let scan = 0; scan < 2; scan += 1) await late.once();
  assert.deepEqual(late.told, [...unread, 'scanned', 'places', 'whole']);
});

for (const [where, directory] of [
  ['a driver’s stages', layout.driverDirectory('driver.example')],
  ['the stages of block volumes', layout.blockStages],
  ['all that is staged', layout.plugins],
  ['what a pod has (seed 17099)', layout.podFolders('uid-1').volumes],
] as const)
  test(`INV-5: what lies under somebody’s mount over ${where} is never taken for read`, async () => {
    const { memory, ground, once, told } = machine(() => true);
    memory.plant(directory, { kind: 'directory' });
    memory.plant(layout.driverDirectory('driver.example'), { kind: 'directory' });
    assert.ok(ground.learn(value(await memory.readMountTable(layout.root))).ok);
    memory.plantMount(directory, 'tmpfs');
    for (let scan = 0; scan < 6; scan += 1) await once();
    assert.deepEqual([...new Set(told)], ['scanned', 'mount-stacked']);
    await memory.unmount(directory);
    await once();
    assert.deepEqual(told.slice(-3), ['scanned', 'places', 'whole']);
  });
