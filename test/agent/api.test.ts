import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { createServer as createHttpServer, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { changeAtAgent, getFromAgent } from '../../agent/cli/api-client.ts';
import { waitForPod } from '../../agent/cli/wait-command.ts';
import type { Screen } from '../../agent/cli/show.ts';
import { type ApiServer, type ApiServerParts, createApiServer } from '../../agent/api/api-server.ts';
import { statusOf } from '../../agent/status/status.ts';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import {
  DATA,
  desired,
  facts,
  LAYOUT,
  NO_MANIFESTS,
  path,
  richFacts,
  wanted,
  WEB,
} from './status-fixture.ts';
import { CLOCK } from '../../agent/drive/rig/machine.ts';
import { until } from '../until.ts';

const NOBODY: ApiServerParts['quarantine'] = {
  quarantine: async () => assert.fail('nobody asked for it'),
  endQuarantine: async () => assert.fail('nobody asked for it'),
  actual: () => new Map(),
  desired: () => richFacts().desired,
};

let folder = '';
let socket = '';
let change: () => void = () => {};
let servers: ApiServer[] = [];
let logged: string[] = [];
/** Says that something in the directory of the socket may have changed. */
let hint: () => void = () => {};
const DIRECTORY = {
  watch: (_directory: string, onHint: () => void) => {
    hint = onHint;
    return () => {};
  },
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mooring-api-'));
  socket = join(folder, 'run', 's.sock');
  servers = [];
  logged = [];
  hint = () => {};
});

afterEach(async () => {
  for (const server of servers) await server.close();
  rmSync(folder, { recursive: true });
});

function server(rest: Partial<ApiServerParts> = {}): ApiServer {
  const listeners = new Set<() => void>();
  change = () => {
    for (const listener of listeners) listener();
  };
  const write = (event: string): void => {
    logged.push(event);
  };
  const one = createApiServer({
    socket: path(socket),
    status: (revision) => statusOf(richFacts(), LAYOUT, revision),
    quarantine: NOBODY,
    mounts: () => undefined,
    releases: { released: () => {}, forceRelease: () => {} },
    manifests: NO_MANIFESTS,
    metrics: () => 'mooring_volumes 1\n',
    healthy: async () => true,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    clock: CLOCK,
    instance: 'abc',
    runtime: '20.0.0',
    log: { debug: write, info: write, warn: write, error: write },
    ...DIRECTORY,
    ...rest,
  });
  servers.push(one);
  return one;
}

async function listening(rest: Partial<ApiServerParts> = {}): Promise<void> {
  const listened = await server(rest).listen();
  assert(listened.ok, listened.ok ? '' : listened.failure.message);
}

interface Raw {
  readonly status: number;
  readonly body: unknown;
}

function raw(
  url: string,
  options: { readonly method?: string; readonly headers?: Record<string, string> } = {},
  body?: string,
): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: socket, path: url, ...options }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, body: text === '' ? '' : JSON.parse(text) }),
      );
    });
    asked.once('error', reject);
    asked.end(body);
  });
}

const codeOf = ({ body }: Raw): unknown => (body as { error?: { code?: unknown } }).error?.code;

test("the socket is root's alone, in a directory that all may enter", async () => {
  const umask = process.umask(0o077);
  await listening();
  process.umask(umask);
  assert.equal((statSync(socket).mode & 0o777).toString(8), '600');
  assert.equal((statSync(join(folder, 'run')).mode & 0o777).toString(8), '755');
});

test('status, explain, version and health answer as the documents say', async () => {
  await listening();
  const status = await raw('/v1/status');
  assert.deepEqual([status.status, status.body], [200, statusOf(richFacts(), LAYOUT, 'abc-0')]);
  const explained = await raw('/v1/explain?subject=default%2Fdb');
  assert.equal(explained.status, 200);
  assert.equal((explained.body as { kind: string }).kind, 'Explanation');
  const version = await raw('/v1/version');
  assert.deepEqual(version.body, {
    apiVersion: 'mooring/v1',
    kind: 'Version',
    version: '0.0.0-source',
    commit: 'unknown',
    runtime: '20.0.0',
  });
  assert.deepEqual((await raw('/v1/health')).body, {
    apiVersion: 'mooring/v1',
    kind: 'Health',
    healthy: true,
  });
  assert.deepEqual(await raw('/v1/health', { method: 'HEAD' }), { status: 200, body: '' });
});

test('metrics are plain text of Prometheus', async () => {
  await listening();
  const [type, text] = await new Promise<readonly [string | undefined, string]>((resolve) => {
    const asked = request({ socketPath: socket, path: '/metrics' }, (response) => {
      let all = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        all += chunk;
      });
      response.once('end', () => resolve([response.headers['content-type'], all]));
    });
    asked.end();
  });
  assert.deepEqual([type, text], ['text/plain; version=0.0.4; charset=utf-8', 'mooring_volumes 1\n']);
});

test('an agent whose brokers do not answer is not healthy', async () => {
  await listening({ healthy: async () => false });
  assert.equal((await raw('/v1/health')).status, 503);
});

test('what cannot be answered is refused with a code and a sentence', async () => {
  await listening();
  const refused = async (url: string, method = 'GET'): Promise<unknown> => {
    const answer = await raw(url, { method });
    return [answer.status, codeOf(answer)];
  };
  assert.deepEqual(await refused('/'), [404, 'not-found']);
  assert.deepEqual(await refused('/v1/status/'), [404, 'not-found']);
  assert.deepEqual(await refused('/v1/status', 'POST'), [405, 'method-not-allowed']);
  assert.deepEqual(await refused('/v1/status', 'DELETE'), [405, 'method-not-allowed']);
  assert.deepEqual(await refused('/v1/quarantine', 'PUT'), [405, 'method-not-allowed']);
  assert.deepEqual(await refused('/metrics', 'POST'), [405, 'method-not-allowed']);
  assert.deepEqual(await refused('/v1/explain'), [400, 'bad-request']);
  assert.deepEqual(await refused('/v1/explain?subject=nobody'), [404, 'subject-unknown']);
  assert.deepEqual(await refused('/v1/status?after=abc-0&waitMs=-1'), [400, 'bad-request']);
  assert.deepEqual(await refused('/v1/status?after=abc-0&waitMs=30001'), [400, 'bad-request']);
  assert.deepEqual(await refused(`/v1/explain?subject=${'x'.repeat(2_100)}`), [414, 'bad-request']);
  assert.deepEqual(await refused('//'), [400, 'bad-request']);
  assert.equal(
    (await raw('/v1/status', { headers: { x: 'y'.repeat(10_000) } }).catch(() => ({ status: 431 }))).status,
    431,
  );
  assert.equal((await raw('/v1/version')).status, 200);
});

test('one who waits for a change is answered when it comes, and not before', async () => {
  await listening();
  let answered = false;
  const waiting = raw('/v1/status?after=abc-0&waitMs=20000').then((answer) => {
    answered = true;
    return answer;
  });
  await raw('/v1/version');
  assert.equal(answered, false);
  change();
  change();
  assert.equal(((await waiting).body as StatusDocument).revision, 'abc-2');
});

test('one who waits is answered after waitMs too, and at once for another revision or life', async () => {
  await listening();
  assert.equal(((await raw('/v1/status?after=abc-0&waitMs=30')).body as StatusDocument).revision, 'abc-0');
  assert.equal(((await raw('/v1/status?after=abc-9&waitMs=20000')).body as StatusDocument).revision, 'abc-0');
  assert.equal(((await raw('/v1/status?after=old-0&waitMs=20000')).body as StatusDocument).revision, 'abc-0');
});

test('no more than 256 may wait, and those who hang up make room', async () => {
  await listening();
  const url = '/v1/status?after=abc-0&waitMs=20000';
  const watchers = Array.from({ length: 256 }, () =>
    request({ socketPath: socket, path: url, agent: false }),
  );
  for (const watcher of watchers) {
    watcher.on('error', () => {});
    watcher.end();
  }
  let refusals = 0;
  for (let tries = 0; tries < 150 && refusals === 0; tries += 1) {
    const answer = await getFromAgent({ socket, path: url, timeoutMs: 200, kind: 'Status' });
    if (answer.kind === 'refused') refusals += 1;
    assert.equal(answer.kind === 'refused' ? answer.code : 'too-many-watchers', 'too-many-watchers');
  }
  assert.equal(refusals, 1);
  for (const watcher of watchers) watcher.destroy();
  for (;;) {
    const answer = await getFromAgent({
      socket,
      path: '/v1/status?after=abc-0&waitMs=1',
      timeoutMs: 30_000,
      kind: 'Status',
    });
    if (answer.kind === 'ok') break;
  }
});

test('as many waits as a node has pods each say once what they wait for', async () => {
  let document = statusOf(facts({ desired: desired([wanted(DATA, WEB)]), pods: [WEB] }), LAYOUT, '');
  await listening({ status: (revision) => ({ ...document, revision }) });
  const said = Array.from({ length: 110 }, (): string[] => []);
  const ended = said.map((lines) => {
    const screen: Screen = {
      look: () => ({ widthMax: undefined, colour: false, unicode: true }),
      rows: () => undefined,
      write: (text) => void lines.push(text),
      complain: (text) => void lines.push(text),
      sleep: (delayMs) => pause(delayMs),
    };
    return waitForPod('web', { socket, timeoutMs: 20_000 }, screen);
  });
  await until('all have said what they wait for', () => said.every(({ length }) => length > 0));
  // Something changes, and it is nothing that anybody waits for.
  for (let changes = 0; changes < 8; changes += 1) {
    change();
    await pause(100);
  }
  document = statusOf(facts({ pods: [WEB] }), LAYOUT, '');
  change();
  assert.deepEqual(
    await Promise.all(ended),
    Array.from(said, () => 0),
  );
  const lines = ['waits: volume data is mounting\n', 'pod default/web: it has no volumes\n'];
  assert.deepEqual(new Set(said.map((all) => all.join(''))), new Set([lines.join('')]));
});

test('an answer that cannot be made fails alone', async () => {
  await listening({
    status: () => {
      throw new Error('bug');
    },
  });
  const answer = await raw('/v1/status');
  assert.deepEqual([answer.status, codeOf(answer), logged], [500, 'internal', ['request failed']]);
  assert.equal((await raw('/v1/version')).status, 200);
});

test('closing answers who waits, or hangs up, and removes the socket', async () => {
  await listening();
  const waiting = raw('/v1/status?after=abc-0&waitMs=20000').catch(() => undefined);
  await raw('/v1/version');
  await servers[0]?.close();
  await waiting;
  assert.equal(existsSync(socket), false);
  servers = [];
});

test('the socket of a dead agent is taken over', async () => {
  mkdirSync(join(folder, 'run'));
  const die = '() => process.kill(process.pid, 9)';
  const script = `require('node:net').createServer().listen(${JSON.stringify(socket)}, ${die})`;
  spawnSync(process.execPath, ['-e', script]);
  assert.equal(statSync(socket).isSocket(), true);
  await listening();
  assert.equal((await raw('/v1/version')).status, 200);
});

test('the socket of somebody who answers is left alone', async () => {
  await listening();
  const second = await server().listen();
  assert.equal(!second.ok && second.failure.message, `another process answers on ${socket}`);
  assert.equal((await raw('/v1/version')).status, 200);
  servers.pop();
});

test('a socket that somebody deletes is there again, and who waits on the one of before is answered', async () => {
  await listening();
  const { revision } = (await raw('/v1/status')).body as StatusDocument;
  const waiting = raw(`/v1/status?after=${revision}&waitMs=20000`);
  // Answered after it, so the other one has been heard.
  await raw('/v1/version');
  rmSync(socket);
  hint();
  await until('it is there', () => logged.includes('socket of the API was gone, and is there again'));
  assert.equal((await raw('/v1/version')).status, 200);
  change();
  assert.equal((await waiting).status, 200);
  await servers.pop()?.close();
  assert(!existsSync(socket));
});

test('a directory of the socket that somebody removes is made anew', async () => {
  await listening();
  rmSync(join(folder, 'run'), { recursive: true });
  hint();
  await until('the socket is there', () => existsSync(socket));
  assert.equal((await raw('/v1/version')).status, 200);
});

test('what somebody puts in the place of the socket is his while he answers, and ours again when it goes', async () => {
  await listening();
  rmSync(socket);
  const other = createServer().listen(socket);
  await once(other, 'listening');
  hint();
  await until('it is told', () => logged.includes('socket of the API is gone'));
  assert.deepEqual([statSync(socket).isSocket(), other.listening], [true, true]);
  other.close();
  await once(other, 'close');
  // Without a word of the directory: it is tried again.
  await until('it is there', () => logged.includes('socket of the API was gone, and is there again'));
  assert.equal((await raw('/v1/version')).status, 200);
  assert.equal(logged.length, 2);
});

test('what another process has put in the place of the socket outlives our end', async () => {
  await listening();
  rmSync(socket);
  const other = createServer().listen(socket);
  await once(other, 'listening');
  await servers.pop()?.close();
  const isLeft = existsSync(socket);
  other.close();
  await once(other, 'close');
  assert(isLeft);
});

test('a directory of the socket that is removed once more, which nobody tells, is made anew all the same', async () => {
  const timer: typeof CLOCK.timer = (delayMs, fire) => CLOCK.timer(delayMs / 1_000, fire);
  await listening({ clock: { ...CLOCK, timer } });
  for (const isTold of [true, false]) {
    rmSync(join(folder, 'run'), { recursive: true });
    if (isTold) hint();
    await until('the socket is there', () => existsSync(socket));
  }
});

test('a file that is no socket is left alone', async () => {
  mkdirSync(join(folder, 'run'));
  writeFileSync(socket, 'data');
  const refused = await server().listen();
  assert.match(refused.ok ? '' : refused.failure.message, /is not a socket; it is left alone$/);
  assert.equal(readFileSync(socket, 'utf8'), 'data');
  servers.pop();
});

test('a path that the kernel would cut is refused, at both ends', async () => {
  socket = join(folder, 's'.repeat(110));
  const refused = await server().listen();
  assert.equal(!refused.ok && refused.failure.code, 'too-large');
  const asked = await getFromAgent({ socket, path: '/v1/version', timeoutMs: 30_000, kind: 'Version' });
  assert.match(asked.kind === 'unreachable' ? asked.message : '', /longer than 107 bytes/);
  servers.pop();
});

test('a directory in which others may replace the socket is refused', async () => {
  mkdirSync(join(folder, 'run'));
  chmodSync(join(folder, 'run'), 0o777);
  const refused = await server().listen();
  assert.equal(!refused.ok && refused.failure.code, 'path-unsafe');
  servers.pop();
});

test('the client says in a sentence why nobody answered', async () => {
  const message = async (timeoutMs = 60_000): Promise<string> => {
    const answer = await getFromAgent({ socket, path: '/v1/status', timeoutMs, kind: 'Status' });
    return answer.kind === 'ok' ? 'ok' : answer.message;
  };
  socket = join(folder, 's');
  assert.equal(
    await message(),
    `the agent is not running, or still starting: there is no socket ${socket} (another place? give --socket)`,
  );
  writeFileSync(socket, '');
  assert.equal(await message(), `the agent is not running, or still starting: nobody answers on ${socket}`);
  rmSync(socket);
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(socket, resolve));
  assert.equal(await message(50), `the agent did not answer on ${socket} within 50 ms`);
  const asked = { socket, path: '/v1/quarantine', timeoutMs: 50, kind: 'QuarantineChange' };
  const change = await changeAtAgent({ ...asked, method: 'POST', body: { volume: 'data' } });
  assert.deepEqual(change, {
    kind: 'unreachable',
    message: `the agent did not answer on ${socket} within 50 ms; it may have done it all the same`,
  });
  silent.close();
  const stranger = createHttpServer((_, response) => response.end('hello'));
  await new Promise<void>((resolve) => stranger.listen(socket, resolve));
  assert.equal(await message(), `what answers on ${socket} is not a Mooring agent`);
  stranger.close();
  const other = createHttpServer((_, response) =>
    response.end('{"apiVersion":"mooring/v9","kind":"Status"}'),
  );
  await new Promise<void>((resolve) => other.listen(socket, resolve));
  assert.equal(await message(), `what answers on ${socket} is not an agent of this version`);
  other.close();
});

test('somebody who is not root is told so', (t) => {
  if (process.getuid?.() !== 0) {
    t.diagnostic('SKIPPED: only root can become somebody else');
    t.skip('only root can become somebody else');
    return;
  }
  mkdirSync(join(folder, 'run'));
  chmodSync(folder, 0o755);
  chmodSync(join(folder, 'run'), 0o755);
  const serve = `require('node:net').createServer().listen(${JSON.stringify(socket)}, () => {
    require('node:fs').chmodSync(${JSON.stringify(socket)}, 0o600);
    process.setuid(65534);
    const asked = require('node:http').request({ socketPath: ${JSON.stringify(socket)} });
    asked.once('error', (error) => { console.log(error.code); process.exit(0); });
    asked.once('response', () => { console.log('answered'); process.exit(0); });
    asked.end();
  })`;
  const { stdout } = spawnSync(process.execPath, ['-e', serve], { encoding: 'utf8', timeout: 300_000 });
  assert.equal(stdout.trim(), 'EACCES');
});

test('without a signing key the set of public keys is empty', async () => {
  await listening();
  assert.deepEqual(await raw('/openid/v1/jwks'), { status: 200, body: { keys: [] } });
});

test('the examples in docs/API.md have exactly the keys of what the agent answers', () => {
  const text = readFileSync(new URL('../../docs/API.md', import.meta.url), 'utf8');
  const examples = [...text.matchAll(/```json\n([\s\S]*?)```/g)].map(
    ([, json = '']) => JSON.parse(json) as { kind?: string },
  );
  const example = examples.find(({ kind }) => kind === 'Status') as StatusDocument | undefined;
  const real = statusOf(richFacts(), LAYOUT, 'r');
  const keysOf = (document: StatusDocument | undefined): unknown => {
    const pod = document?.pods.find(({ name }) => name === 'db');
    const parts = [
      document,
      document?.agent,
      document?.summary,
      document?.sources,
      document?.sources.rejected[0],
      document?.drivers[0],
      document?.volumes[0],
      document?.volumes[0]?.size,
      document?.volumes[0]?.expansion,
      pod,
      pod?.volumes[0],
      pod?.volumes[0]?.reason,
    ];
    return parts.map((part) => Object.keys(part ?? {}).sort());
  };
  assert.deepEqual(keysOf(example), keysOf(real));
  assert.deepEqual(
    examples.map(({ kind }) => kind),
    [
      undefined,
      'Status',
      'Explanation',
      'Mounts',
      'Quarantine',
      'QuarantineChange',
      'Release',
      'Manifests',
      'ManifestsChange',
      'Version',
      'Health',
    ],
  );
});

const MOUNTS = {
  apiVersion: 'mooring/v1',
  kind: 'Mounts',
  pod: { namespace: 'default', name: 'web', uid: 'u' },
  ready: true,
  containers: [],
} as const;

test('mounts are told of a pod by name, namespace/name or uid, and of one that is wanted', async () => {
  const asked: string[] = [];
  await listening({
    mounts: ({ uid, wanted }) => {
      asked.push(uid);
      return wanted ? MOUNTS : undefined;
    },
  });
  for (const name of ['web', 'default%2Fweb', 'pod:web', '11111111-1111-4111-8111-111111111111'])
    assert.deepEqual(await raw(`/v1/pods/${name}/mounts`), { status: 200, body: MOUNTS });
  assert.deepEqual(new Set(asked), new Set(['11111111-1111-4111-8111-111111111111']));
  const unknown = await raw('/v1/pods/wob/mounts');
  assert.deepEqual([unknown.status, codeOf(unknown)], [404, 'subject-unknown']);
  assert.match(JSON.stringify(unknown.body), /Did you mean \\"web\\"/);
  // A volume of that name is no pod.
  assert.equal((await raw('/v1/pods/data/mounts')).status, 404);
  const leaving = await raw('/v1/pods/old/mounts');
  assert.deepEqual([leaving.status, codeOf(leaving)], [404, 'subject-unwanted']);
  for (const name of ['%ff', '%', '%zz']) assert.equal((await raw(`/v1/pods/${name}/mounts`)).status, 400);
  const changed = await raw('/v1/pods/web/mounts', { method: 'POST' });
  assert.deepEqual([changed.status, codeOf(changed)], [405, 'method-not-allowed']);
  assert.equal((await raw('/v1/pods/a/b/mounts')).status, 404);
});

test('mounts are told of the pod that is wanted, while the one that had its name is on its way down', async () => {
  await listening({
    status(revision) {
      const status = statusOf(richFacts(), LAYOUT, revision);
      const pods = status.pods.map((pod) => (pod.name === 'old' ? { ...pod, name: 'web' } : pod));
      return { ...status, pods };
    },
    mounts: ({ wanted }) => (wanted ? MOUNTS : undefined),
  });
  for (const name of ['web', 'default%2Fweb', 'pod:default%2Fweb'])
    assert.deepEqual(await raw(`/v1/pods/${name}/mounts`), { status: 200, body: MOUNTS }, name);
  const leaving = await raw('/v1/pods/44444444-4444-4444-8444-444444444444/mounts');
  assert.deepEqual([leaving.status, codeOf(leaving)], [404, 'subject-unwanted']);
});

test('a word of release is taken of a pod that is not wanted any more, and of no other', async () => {
  const told: string[] = [];
  await listening({
    releases: {
      released: (uid) => told.push(`released ${uid}`),
      forceRelease: (uid) => told.push(`force ${uid}`),
    },
  });
  const headers = { 'content-type': 'application/json' };
  const say = (pod: string, body: unknown) =>
    raw(`/v1/pods/${pod}/release`, { method: 'POST', headers }, JSON.stringify(body));
  const said = await say('old', {});
  assert.equal(said.status, 200);
  const { kind, force, pod } = said.body as { kind: string; force: boolean; pod: { uid: string } };
  assert.deepEqual([kind, force], ['Release', false]);
  assert.equal((await say('old', { force: true })).status, 200);
  assert.deepEqual(told, [`released ${pod.uid}`, `force ${pod.uid}`]);
  const wanted = await say('web', { force: true });
  assert.deepEqual([wanted.status, codeOf(wanted)], [409, 'subject-wanted']);
  assert.deepEqual([(await say('wob', {})).status, (await say('old', { force: 'yes' })).status], [404, 400]);
  assert.equal((await say('old', [])).status, 400);
  assert.equal((await raw('/v1/pods/old/release')).status, 405);
  assert.equal(told.length, 2);
});

test('a word of release by uid is taken while another pod of its name is wanted, by the name it is not', async () => {
  const told: string[] = [];
  await listening({
    status(revision) {
      const status = statusOf(richFacts(), LAYOUT, revision);
      const old = status.pods.find(({ name }) => name === 'old');
      assert.ok(old);
      return { ...status, pods: [...status.pods, { ...old, uid: 'next', wanted: true }] };
    },
    releases: { released: () => {}, forceRelease: (uid) => told.push(uid) },
  });
  const headers = { 'content-type': 'application/json' };
  const force = (pod: string) =>
    raw(`/v1/pods/${encodeURIComponent(pod)}/release`, { method: 'POST', headers }, '{"force":true}');
  const { body } = await raw('/v1/status');
  const [old] = (body as StatusDocument).pods.filter(({ name }) => name === 'old');
  assert.ok(old);
  assert.equal(codeOf(await force(`${old.namespace}/old`)), 'subject-ambiguous');
  assert.deepEqual([(await force(old.uid)).status, told], [200, [old.uid]]);
});
