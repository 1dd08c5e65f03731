import assert from 'node:assert/strict';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { request } from 'node:http';
import { after, test } from 'node:test';
import { parseListenAddress } from '../../../mount/process/listen-address.ts';
import { createMetricsServer, type MetricsServer } from '../../../mount/process/metrics-server.ts';

const open: MetricsServer[] = [];
const errors: string[] = [];
const nothing = () => {};
/** Time passes where a test says so. */
let nowMs = 0;
/** Who is answered with a page looks how old it is. */
let looks = 0;
const clock = {
  nowMs: () => {
    looks += 1;
    return nowMs;
  },
};
const log = { debug: nothing, info: nothing, warn: nothing, error: (text: string) => errors.push(text) };

after(async () => {
  for (const server of open) await server.close();
});

/** A port that nobody has at this moment. */
async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

async function serve(metrics: () => string): Promise<number> {
  const port = await freePort();
  const parts = { listen: { address: '127.0.0.1', port }, metrics, clock, log: log as never };
  const server = createMetricsServer(parts);
  assert.ok((await server.listen()).ok);
  open.push(server);
  return port;
}

interface Answer {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly text: string;
}

function ask(port: number, method: string, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () => {
        const { statusCode: status, headers } = response;
        resolve({ status, type: headers['content-type'], text: Buffer.concat(parts).toString() });
      });
    });
    sent.on('error', reject);
    sent.end();
  });
}

test('GET /metrics is the text of this moment; nothing else is answered, and nothing else is a method', async () => {
  let count = 0;
  const port = await serve(() => `mooring_passes_total ${++count}\n`);
  assert.deepEqual(await ask(port, 'GET', '/metrics'), {
    status: 200,
    type: 'text/plain; version=0.0.4; charset=utf-8',
    text: 'mooring_passes_total 1\n',
  });
  nowMs += 1_000;
  assert.equal((await ask(port, 'GET', '/metrics?x=1')).text, 'mooring_passes_total 2\n');
  assert.deepEqual((await ask(port, 'HEAD', '/metrics')).text, '');
  assert.equal((await ask(port, 'GET', '/v1/status')).status, 404);
  for (const method of ['POST', 'DELETE', 'PUT'])
    assert.equal((await ask(port, method, '/metrics')).status, 405);
});

const SLOW_CLIENTS = 200;

/** One that connects and says no more than this; settles with it when the server has it. */
function slowClient(port: number, said: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port }, () => {
      socket.write(said, () => resolve(socket));
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') resolve(socket);
      else reject(error);
    });
    socket.resume();
  });
}

const untilClosed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });

test('slow clients, however many, keep nobody from an answer, and are ended', async () => {
  const port = await serve(() => 'mooring_up 1\n');
  const slow: Socket[] = [];
  for (const said of [
    '',
    'G',
    'GET /metrics HTTP/1.1\r\nx: ',
    'POST /metrics HTTP/1.1\r\ncontent-length: 9\r\nhost: a\r\n\r\nx',
  ]) {
    for (let count = 0; count < SLOW_CLIENTS / 4; count += 1) slow.push(await slowClient(port, said));
    assert.equal((await ask(port, 'GET', '/metrics')).text, 'mooring_up 1\n');
  }
  await Promise.all(slow.map(untilClosed));
});

test('requests on one connection, however many at once, cost one page, and end with it', async () => {
  let made = 0;
  looks = 0;
  const port = await serve(() => `mooring_up ${++made}\n${'x'.repeat(100_000)}`);
  const socket = await slowClient(port, 'GET /metrics HTTP/1.1\r\nhost:\r\n\r\n'.repeat(2_000));
  await untilClosed(socket);
  assert.deepEqual([made, looks], [1, 2]);
  const kept = 'GET /metrics HTTP/1.0\r\nconnection: keep-alive\r\n\r\n';
  nowMs += 1_000;
  await untilClosed(await slowClient(port, kept.repeat(2_000)));
  assert.deepEqual([made, looks], [2, 4]);
});

test('a page is made once for all who ask within a second, or within ten times as long as it took', async () => {
  let made = 0;
  let costMs = 0;
  const port = await serve(() => {
    nowMs += costMs;
    return `mooring_pages ${++made}\n`;
  });
  const asked = async (): Promise<readonly string[]> => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(port, 'GET', '/metrics')));
    return [...new Set(answers.map(({ status, text }) => `${status} ${text}`))];
  };
  assert.deepEqual(await asked(), ['200 mooring_pages 1\n']);
  nowMs += 999;
  assert.deepEqual(await asked(), ['200 mooring_pages 1\n']);
  nowMs += 1;
  costMs = 400;
  assert.deepEqual(await asked(), ['200 mooring_pages 2\n']);
  nowMs += 3_999;
  assert.deepEqual(await asked(), ['200 mooring_pages 2\n']);
  nowMs += 1;
  assert.deepEqual(await asked(), ['200 mooring_pages 3\n']);
});

test('metrics that cannot be made are an answer, and the agent goes on', async () => {
  const port = await serve(() => {
    throw new Error('broken invariant');
  });
  for (let count = 0; count < 3; count += 1) assert.equal((await ask(port, 'GET', '/metrics')).status, 500);
  assert.deepEqual(errors, ['metrics failed']);
});

test('a port that somebody has is said to be', async () => {
  const port = await serve(() => '');
  const listen = { address: '127.0.0.1', port };
  const parts = { listen, metrics: () => '', clock, log: log as never };
  const second = createMetricsServer(parts);
  const listening = await second.listen();
  assert.ok(!listening.ok);
  assert.match(listening.failure.message, /EADDRINUSE/);
});

test('where to listen is an address and a port, never a name', () => {
  assert.deepEqual(parseListenAddress('127.0.0.1:9112'), { address: '127.0.0.1', port: 9_112 });
  assert.deepEqual(parseListenAddress('[::1]:1'), { address: '::1', port: 1 });
  for (const text of [
    '',
    ':9112',
    '9112',
    'localhost:9112',
    '127.0.0.1',
    '127.0.0.1:0',
    '127.0.0.1:65536',
    '127.0.0.1:09112',
    '256.0.0.1:9112',
    '::1:9112',
    '[127.0.0.1]:9112',
    '[::1]',
    '127.0.0.1:9112/metrics',
  ])
    assert.equal(parseListenAddress(text), undefined, text);
});
