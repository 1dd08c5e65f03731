import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accept, refuse } from './answers.ts';
import { call, targetOf, up, world } from './csi-world.ts';
import { refusing } from './scripted-driver.ts';

const INTERNAL = 13;

test('C17: a republish that fails in the driver has no effect as long as the pod has the same mount', async () => {
  const made = await world();
  await up(made);
  const before = accept(await made.host.mountIdOf(targetOf(made)));
  made.plan.before = refusing('NodePublishVolume', INTERNAL);
  assert.deepEqual(refuse(await made.plugin.publish(call({ refresh: true }))), {
    code: 'driver-failed',
    effect: 'none',
  });
  assert.equal(accept(await made.host.mountIdOf(targetOf(made))), before);
  assert.deepEqual(refuse(await made.plugin.publish(call())), { code: 'driver-failed', effect: 'unknown' });
});

test('C17: one that took the mount away, or was never answered, is in doubt', async () => {
  const made = await world({}, { deadlineMs: 300 });
  await up(made);
  made.plan.before = (method) => {
    if (method !== 'NodePublishVolume') return;
    made.host.mounts.delete(targetOf(made));
    refusing(method, INTERNAL)(method);
  };
  assert.deepEqual(refuse(await made.plugin.publish(call({ refresh: true }))), {
    code: 'driver-failed',
    effect: 'unknown',
  });
  made.plan.before = () => undefined;
  accept(await made.plugin.publish(call()));
  made.plan.before = () => new Promise(() => {});
  assert.deepEqual(refuse(await made.plugin.publish(call({ refresh: true }))), {
    code: 'driver-deadline',
    effect: 'unknown',
  });
});
