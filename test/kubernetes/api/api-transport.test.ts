/** The port to an API server: the one in memory and the one over HTTP/2 keep the same contract. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { ApiTransport } from '../../../kubernetes/api/api-transport.ts';
import { createHttp2Transport } from '../../../kubernetes/api/wire/http2-transport.ts';
import type { AbsolutePath } from '../../../mount/host.ts';
import { apiTransportContract, type TransportUnderTest } from '../../contract/api-transport.ts';
import { until } from '../../until.ts';
import { ApiStore, NOT_OF_THE_SERVER } from './api-store.ts';
import { handClock } from './hand-clock.ts';
import { serveStore, type StoreServer } from './store-server.ts';
import { storeTransport } from './store-transport.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const GET = { method: 'GET', answerBytesMax: 1_000_000, deadlineMs: 60_000 } as const;
const CLOCK = {
  nowMs: () => performance.now(),
  timer(delayMs: number, fire: () => void) {
    const timer = setTimeout(fire, delayMs);
    return () => clearTimeout(timer);
  },
};

function under(store: ApiStore, transport: ApiTransport, close: () => Promise<void>): TransportUnderTest {
  store.denied.add('/api/v1/namespaces/secret');
  return {
    transport,
    denied: '/api/v1/namespaces/secret/configmaps',
    putConfigMap: async (name, data) =>
      void store.put(MAPS, { metadata: { name, namespace: 'default' }, data }),
    removeConfigMap: async (name) => store.remove(MAPS, name),
    close,
  };
}

interface Wire {
  readonly store: ApiStore;
  readonly server: StoreServer;
  readonly transport: ApiTransport;
  readonly tokenFile: AbsolutePath;
  /** What was said of the files. */
  readonly warnings: readonly string[];
  close(): Promise<void>;
}

async function wire(settings: { readonly streamsMax?: number } = {}): Promise<Wire> {
  const store = new ApiStore();
  const server = await serveStore(store, settings);
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-test-'));
  const tokenFile = join(directory, 'token') as AbsolutePath;
  writeFileSync(tokenFile, 'first\n');
  const warnings: string[] = [];
  const onWarning = (message: string): void => void warnings.push(message);
  const parts = { access: server.access(tokenFile), clock: CLOCK, userAgent: 'test', onWarning };
  const transport = createHttp2Transport(parts);
  return {
    ...{ store, server, transport, tokenFile, warnings },
    async close() {
      transport.close();
      await server.close();
      rmSync(directory, { recursive: true });
    },
  };
}

async function opened(t: TestContext, settings: { readonly streamsMax?: number } = {}): Promise<Wire> {
  const one = await wire(settings);
  t.after(() => one.close());
  return one;
}

apiTransportContract('in memory', async () => {
  const store = new ApiStore();
  return under(store, storeTransport(store, CLOCK), async () => {});
});

apiTransportContract('over HTTP/2', async () => {
  const { store, transport, close } = await wire();
  return under(store, transport, close);
});

test('a request that gets no answer ends at its deadline, and a write may have been done', async (t) => {
  const { server, transport } = await opened(t);
  // There is a connection: of what finds none in time nothing is sent.
  assert.ok((await transport.request({ ...GET, path: MAPS })).ok);
  server.hang(true);
  const read = await transport.request({ ...GET, path: MAPS, deadlineMs: 200 });
  assert.deepEqual(!read.ok && [read.failure.code, read.failure.effect], ['unreachable', 'none']);
  const path = '/api/v1/namespaces/default/serviceaccounts/a/token';
  const write = await transport.request({ ...GET, method: 'POST', path, body: {}, deadlineMs: 200 });
  assert.deepEqual(!write.ok && [write.failure.code, write.failure.effect], ['unreachable', 'unknown']);
});

test('a request ends at its deadline without a connection, and is not sent by one that comes', async (t) => {
  const { store, server, tokenFile } = await opened(t);
  store.put(MAPS, { metadata: { name: 'one', namespace: 'default' } });
  const clock = handClock();
  // It takes connections, and lets nothing through until it is told to.
  const held: Socket[] = [];
  const between = createServer((socket) => void held.push(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve));
  const [port, behind] = [portOf(between.address()), Number(new URL(server.access(tokenFile).server).port)];
  const access = { ...server.access(tokenFile), server: `https://127.0.0.1:${port}` };
  const transport = createHttp2Transport({ access, clock, userAgent: 'test' });
  t.after(() => {
    transport.close();
    for (const one of held) one.destroy();
    between.close();
  });
  const path = `${MAPS}/one`;
  const answers: unknown[] = [];
  const write = { ...GET, method: 'PATCH', path, body: { data: {} }, deadlineMs: 2_000 } as const;
  void transport.request(write).then((answered) => answers.push(answered));
  await until('a connection is tried', () => held.length > 0);
  await clock.go(2_000);
  const failure = { code: 'unreachable', message: 'no answer in 2000 ms', effect: 'none' };
  assert.deepEqual(answers, [{ ok: false, failure }]);
  for (const one of held) one.pipe(connect(behind, '127.0.0.1')).pipe(one);
  assert.ok((await transport.request({ ...GET, path })).ok);
  assert.deepEqual(store.asked, [`GET ${path}`]);
});

function portOf(address: ReturnType<Server['address']>): number {
  return typeof address === 'object' && address !== null ? address.port : assert.fail();
}

test('what somebody between us and the server does not find is not absent, and may have been written', async (t) => {
  const { store, transport } = await opened(t);
  store.put(MAPS, { metadata: { name: 'one', namespace: 'default' } });
  store.instead = () => NOT_OF_THE_SERVER;
  const path = `${MAPS}/one`;
  const read = await transport.request({ ...GET, path });
  assert.deepEqual(!read.ok && [read.failure.code, read.failure.effect], ['failed', 'none']);
  const write = await transport.request({ ...GET, method: 'PATCH', path, body: {} });
  assert.deepEqual(!write.ok && [write.failure.code, write.failure.effect], ['failed', 'unknown']);
});

test('after a lost connection the next request has another one', async (t) => {
  const { store, server, transport } = await opened(t);
  store.put(MAPS, { metadata: { name: 'one', namespace: 'default' } });
  assert.ok((await transport.request({ ...GET, path: `${MAPS}/one` })).ok);
  let end: unknown = 'open';
  transport.watch(
    { path: `${MAPS}?watch=1&resourceVersion=1`, lineBytesMax: 1_000, deadlineMs: 300_000 },
    { opened: () => server.cut(), line: () => {}, ended: (failure) => (end = failure?.code) },
  );
  await until('the watch has ended', () => end !== 'open');
  assert.equal(end, 'unreachable');
  await until('the connections are gone', () => server.sessions() === 0);
  assert.ok((await transport.request({ ...GET, path: `${MAPS}/one` })).ok);
});

test('a server that tells its connections to go loses no request', async (t) => {
  const { store, server, transport } = await opened(t);
  store.put(MAPS, { metadata: { name: 'one', namespace: 'default' } });
  for (let turn = 0; turn < 5; turn += 1) {
    assert.ok((await transport.request({ ...GET, path: `${MAPS}/one` })).ok);
    server.goAway();
    await until('the connection is gone', () => server.sessions() === 0);
  }
});

test('a server that allows few streams gets more connections, and requests are not delayed by watches', async (t) => {
  const { store, server, transport } = await opened(t, { streamsMax: 3 });
  let open = 0;
  for (let count = 0; count < 9; count += 1) {
    transport.watch(
      { path: `${MAPS}?watch=1&resourceVersion=1`, lineBytesMax: 1_000, deadlineMs: 300_000 },
      { opened: () => (open += 1), line: () => {}, ended: () => {} },
    );
    await until('it is open', () => open === count + 1);
  }
  store.put(MAPS, { metadata: { name: 'one', namespace: 'default' } });
  assert.ok((await transport.request({ ...GET, path: `${MAPS}/one` })).ok);
  assert.equal(server.sessions(), 4);
});

for (const [what, watches, connections] of [
  ['that begin at once', 21, 7],
  ['of a node with many pods', 60, 20],
] as const)
  test(`a server that allows few streams gets connections for all watches ${what}`, async (t) => {
    const { server, transport } = await opened(t, { streamsMax: 3 });
    let open = 0;
    for (let count = 0; count < watches; count += 1)
      transport.watch(
        { path: `${MAPS}?watch=1&resourceVersion=1`, lineBytesMax: 1_000, deadlineMs: 300_000 },
        { opened: () => (open += 1), line: () => {}, ended: () => {} },
      );
    await until('all are open', () => open === watches);
    assert.equal(server.sessions(), connections);
  });

test('many requests at once wait in line on a few connections, and each is answered', async (t) => {
  const { store, server, transport } = await opened(t, { streamsMax: 3 });
  store.put(MAPS, { metadata: { name: 'one', namespace: 'default' } });
  const ask = (): Promise<{ readonly ok: boolean }> => transport.request({ ...GET, path: `${MAPS}/one` });
  const answers = await Promise.all(Array.from({ length: 300 }, ask));
  assert.ok(answers.every(({ ok }) => ok));
  assert.ok(server.met() <= 2, `${server.met()} connections`);
});

test('a token file is read again when its token is not taken any more', async (t) => {
  const { store, server, transport, tokenFile } = await opened(t);
  store.put(MAPS, { metadata: { name: 'one', namespace: 'default' } });
  await transport.request({ ...GET, path: `${MAPS}/one` });
  writeFileSync(tokenFile, 'second\n');
  store.instead = () =>
    server.authorizations.at(-1) === 'Bearer second'
      ? undefined
      : { status: 401, body: { message: 'Unauthorized' } };
  assert.ok((await transport.request({ ...GET, path: `${MAPS}/one` })).ok);
  assert.deepEqual(server.authorizations, ['Bearer first', 'Bearer first', 'Bearer second']);
});

test('SE-38: a token that others can write is not sent, wherever a link to it lies', async (t) => {
  const { store, server, transport, tokenFile } = await opened(t);
  store.put(MAPS, { metadata: { name: 'one', namespace: 'default' } });
  const ask = async (): Promise<string> => {
    const answered = await transport.request({ ...GET, path: `${MAPS}/one` });
    return answered.ok ? 'ok' : `${answered.failure.code}: ${answered.failure.message}`;
  };
  const target = `${tokenFile}-1`;
  renameSync(tokenFile, target);
  symlinkSync('token-1', tokenFile);
  for (const mode of [0o620, 0o602]) {
    chmodSync(target, mode);
    assert.match(
      await ask(),
      /^unauthenticated: .*token .*can be written by others .*mode 06[0-9]{2}.*: chmod go-w/,
    );
  }
  chmodSync(target, 0o600);
  if (process.getuid?.() === 0) {
    chownSync(target, 4_242, 0);
    assert.match(await ask(), /^unauthenticated: .*token .*belongs to uid 4242, not to root/);
    chownSync(target, 0, 0);
  }
  assert.deepEqual(server.authorizations, []);
  assert.equal(await ask(), 'ok');
});

test('SE-38: a token that others can read is warned of once, and one that they cannot is not', async (t) => {
  const { store, transport, tokenFile, warnings } = await opened(t);
  store.instead = () => ({ status: 401, body: {} });
  const ask = async (mode: number): Promise<void> => {
    chmodSync(tokenFile, mode);
    await transport.request({ ...GET, path: MAPS });
  };
  await ask(0o600);
  assert.deepEqual(warnings, []);
  await ask(0o640);
  await ask(0o640);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /token.* can be read by others .*mode 0640.*: chmod go-r/);
});

test('a token file that cannot be read is named, and its token is in no failure', async (t) => {
  const { store, transport, tokenFile } = await opened(t);
  writeFileSync(tokenFile, 'canary');
  store.instead = () => ({ status: 401, body: { message: 'Unauthorized' } });
  const refused = await transport.request({ ...GET, path: MAPS });
  assert.ok(!refused.ok && refused.failure.code === 'unauthenticated');
  assert.doesNotMatch(JSON.stringify(refused), /canary/);
  rmSync(tokenFile);
  store.instead = () => ({ status: 401, body: {} });
  const missing = await transport.request({ ...GET, path: MAPS });
  assert.ok(!missing.ok);
  assert.match(missing.failure.message, /token cannot be read: ENOENT/);
  writeFileSync(tokenFile, '');
});

for (const [what, bytes] of Object.entries({
  'a line end in it': 'two\nlines',
  'a null byte': 'a\0b',
  'letters of no header': 'caf\u00e9',
  nothing: '\n',
}))
  test(`a token file with ${what} is refused by its path, and every request is answered`, async (t) => {
    const { store, transport, tokenFile, server } = await opened(t);
    store.put(MAPS, { metadata: { name: 'one', namespace: 'default' } });
    writeFileSync(tokenFile, bytes);
    const refused = await transport.request({ ...GET, path: `${MAPS}/one` });
    assert.deepEqual(!refused.ok && refused.failure.code, 'unauthenticated');
    assert.match((!refused.ok && refused.failure.message) || '', /token holds no token/);
    let end: string | undefined;
    transport.watch(
      { path: `${MAPS}?watch=1&resourceVersion=1`, lineBytesMax: 1_000, deadlineMs: 300_000 },
      { opened: () => {}, line: () => {}, ended: (failure) => (end = failure?.code) },
    );
    await until('the watch has ended', () => end !== undefined);
    assert.equal(end, 'unauthenticated');
    assert.deepEqual(server.authorizations, []);
    writeFileSync(tokenFile, 'good\n');
    assert.ok((await transport.request({ ...GET, path: `${MAPS}/one` })).ok);
  });

test('a server that turns every connection away is asked once for each request', async (t) => {
  const { store, server, transport } = await opened(t);
  store.put(MAPS, { metadata: { name: 'one', namespace: 'default' } });
  server.turnAway(true);
  const refused = await transport.request({ ...GET, path: `${MAPS}/one`, deadlineMs: 2_000 });
  assert.deepEqual(!refused.ok && refused.failure.code, 'unreachable');
  assert.ok(server.met() <= 2, `${server.met()} connections`);
  server.turnAway(false);
  assert.ok((await transport.request({ ...GET, path: `${MAPS}/one` })).ok);
});

test('a server with a certificate of somebody else is not spoken with', async (t) => {
  const { server, tokenFile } = await opened(t);
  const other = await opened(t);
  const { authority } = other.server.access(tokenFile);
  const transport = createHttp2Transport({
    access: { ...server.access(tokenFile), authority },
    clock: CLOCK,
    userAgent: 'test',
  });
  t.after(() => transport.close());
  const answered = await transport.request({ ...GET, path: MAPS });
  assert.deepEqual(!answered.ok && answered.failure.code, 'unreachable');
  // Who tells it to people names the server.
  assert.doesNotMatch((!answered.ok && answered.failure.message) || 'https:', /https:/);
  assert.deepEqual(server.authorizations, []);
});
