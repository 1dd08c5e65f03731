import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { lookForKubelet } from '../../../agent/process/kubelet-beside.ts';
import type { AbsolutePath } from '../../../mount/host.ts';

const NOBODY = 65_534;
const skip = process.getuid?.() === 0 ? false : 'SKIPPED: only root can become somebody else';

function scratchRoot(t: TestContext): AbsolutePath {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-kubelet-'));
  t.after(() => rmSync(root, { recursive: true }));
  return root as AbsolutePath;
}

/** A program of that name, which runs until its standard input ends. */
async function startKubelet(directory: string, rootDir: string, uid = 0): Promise<ChildProcess> {
  const program = join(directory, 'kubelet');
  chmodSync(directory, 0o755);
  writeFileSync(program, '#!/bin/sh\necho runs\nread -r line\n');
  chmodSync(program, 0o755);
  const kubelet = spawn(program, [`--root-dir=${rootDir}`], { stdio: ['pipe', 'pipe', 'inherit'], uid });
  await once(kubelet.stdout, 'data');
  return kubelet;
}

async function endKubelet(kubelet: ChildProcess): Promise<void> {
  kubelet.stdin?.end();
  await once(kubelet, 'close');
}

test('a process called kubelet that was told our root is found, and its end ends it', async (t) => {
  const root = scratchRoot(t);
  const kubelet = await startKubelet(root, root);
  const found = await lookForKubelet({ root, nodeName: undefined });
  assert.deepEqual([found?.code, found?.blocker], ['kubelet-running', `pid ${kubelet.pid}`]);
  await endKubelet(kubelet);
  assert.equal(await lookForKubelet({ root, nodeName: undefined }), undefined);
});

test('one whose root is a link to ours, or to what is above it, is found', async (t) => {
  const scratch = scratchRoot(t);
  const root = join(scratch, 'disk/root') as AbsolutePath;
  mkdirSync(root, { recursive: true });
  for (const [name, target] of [
    ['same', root],
    ['above', join(scratch, 'disk')],
  ] as const) {
    const link = join(scratch, name);
    symlinkSync(target, link);
    const kubelet = await startKubelet(scratch, link);
    const found = await lookForKubelet({ root, nodeName: undefined });
    await endKubelet(kubelet);
    assert.deepEqual([found?.code, found?.blocker], ['kubelet-running', `pid ${kubelet.pid}`], name);
    assert.match(found?.message ?? '', new RegExp(`with the root ${link}`));
  }
  const kubelet = await startKubelet(scratch, join(scratch, 'elsewhere'));
  const found = await lookForKubelet({ root, nodeName: undefined });
  await endKubelet(kubelet);
  assert.equal(found, undefined);
});

test('what a user without rights calls kubelet keeps no agent from starting', { skip }, async (t) => {
  const root = scratchRoot(t);
  const kubelet = await startKubelet(root, root, NOBODY);
  const found = await lookForKubelet({ root, nodeName: 'worker' });
  await endKubelet(kubelet);
  assert.equal(found, undefined);
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
