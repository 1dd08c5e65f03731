/**
 * A kubelet comes to work with the root of an agent that runs, as it is shipped: the agent gives way, and the pod keeps
 * its volume.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { mountsBelow } from '../demo/machine.ts';
import { inPrivateNamespace } from './namespace.ts';
import { shippedPrograms, startShippedAgent } from './shipped-agent.ts';

const skip = inPrivateNamespace();
const { programs, scratch } = shippedPrograms('k');
/** EX_CONFIG: systemd does not start it again. */
const NOT_AGAIN = 78;

test('whoever serves the socket of a kubelet below our root ends the agent, which takes nothing down', {
  skip,
}, async (t) => {
  const agent = await startShippedAgent({ t, programs, scratch });
  await agent.untilMounted();
  const mounts = mountsBelow(agent.directory).map(({ target }) => target);
  assert.ok(mounts.length > 0);
  const directory = join(agent.directory, 'root/device-plugins');
  const socket = join(directory, 'kubelet.sock');
  mkdirSync(directory);
  const kubelet = createServer((one) => one.destroy()).listen(socket);
  await once(kubelet, 'listening');
  assert.deepEqual(await agent.ended('agent'), { code: NOT_AGAIN, signal: null });
  kubelet.close();
  await once(kubelet, 'close');
  assert.deepEqual(
    mountsBelow(agent.directory).map(({ target }) => target),
    mounts,
  );
  const told = agent
    .log()
    .split('\n')
    .filter((line) => line.includes('agent gives way'));
  assert.equal(told.length, 1);
  assert.match(told[0] ?? '', /kubelet-running/);
  assert.ok(told[0]?.includes(socket), told[0]);
});
