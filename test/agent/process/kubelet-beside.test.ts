import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { lookForKubelet } from '../../../agent/process/kubelet-beside.ts';
import type { AbsolutePath } from '../../../mount/host.ts';

function scratchRoot(t: TestContext): AbsolutePath {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-kubelet-'));
  t.after(() => rmSync(root, { recursive: true }));
  return root as AbsolutePath;
}

test('a process called kubelet that was told our root is found, and its end ends it', async (t) => {
  const root = scratchRoot(t);
  const program = join(root, 'kubelet');
  writeFileSync(program, '#!/bin/sh\necho runs\nread -r line\n', { mode: 0o700 });
  const kubelet = spawn(program, [`--root-dir=${root}`], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(kubelet.stdout, 'data');
  const found = await lookForKubelet({ root, nodeName: undefined });
  assert.deepEqual([found?.code, found?.blocker], ['kubelet-running', `pid ${kubelet.pid}`]);
  kubelet.stdin.end();
  await once(kubelet, 'close');
  assert.equal(await lookForKubelet({ root, nodeName: undefined }), undefined);
});

test('who serves a socket of a kubelet below the root is one; what such a one left is not', async (t) => {
  const root = scratchRoot(t);
  const socket = join(root, 'device-plugins/kubelet.sock');
  mkdirSync(join(root, 'device-plugins'));
  const server = createServer((one) => one.destroy());
  server.listen(socket);
  await once(server, 'listening');
  const found = await lookForKubelet({ root, nodeName: undefined });
  assert.deepEqual([found?.code, found?.blocker], ['kubelet-running', socket]);
  server.close();
  await once(server, 'close');
  assert.equal(await lookForKubelet({ root, nodeName: undefined }), undefined);
  writeFileSync(socket, '');
  assert.equal(await lookForKubelet({ root, nodeName: undefined }), undefined);
});
