import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { AbsolutePath } from '../../../../mount/host.ts';
import type { RemoteReply } from '../../../../mount/remote-call.ts';
import { IdentityService, NodeService } from '../../../../plugins/csi/wire/generated/csi.ts';
import { createGrpcRemote, serveGrpc } from '../../../../plugins/csi/wire/grpc.ts';
import { GrpcStatus } from '../../../../plugins/csi/wire/grpc-service.ts';

const directory = mkdtempSync(join(tmpdir(), 'mooring-grpc-'));
const remote = createGrpcRemote();
after(() => {
  remote.close();
  rmSync(directory, { recursive: true });
});

let sockets = 0;
function freshPath(): AbsolutePath {
  sockets += 1;
  return join(directory, `${sockets}.sock`) as AbsolutePath;
}

/** What @grpc/grpc-js makes of a message over its limit. */
const RESOURCE_EXHAUSTED = 8;
const method = IdentityService.getPluginInfo;
const info = (name: string) => ({ name, vendorVersion: '', manifest: {} });

function ask(path: AbsolutePath, options: { deadlineMs?: number; inode?: number; broken?: boolean } = {}) {
  const inode = options.inode ?? lstatSync(path, { throwIfNoEntry: false })?.ino ?? 0;
  const responseDeserialize =
    options.broken === true
      ? () => {
          throw new Error('garbage');
        }
      : method.responseDeserialize;
  const call = { socket: { path, inode }, method: { ...method, responseDeserialize }, request: {} };
  return remote.call({ ...call, deadlineMs: options.deadlineMs ?? 30_000 });
}

function serve(path: AbsolutePath, getPluginInfo: () => Promise<ReturnType<typeof info>>) {
  return serveGrpc(path, [{ definition: IdentityService, implementation: { getPluginInfo } }]);
}

const because = (reply: RemoteReply<unknown>) => (reply.kind === 'broken' ? reply.because : reply.kind);

test('a reply comes back, and the socket is private and alone in its directory', async () => {
  const path = freshPath();
  const server = await serve(path, async () => info('x'));
  assert.deepEqual(await ask(path), { kind: 'ok', reply: info('x') });
  assert.equal(lstatSync(path).mode & 0o777, 0o600);
  assert.ok(readdirSync(directory).every((name) => !name.startsWith('.')));
  await server.close();
  assert.equal(lstatSync(path, { throwIfNoEntry: false }), undefined);
});

test('GR-07: every status a server sends arrives as it is, 0 to 16 and beyond', async () => {
  const path = freshPath();
  let code = 1;
  const server = await serve(path, () => Promise.reject(new GrpcStatus(code, `code ${code} ü\n`)));
  for (code of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 99]) {
    assert.deepEqual(await ask(path), { kind: 'status', status: code, message: `code ${code} ü\n` });
  }
  await server.close();
});

test('a method without an implementation answers UNIMPLEMENTED', async () => {
  const path = freshPath();
  const server = await serve(path, async () => info('x'));
  const call = { socket: { path, inode: lstatSync(path).ino }, method: NodeService.nodeGetInfo, request: {} };
  const reply = await remote.call({ ...call, deadlineMs: 30_000 });
  assert.equal(reply.kind === 'status' && reply.status, 12);
  await server.close();
});

test('DR-01: a server that never answers is a deadline of ours', async () => {
  const path = freshPath();
  const server = await serve(path, () => new Promise(() => {}));
  assert.equal(because(await ask(path, { deadlineMs: 60 })), 'deadline');
  await server.close();
});

test('DR-02: a server that goes in the middle of a call is unreachable', async () => {
  const path = freshPath();
  const server = await serve(path, async () => {
    await server.close();
    return new Promise(() => {});
  });
  assert.equal(because(await ask(path)), 'unreachable');
});

test('nothing there, a file, nobody listening: unreachable at once', async () => {
  const file = freshPath();
  writeFileSync(file, '');
  const dead = freshPath();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(dead, resolve));
  for (const path of [freshPath(), file]) assert.equal(because(await ask(path)), 'unreachable');
  server.close();
  assert.equal(because(await ask(dead, { inode: 1 })), 'unreachable');
});

test('a path that the kernel would cut off is refused on both ends', async () => {
  const path = join(directory, 'x'.repeat(108)) as AbsolutePath;
  const reply = await ask(path);
  assert.equal(because(reply), 'unreachable');
  assert.match(reply.kind === 'broken' ? reply.message : '', /107/);
  await assert.rejects(
    serve(path, async () => info('x')),
    /107/,
  );
});

test('an answer that does not decode is undecodable, not a status', async () => {
  const path = freshPath();
  const server = await serve(path, async () => info('x'));
  assert.equal(because(await ask(path, { broken: true })), 'undecodable');
  await server.close();
});

test('an answer of more than four mebibytes is not taken in, and the next one is', async (t) => {
  const path = freshPath();
  let name = 'x'.repeat(5 * 1_024 * 1_024);
  const server = await serve(path, async () => info(name));
  t.after(() => server.close());
  const reply = await ask(path);
  assert.equal(reply.kind === 'status' ? reply.status : reply.kind, RESOURCE_EXHAUSTED);
  name = 'x'.repeat(1_024);
  assert.deepEqual(await ask(path), { kind: 'ok', reply: info(name) });
});

test('GR-07: OK without a message is undecodable, not UNIMPLEMENTED', async () => {
  const path = freshPath();
  const server = createHttp2Server();
  server.on('stream', (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end();
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  assert.equal(because(await ask(path)), 'undecodable');
  server.close();
});

test('INV-25: of a call that broke no word of a server is told that says nothing but a status', async (t) => {
  const path = freshPath();
  const server = createHttp2Server();
  t.after(() => server.close());
  server.on('stream', (stream) => {
    const withoutDate = { endStream: true, sendDate: false };
    stream.respond({ ':status': 200, 'grpc-status': '13', 'grpc-message': 'c4nary' }, withoutDate);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const reply = await ask(path);
  assert.equal(because(reply), 'unreachable');
  assert.doesNotMatch(JSON.stringify(reply), /c4nary/);
});

test('DR-21: a server that accepts and stays silent does not stop the one that takes its place', async () => {
  const path = freshPath();
  const left: Promise<unknown>[] = [];
  const silent: Server = createServer((connection) => left.push(once(connection.resume(), 'close')));
  await new Promise<void>((resolve) => silent.listen(path, resolve));
  assert.equal(because(await ask(path, { deadlineMs: 60 })), 'deadline');
  const server = await serve(path, async () => info('new'));
  assert.deepEqual(await ask(path), { kind: 'ok', reply: info('new') });
  assert.equal(left.length, 1);
  await Promise.all(left);
  silent.close();
  await server.close();
});

test('DR-19: a new inode is a new connection, while calls to the old one run out', async () => {
  const path = freshPath();
  let answer: (reply: ReturnType<typeof info>) => void = () => {};
  const old = await serve(
    path,
    () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  );
  const late = ask(path);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const server = await serve(path, async () => info('new'));
  assert.deepEqual(await ask(path), { kind: 'ok', reply: info('new') });
  answer(info('old'));
  assert.deepEqual(await late, { kind: 'ok', reply: info('old') });
  await old.close();
  assert.deepEqual(
    await ask(path),
    { kind: 'ok', reply: info('new') },
    'closing the old left the new socket alone',
  );
  await server.close();
});

test('DR-21: a hundred restarts, with a call during each outage, and the next call always arrives', async () => {
  const path = freshPath();
  for (let round = 0; round < 100; round += 1) {
    const server = await serve(path, async () => info(`${round}`));
    assert.deepEqual(await ask(path), { kind: 'ok', reply: info(`${round}`) });
    await server.close();
    assert.equal(because(await ask(path, { inode: round })), 'unreachable');
  }
});

test('what is not a socket is not replaced by a server', async () => {
  const path = freshPath();
  writeFileSync(path, 'mine');
  chmodSync(path, 0o600);
  await assert.rejects(
    serve(path, async () => info('x')),
    /not a socket/,
  );
  assert.ok(lstatSync(path).isFile());
});
