import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Result } from '../../../mount/failure.ts';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import { value } from '../../value.ts';
import { hostContract } from '../../contract/host.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { realHost, scratchDirectory } from '../scratch.ts';

const skip = inPrivateNamespace();

if (skip === false)
  hostContract('LinuxHost', async (t) => ({
    host: await realHost(t, { stampAgeMs: 50 }),
    root: scratchDirectory(t),
  }));
else test('LinuxHost keeps the sentences of Host', { skip }, () => {});

test('INV-29: its clock is that of the boot, and goes on in the next process', { skip }, async (t) => {
  const host = await realHost(t);
  const program = 'process.stdout.write(String(process.hrtime.bigint()))';
  const beforeMs = host.nowMs();
  const betweenMs = Number(execFileSync(process.execPath, ['-e', program], { encoding: 'utf8' })) / 1e6;
  assert.ok(beforeMs < betweenMs && betweenMs < host.nowMs(), `${beforeMs}, ${betweenMs}`);
});

/** An ext4 of its own to freeze: who writes to it then sleeps in the kernel, SIGKILL or not. Ends thawed and gone. */
async function withFreezable(
  root: AbsolutePath,
  use: (target: AbsolutePath) => Promise<void>,
): Promise<void> {
  const [image, target] = [below(root, 'image'), below(root, 'freezable')];
  const run = (tool: string, ...argv: string[]): string =>
    execFileSync(tool, argv, { encoding: 'utf8' }).trim();
  writeFileSync(image, '');
  truncateSync(image, 64 * 1_024 * 1_024);
  mkdirSync(target);
  run('mkfs.ext4', '-q', '-F', image);
  const device = run('losetup', '--find', '--show', image);
  try {
    run('mount', device, target);
    try {
      await use(target);
    } finally {
      thaw(target);
      run('umount', target);
    }
  } finally {
    run('losetup', '--detach', device);
  }
}

const thaw = (target: AbsolutePath): void =>
  void spawnSync('fsfreeze', ['--unfreeze', target], { stdio: 'ignore' });
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('a write that leaves no other time of modification and no other size is seen', { skip }, async (t) => {
  const host = await realHost(t, { stampAgeMs: 0 });
  const root = scratchDirectory(t);
  const file = join(root, 'f');
  const writeBackdated = (content: string): void => {
    writeFileSync(file, content);
    utimesSync(file, 1_000_000_000, 1_000_000_000);
  };
  writeBackdated('before');
  const writtenMs = statSync(file).ctimeMs;
  const reading = { entriesMax: 10, fileBytesMax: 100 };
  const [before] = value(await host.readDirectoryFiles(root, reading));
  assert.ok(before?.stamp !== undefined);
  // The clock of a file system ticks, at the slowest, a hundred times a second.
  while (statSync(file).ctimeMs === writtenMs) writeBackdated('behind');
  const known = new Map([['f', before.stamp]]);
  const [after] = value(await host.readDirectoryFiles(root, { ...reading, known }));
  assert.deepEqual(after?.content?.ok === true && Buffer.from(after.content.value).toString(), 'behind');
});

test('a file that was written a moment ago has no stamp', { skip }, async (t) => {
  const host = await realHost(t, { stampAgeMs: 3_600_000 });
  const root = scratchDirectory(t);
  writeFileSync(join(root, 'f'), 'young');
  const [entry] = value(await host.readDirectoryFiles(root, { entriesMax: 10, fileBytesMax: 100 }));
  assert.deepEqual([entry?.content?.ok, entry?.stamp], [true, undefined]);
});

test('a file of proc is read, whose size is told as 0, however long it may be', { skip }, async (t) => {
  const host = await realHost(t);
  const env = { LONG: 'x'.repeat(100_000) };
  const child = spawn('/bin/sleep', ['infinity'], { env, stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  const environment = `/proc/${child.pid}/environ` as AbsolutePath;
  const whole = `LONG=${env.LONG}\0`;
  for (const bytesMax of [Number.MAX_SAFE_INTEGER, whole.length]) {
    const content = value(await host.readFile(environment, bytesMax));
    assert.equal(Buffer.from(content).toString(), whole);
  }
  const tooLong = await host.readFile(environment, whole.length - 1);
  assert.equal(tooLong.ok ? 'ok' : tooLong.failure.code, 'too-large');
});

test('a call that the kernel holds on to stays open, is counted, and holds up nothing else', {
  skip,
}, async (t) => {
  const host = await realHost(t, { deadlinesMs: { path: 5_000 } });
  const root = scratchDirectory(t);
  const write = (path: AbsolutePath): Promise<Result<void>> =>
    host.writeFile(path, new Uint8Array(10), { mode: 0o600, durable: true });
  await withFreezable(root, async (target) => {
    assert.ok((await host.inspect(target)).ok);
    execFileSync('fsfreeze', ['--freeze', target]);
    let open = true;
    const stuck = write(below(target, 'f')).finally(() => {
      open = false;
    });
    while (host.abandonedCalls() === 0) await pause(20);
    assert.ok((await write(below(root, 'f'))).ok);
    assert.ok((await host.lookUpMount(target)).ok);
    assert.ok(open, 'a deadline alone settles nothing');
    assert.equal(host.abandonedCalls(), 1);
    thaw(target);
    const result = await stuck;
    assert.deepEqual(result.ok ? 'ok' : [result.failure.code, result.failure.effect], [
      'deadline-passed',
      'unknown',
    ]);
    assert.equal(host.abandonedCalls(), 0);
  });
});

test('a service manager is told what it asked to be told, and nobody else', { skip }, async (t) => {
  const host = await realHost(t);
  delete process.env['NOTIFY_SOCKET'];
  assert.deepEqual(await host.notify('READY=1'), { ok: true, value: undefined });
  assert.equal(host.brokers().length, 0);
  process.env['NOTIFY_SOCKET'] = below(scratchDirectory(t), 'nobody-listens');
  t.after(() => {
    delete process.env['NOTIFY_SOCKET'];
  });
  assert.ok(!(await host.notify('READY=1')).ok);
});
