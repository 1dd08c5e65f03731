/** The yardstick itself: a file system that serves, hangs, fails and dies when it is told to. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scratchDirectory } from '../mount/scratch.ts';
import { inPrivateNamespace } from '../real/namespace.ts';
import { mountFuse } from './fuse-server.ts';

const skip = inPrivateNamespace();

test('it serves files; it hangs until it serves again; it fails as it is told; dead, it is ENOTCONN', {
  skip,
}, async (t) => {
  const target = join(scratchDirectory(t), 'fuse');
  mkdirSync(target);
  const fuse = await mountFuse(target);
  writeFileSync(join(target, 'note'), 'precious');
  assert.equal(readFileSync(join(target, 'note'), 'utf8'), 'precious');
  assert.deepEqual(readdirSync(target), ['note']);

  await fuse.set({ kind: 'hang' });
  const asker = spawn('cat', [join(target, 'note')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const said: Buffer[] = [];
  asker.stdout.on('data', (chunk: Buffer) => said.push(chunk));
  while ((await fuse.waiting()) === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asker.exitCode, null, 'who asks waits');
  const gone = once(asker, 'close');
  await fuse.set({ kind: 'serve' });
  await gone;
  assert.equal(Buffer.concat(said).toString(), 'precious');

  await fuse.set({ kind: 'fail', errno: 5 });
  assert.throws(() => statSync(target), { code: 'EIO' });
  await fuse.kill();
  assert.throws(() => statSync(target), { code: 'ENOTCONN' });
  assert.equal(spawnSync('umount', ['--', target]).status, 0);
});
