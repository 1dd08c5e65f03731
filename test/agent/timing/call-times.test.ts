import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCallTimes } from '../../../agent/timing/call-times.ts';
import type { Host } from '../../../mount/host.ts';
import type { RemoteReply } from '../../../mount/remote-call.ts';
import { readExposition } from '../metrics/exposition.ts';

const INFO = '/csi.v1.Identity/GetPluginInfo';
const STAGE = '/csi.v1.Node/NodeStageVolume';

function world() {
  let nowMs = 0;
  let next: RemoteReply<unknown> = { kind: 'ok', reply: {} };
  const times = createCallTimes({ nowMs: () => nowMs });
  const call = times.timed((async () => {
    nowMs += 300;
    return next;
  }) as unknown as Host['call']);
  const ask = async (path: string, reply: RemoteReply<unknown>, socket = '/a.sock'): Promise<void> => {
    next = reply;
    assert.equal(await call({ socket: { path: socket, inode: 1 }, method: { path } } as never), reply);
  };
  const counts = () =>
    readExposition(times.text())
      .samples.filter(({ name }) => name === 'csi_operations_seconds_count')
      .map(({ labels, value }) => [
        labels['driver_name'],
        labels['method_name'],
        labels['grpc_status_code'],
        value,
      ]);
  return { ask, counts, text: () => times.text() };
}

test('a call is of the driver that has said its name at the socket, with its status as Go spells it', async () => {
  const { ask, counts, text } = world();
  await ask(INFO, { kind: 'ok', reply: { name: 'a.test' } });
  await ask(STAGE, { kind: 'status', status: 5, message: '' });
  await ask(STAGE, { kind: 'broken', because: 'deadline', message: '' });
  await ask(STAGE, { kind: 'broken', because: 'unreachable', message: '' });
  await ask(STAGE, { kind: 'status', status: 4_711, message: '' });
  assert.deepEqual(counts(), [
    ['a.test', INFO, 'OK', 1],
    ['a.test', STAGE, 'NotFound', 1],
    ['a.test', STAGE, 'DeadlineExceeded', 1],
    ['a.test', STAGE, 'Unavailable', 1],
    ['a.test', STAGE, 'Unknown', 1],
  ]);
  assert.match(text(), /csi_operations_seconds_bucket\{.*NodeStageVolume.*,migrated="false",le="0.25"\} 0/);
  assert.match(text(), /csi_operations_seconds_bucket\{.*NodeStageVolume.*,migrated="false",le="0.5"\} 1/);
});

test('who has said no name, or none that a driver may have, is not counted, nor what is no call of CSI', async () => {
  const { ask, counts } = world();
  await ask(STAGE, { kind: 'ok', reply: {} });
  await ask(INFO, { kind: 'ok', reply: { name: 'a"\n{}' } });
  await ask(STAGE, { kind: 'ok', reply: {} });
  await ask(INFO, { kind: 'ok', reply: { name: 'b.test' } }, '/b.sock');
  await ask('/pluginregistration.Registration/GetInfo', { kind: 'ok', reply: {} }, '/b.sock');
  assert.deepEqual(counts(), [['b.test', INFO, 'OK', 1]]);
});
