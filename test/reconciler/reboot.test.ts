/** What an agent makes of what stood before a reboot. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recover } from '../../reconciler/recovery/recover.ts';
import { createBench, layout, onlyRecord } from './bench.ts';
import { wanted, wish } from './world.ts';

const HOUR_MS = 3_600_000;

const needsOn = (node: string) => ({ attach: true, node, stage: true, expand: false }) as const;

test('DR-17: what was attached under the name of before the reboot is detached, and attached anew', async () => {
  const before = createBench({ resyncMs: 1e9 });
  before.plugins.needs = needsOn('node-1');
  const desired = wish([wanted('data', ['web'])]);
  before.reconciler.setDesired(desired);
  await before.host.advance(1_000);
  const record = onlyRecord(before.host);
  await before.reconciler.stop(0);
  const recovered = recover({
    ...{ records: [record], table: undefined, shown: new Map(), bootId: 'boot-2', layout },
  });
  const { plugins, reconciler, host } = createBench({ recovered, resyncMs: 1e9 });
  plugins.needs = needsOn('node-2');
  // The storage knows the old name no more: to attach there is in vain.
  plugins.fault = (kind) =>
    kind === 'attach' && plugins.made.at(-1)?.node === 'node-1'
      ? { code: 'driver-not-found', message: 'no such node', effect: 'none' }
      : undefined;
  reconciler.setDesired(desired);
  await host.advance(HOUR_MS);
  const attachments = plugins.made.filter(({ kind }) => kind === 'attach' || kind === 'detach');
  assert.deepEqual(
    attachments.map(({ kind, node }) => `${kind} ${node}`),
    ['detach node-1', 'attach node-2'],
  );
  assert.deepEqual(reconciler.obstacles(), []);
  await reconciler.stop(0);
});

/** What is there after a reboot of what a pod had, whose volume is wished otherwise since, and who else is. */
async function wishedOtherwise(complete: boolean): Promise<readonly string[]> {
  const before = createBench({ resyncMs: 1e9 });
  const first = wanted('data', ['web']);
  before.reconciler.setDesired(wish([first]));
  await before.host.advance(1_000);
  const record = onlyRecord(before.host);
  await before.reconciler.stop(0);
  const recovered = recover({
    ...{ records: [record], table: undefined, shown: new Map(), bootId: 'boot-2', layout },
  });
  const { plugins, reconciler, host } = createBench({ recovered, resyncMs: 1e9 });
  const otherwise = { ...first, spec: { ...first.spec, mountOptions: ['noatime'] } } as typeof first;
  reconciler.setDesired({ ...wish([otherwise]), complete });
  await host.advance(HOUR_MS);
  assert.deepEqual(reconciler.obstacles(), []);
  await reconciler.stop(0);
  return plugins.made.map(({ kind }) => kind);
}

test('DR-17: what is wished otherwise since the reboot is made anew, as no pod has it', async () => {
  assert.deepEqual(await wishedOtherwise(true), ['unpublish', 'unstage', 'stage', 'publish']);
});

test('DR-17: while a source is unread it is set up as it was: who has the cluster may wait for that pod', async () => {
  assert.deepEqual(await wishedOtherwise(false), ['stage', 'publish']);
});
