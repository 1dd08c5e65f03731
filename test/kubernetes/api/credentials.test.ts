/** The files that prove who we are: exchanged while we run, and on a file system that may not answer. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { createHttp2Transport } from '../../../kubernetes/api/wire/http2-transport.ts';
import type { AbsolutePath } from '../../../mount/host.ts';
import { until } from '../../until.ts';
import { ApiStore } from './api-store.ts';
import { handClock } from './hand-clock.ts';
import { serveStore } from './store-server.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const GET = { method: 'GET', path: MAPS, answerBytesMax: 1_000_000, deadlineMs: 60_000 } as const;
const MINUTE_MS = 60_001;

/** Whoever waits for somebody to write to it waits no more. */
function hasBeenOpened(pipe: AbsolutePath): boolean {
  try {
    closeSync(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK));
    return true;
  } catch {
    // Nobody has it open at this moment.
    return false;
  }
}

async function wire(t: TestContext) {
  const store = new ApiStore();
  const server = await serveStore(store);
  const clock = handClock();
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-test-'));
  const [tokenFile, otherFile] = ['token', 'other'].map((name) => join(directory, name) as AbsolutePath);
  assert.ok(tokenFile !== undefined && otherFile !== undefined);
  for (const file of [tokenFile, otherFile]) writeFileSync(file, 'first\n', { mode: 0o600 });
  const warnings: string[] = [];
  const onWarning = (message: string): void => void warnings.push(message);
  const parts = { access: server.access(tokenFile), clock, userAgent: 'test', onWarning };
  const transport = createHttp2Transport(parts);
  t.after(async () => {
    transport.close();
    await server.close();
    rmSync(directory, { recursive: true });
  });
  /** In words: what came of one more request. */
  const ask = async (): Promise<string> => {
    const answered = await transport.request(GET);
    return answered.ok ? 'ok' : `${answered.failure.code}: ${answered.failure.message}`;
  };
  return { store, server, clock, tokenFile, otherFile, warnings, ask };
}

test('a file that cannot be read for a time: what it had before is used, and that is told once', async (t) => {
  const { store, server, clock, tokenFile, warnings, ask } = await wire(t);
  assert.equal(await ask(), 'ok');
  rmSync(tokenFile);
  await clock.go(MINUTE_MS);
  assert.deepEqual([await ask(), await ask()], ['ok', 'ok']);
  assert.deepEqual(server.authorizations, ['Bearer first', 'Bearer first', 'Bearer first']);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /token cannot be read: ENOENT; what was read before is used/);
  // Somebody writes it anew, in two steps.
  writeFileSync(tokenFile, '', { mode: 0o600 });
  assert.equal(await ask(), 'ok');
  writeFileSync(tokenFile, 'second\n');
  assert.equal(await ask(), 'ok');
  assert.equal(server.authorizations.at(-1), 'Bearer second');
  // What the server does not take any more is not used for that.
  rmSync(tokenFile);
  store.instead = () => ({ status: 401, body: {} });
  assert.match(await ask(), /^unauthenticated: .*token cannot be read: ENOENT/);
});

test('a file that others can write is not used, though it was before', async (t) => {
  const { server, clock, tokenFile, ask } = await wire(t);
  assert.equal(await ask(), 'ok');
  chmodSync(tokenFile, 0o666);
  await clock.go(MINUTE_MS);
  assert.match(await ask(), /^unauthenticated: .*token is not believed/);
  assert.deepEqual(server.authorizations, ['Bearer first']);
});

test('a file that does not answer any more: what it had before is used, and that is told once', async (t) => {
  const { server, clock, tokenFile, warnings, ask } = await wire(t);
  assert.equal(await ask(), 'ok');
  rmSync(tokenFile);
  execFileSync('mkfifo', ['-m', '0600', tokenFile]);
  await clock.go(MINUTE_MS);
  const said: string[] = [];
  for (let one = 0; one < 2; one += 1) void ask().then((answer) => said.push(answer));
  try {
    await clock.go(5_000);
    await until('both are answered', () => said.length === 2);
    assert.deepEqual([...said, await ask()], ['ok', 'ok', 'ok']);
  } finally {
    await until('it is let go', () => hasBeenOpened(tokenFile));
  }
  assert.deepEqual(server.authorizations, Array(4).fill('Bearer first'));
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /token cannot be read: no answer in 5000 ms; what was read before is used/);
});

test('a file that does not answer is named, keeps one thread for it, and is read once it does', async (t) => {
  const { server, clock, tokenFile, otherFile, ask } = await wire(t);
  rmSync(tokenFile);
  execFileSync('mkfifo', ['-m', '0600', tokenFile]);
  const said: string[] = [];
  // More than there are threads.
  const asked = 16;
  for (let one = 0; one < asked; one += 1) void ask().then((answer) => said.push(answer));
  try {
    await clock.go(30_000);
    assert.equal(said.length, asked);
    for (const one of said)
      assert.match(one, /^unauthenticated: .*token cannot be read: no answer in 5000 ms/);
    assert.ok((await readFile(otherFile)).length > 0);
    assert.match(await ask(), /token cannot be read: no answer in 5000 ms/);
  } finally {
    await until('all are let go', () => {
      hasBeenOpened(tokenFile);
      return said.length >= asked;
    });
  }
  assert.deepEqual(server.authorizations, []);
  rmSync(tokenFile);
  writeFileSync(tokenFile, 'second\n', { mode: 0o600 });
  await until('it is read', async () => (await ask()) === 'ok');
  assert.deepEqual(server.authorizations, ['Bearer second']);
});
