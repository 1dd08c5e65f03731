/** The files that prove who we are: exchanged while we run, and on a file system that may not answer. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
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

async function wire(t: TestContext) {
  const store = new ApiStore();
  const server = await serveStore(store);
  const clock = handClock();
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-test-'));
  const [tokenFile, otherFile] = ['token', 'other'].map((name) => join(directory, name) as AbsolutePath);
  assert.ok(tokenFile !== undefined && otherFile !== undefined);
  for (const file of [tokenFile, otherFile]) writeFileSync(file, 'first\n', { mode: 0o600 });
  const transport = createHttp2Transport({ access: server.access(tokenFile), clock, userAgent: 'test' });
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
  return { server, clock, tokenFile, otherFile, ask };
}

test('a file that does not answer is named, keeps one thread for it, and is read once it does', async (t) => {
  const { server, clock, tokenFile, otherFile, ask } = await wire(t);
  rmSync(tokenFile);
  execFileSync('mkfifo', ['-m', '0600', tokenFile]);
  const said: string[] = [];
  // More than there are threads.
  const asked = 16;
  for (let one = 0; one < asked; one += 1) void ask().then((answer) => said.push(answer));
  const release = (): void => {
    try {
      closeSync(openSync(tokenFile, constants.O_WRONLY | constants.O_NONBLOCK));
    } catch {
      // Nobody has it open at this moment.
    }
  };
  try {
    await clock.go(30_000);
    assert.equal(said.length, asked);
    for (const one of said)
      assert.match(one, /^unauthenticated: .*token cannot be read: no answer in 5000 ms/);
    assert.ok((await readFile(otherFile)).length > 0);
    assert.match(await ask(), /token cannot be read: no answer in 5000 ms/);
  } finally {
    await until('all are let go', () => {
      release();
      return said.length >= asked;
    });
  }
  assert.deepEqual(server.authorizations, []);
  rmSync(tokenFile);
  writeFileSync(tokenFile, 'second\n', { mode: 0o600 });
  await until('it is read', async () => (await ask()) === 'ok');
  assert.deepEqual(server.authorizations, ['Bearer second']);
});
