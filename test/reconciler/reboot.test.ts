/** What an agent makes of what stood before a reboot. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Needs } from '../../plugins/plugin.ts';
import type { DesiredState } from '../../reconciler/model/desired-state.ts';
import { recover } from '../../reconciler/recovery/recover.ts';
import { createBench, layout, onlyRecord } from './bench.ts';
import { wanted, wish } from './world.ts';

const HOUR_MS = 3_600_000;

const needsOn = (node: string) => ({ attach: true, node, stage: true, expand: false }) as const;

/** A reconciler after a reboot, of what the one before had set up as it was wished. */
async function afterReboot(desired: DesiredState, needs?: Needs) {
  const before = createBench({ resyncMs: 1e9 });
  if (needs !== undefined) before.plugins.needs = needs;
  before.reconciler.setDesired(desired);
  await before.host.advance(1_000);
  const record = onlyRecord(before.host);
  await before.reconciler.stop(0);
  const recovered = recover({
    ...{ records: [record], table: undefined, shown: new Map(), bootId: 'boot-2', layout },
  });
  return createBench({ recovered, resyncMs: 1e9 });
}

test('DR-17: what was attached under the name of before the reboot is detached, and attached anew', async () => {
  const desired = wish([wanted('data', ['web'])]);
  const { plugins, reconciler, host } = await afterReboot(desired, needsOn('node-1'));
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

/** What is done after a reboot for a volume that is wished otherwise since. */
async function wishedOtherwise(complete: boolean): Promise<readonly string[]> {
  const first = wanted('data', ['web']);
  const { plugins, reconciler, host } = await afterReboot(wish([first]));
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
