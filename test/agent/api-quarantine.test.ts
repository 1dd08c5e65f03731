/** The requests that change something, over a real socket, against a keeper that remembers what it was told. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { changeAtAgent, getFromAgent } from '../../agent/cli/api-client.ts';
import { type ApiServer, createApiServer } from '../../agent/api/api-server.ts';
import type { QuarantineKeeper } from '../../agent/api/quarantine-api.ts';
import { addToQuarantine, clearQuarantine, listQuarantine } from '../../agent/cli/quarantine-command.ts';
import type { QuarantineChangeDocument, QuarantineDocument } from '../../agent/status/quarantine-document.ts';
import type { Screen } from '../../agent/cli/show.ts';
import { statusOf } from '../../agent/status/status.ts';
import type { StatusFacts } from '../../agent/status/status-facts.ts';
import { done, fail, type FailureCode, type Result } from '../../mount/failure.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import { type ActualVolume, PRESENT } from '../../reconciler/model/actual-state.ts';
import { enterQuarantine, leaveQuarantine } from '../../reconciler/model/quarantine.ts';
import {
  actual,
  csi,
  DATA,
  desired,
  emptyDir,
  facts,
  LAYOUT,
  NO_MANIFESTS,
  obstacle,
  path,
  wanted,
  WEB,
} from './status-fixture.ts';

/** Longer than what the document cuts other texts to. */
const LONG = csi('long', `vol-${'x'.repeat(2_000)}`);
const TWIN = csi('twin', 'vol-data', 'other.driver');
const CACHE = emptyDir(WEB, 'cache');

let folder = '';
let socket = '';
let server: ApiServer;
let volumes: Map<VolumeId, ActualVolume>;
let given: Partial<StatusFacts>;
let refusal: FailureCode | undefined;
let written: string[] = [];

const keeper: QuarantineKeeper = {
  actual: () => volumes,
  desired: () => given.desired ?? desired([]),
  async quarantine(id) {
    return tell(id, (volume) => enterQuarantine(volume, 'operator', 0));
  },
  async endQuarantine(id) {
    return tell(id, leaveQuarantine);
  },
};

function tell(id: VolumeId, change: (volume: ActualVolume) => ActualVolume): Result<void> {
  const volume = volumes.get(id);
  assert(volume !== undefined, `the keeper knows no ${id}`);
  if (refusal !== undefined) return fail({ code: refusal, message: 'no', effect: 'none' });
  volumes.set(id, change(volume));
  written.push(id);
  return done;
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'mooring-quarantine-'));
  socket = join(folder, 's.sock');
  written = [];
  refusal = undefined;
  volumes = new Map([DATA, LONG, TWIN, CACHE].map((spec) => [spec.id, actual(spec, PRESENT, PRESENT, WEB)]));
  given = { desired: desired([wanted(DATA, WEB)]), pods: [WEB] };
  const quiet = (): void => {};
  server = createApiServer({
    socket: path(socket),
    watch: () => () => {},
    status: (revision) => statusOf(facts({ ...given, actual: volumes }), LAYOUT, revision),
    quarantine: keeper,
    mounts: () => undefined,
    releases: { released: () => {}, forceRelease: () => {} },
    manifests: NO_MANIFESTS,
    metrics: () => '',
    healthy: async () => true,
    onChange: () => quiet,
    clock: { nowMs: () => 0, wallMs: () => 0, timer: () => quiet },
    instance: 'abc',
    runtime: '20.0.0',
    log: {
      debug: quiet,
      info: quiet,
      warn: quiet,
      error: (event, fields) => assert.fail(JSON.stringify([event, fields])),
    },
  });
  const listening = await server.listen();
  assert(listening.ok);
});

afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

const JSON_TYPE = { 'content-type': 'application/json' };

/** Status, code of the error if there is one, and the document. */
function raw(
  method: string,
  query = '',
  body: string | Buffer = '',
  headers: Record<string, string> = JSON_TYPE,
): Promise<{ readonly status: number; readonly code: unknown; readonly document: unknown }> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { socketPath: socket, path: `/v1/quarantine${query}`, method, headers },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.once('end', () => {
          const document = JSON.parse(text) as { readonly error?: { readonly code: string } };
          resolve({ status: response.statusCode ?? 0, code: document.error?.code, document });
        });
      },
    );
    asked.once('error', reject);
    asked.end(body);
  });
}

async function refused(...asked: Parameters<typeof raw>): Promise<readonly [number, unknown]> {
  const { status, code } = await raw(...asked);
  return [status, code];
}

async function list(): Promise<QuarantineDocument> {
  const answer = await getFromAgent<QuarantineDocument>({
    socket,
    path: '/v1/quarantine',
    timeoutMs: 30_000,
    kind: 'Quarantine',
  });
  assert(answer.kind === 'ok', JSON.stringify(answer));
  return answer.body;
}

test('a volume that is added is in quarantine, and listed with what it waits for', async () => {
  assert.deepEqual((await list()).volumes, []);
  const { status, document } = await raw('POST', '', JSON.stringify({ volume: 'data' }));
  const { kind, change, volume, quarantine, next } = document as QuarantineChangeDocument;
  assert.deepEqual(
    [status, kind, change, volume],
    [200, 'QuarantineChange', 'added', { id: DATA.id, name: 'data' }],
  );
  assert.match(
    next,
    /unpublished and unstaged now, though default\/web want it,.* it leaves quarantine by itself/,
  );
  assert.equal(volumes.get(DATA.id)?.quarantine?.reason, 'operator');
  given = {
    ...given,
    obstacles: [
      obstacle(DATA, { operation: 'unpublish', code: 'mount-busy', blocker: 'pid 7', message: 'busy' }),
    ],
  };
  const { volumes: listed } = await list();
  assert.deepEqual(listed, [{ ...quarantine, obstacles: listed[0]?.obstacles }]);
  assert.match(listed[0]?.sentence ?? '', /waits to be unpublished from default\/web$/);
  assert.match(listed[0]?.obstacles[0]?.sentence ?? '', /unpublish failed 3 times .*blocked by pid 7/);
});

test('adding twice changes nothing and says so', async () => {
  await raw('POST', '', JSON.stringify({ volume: 'data' }));
  const { document } = await raw('POST', '', JSON.stringify({ volume: `volume:${DATA.id}`, later: 'key' }));
  assert.equal((document as QuarantineChangeDocument).change, 'unchanged');
  assert.equal((await list()).volumes.length, 1);
});

test('a volume is found by PersistentVolume, handle or id, however long it is', async () => {
  for (const name of ['long', LONG.volumeHandle, LONG.id, `volume:${LONG.id}`]) {
    written = [];
    assert.equal((await raw('POST', '', JSON.stringify({ volume: name }))).status, 200, name);
    assert.deepEqual(written, [LONG.id]);
  }
  assert.deepEqual(
    (await list()).volumes.map(({ id }) => id),
    [LONG.id],
  );
});

test('a name that can mean two volumes is refused with both, and nothing is done', async () => {
  const { status, code, document } = await raw('POST', '', '{"volume":"vol-data"}');
  assert.deepEqual([status, code], [409, 'subject-ambiguous']);
  const { message } = (document as { error: { message: string } }).error;
  assert.equal(message.includes(`volume:${DATA.id}`) && message.includes(`volume:${TWIN.id}`), true);
  assert.deepEqual(await refused('DELETE', '?volume=vol-data'), [409, 'subject-ambiguous']);
  assert.deepEqual(written, []);
});

test('an unknown volume is refused, and a pod is no volume', async () => {
  const { status, document } = await raw('POST', '', '{"volume":"dtaa"}');
  assert.equal(status, 404);
  assert.match(
    (document as { error: { message: string } }).error.message,
    /no volume is called "dtaa".*"data"\?$/,
  );
  assert.deepEqual(await refused('POST', '', '{"volume":"web"}'), [404, 'subject-unknown']);
  assert.deepEqual(await refused('POST', '', `{"volume":"pod:${WEB.uid}"}`), [404, 'subject-unknown']);
  assert.deepEqual(await refused('DELETE', '?volume=web'), [404, 'subject-unknown']);
});

test('clearing lets a volume go; one that is not in quarantine, or stands in it by the wish, is refused', async () => {
  assert.deepEqual(await refused('DELETE', '?volume=data'), [409, 'not-quarantined']);
  await raw('POST', '', '{"volume":"data"}');
  const { status, document } = await raw('DELETE', '?volume=data');
  const { change, quarantine, next } = document as QuarantineChangeDocument;
  assert.deepEqual([status, change, quarantine], [200, 'cleared', null]);
  assert.match(next, /^Nobody has proven/);
  assert.equal(volumes.get(DATA.id)?.quarantine, undefined);
  await raw('POST', '', '{"volume":"data"}');
  given = { ...given, desired: desired([wanted(DATA, WEB)], { outOfService: true }) };
  assert.deepEqual(await refused('DELETE', '?volume=data'), [409, 'quarantine-stands']);
  assert.notEqual(volumes.get(DATA.id)?.quarantine, undefined);
});

test('what the reconciler refuses is a refusal, and what is not on disk is not called done', async () => {
  refusal = 'reference-missing';
  assert.deepEqual(await refused('POST', '', '{"volume":"cache"}'), [409, 'quarantine-refused']);
  refusal = 'record-write';
  assert.deepEqual(await refused('POST', '', '{"volume":"data"}'), [500, 'not-durable']);
});

test('a body that is not what it should be is refused before anything is done', async () => {
  assert.deepEqual(await refused('POST', '', '{"volume":"data"}', {}), [415, 'unsupported-media-type']);
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  assert.deepEqual(await refused('POST', '', 'volume=data', form), [415, 'unsupported-media-type']);
  const bad = [
    '',
    'volume',
    '[]',
    '{}',
    'null',
    '"data"',
    '{"volume":7}',
    '{"volume":""}',
    '{"volume":"data"',
  ];
  for (const body of bad) assert.deepEqual(await refused('POST', '', body), [400, 'bad-request'], body);
  // The names of all pods of a node have room.
  assert.deepEqual(await refused('POST', '', Buffer.alloc(65_536, ' ')), [400, 'bad-request']);
  assert.deepEqual(await refused('POST', '', Buffer.alloc(65_537, ' ')), [413, 'too-large']);
  assert.deepEqual(await refused('POST', '', Buffer.alloc(200_000, ' ')), [413, 'too-large']);
  assert.deepEqual(await refused('DELETE'), [400, 'bad-request']);
  assert.deepEqual(await refused('PATCH'), [405, 'method-not-allowed']);
  assert.deepEqual(written, []);
  const padded = `${' '.repeat(4_096 - 17)}{"volume":"data"}`;
  const charset = { 'content-type': 'Application/JSON; charset=utf-8' };
  assert.equal((await raw('POST', '', padded, charset)).status, 200);
});

test('a client that leaves in the middle of its body has changed nothing, and the next one is served', async () => {
  const asked = request({
    socketPath: socket,
    path: '/v1/quarantine',
    method: 'POST',
    headers: { ...JSON_TYPE, 'content-length': '17' },
  });
  asked.on('error', () => {});
  await new Promise<void>((resolve) => asked.write('{"volume":', () => resolve()));
  asked.destroy();
  assert.deepEqual((await list()).volumes, []);
  assert.deepEqual(written, []);
});

function screen(): Screen & { readonly out: string[]; readonly err: string[] } {
  const out: string[] = [];
  const err: string[] = [];
  return {
    out,
    err,
    look: () => ({ widthMax: undefined, colour: false, unicode: true }),
    rows: () => undefined,
    write: (text) => out.push(text),
    complain: (text) => err.push(text),
    sleep: async () => {},
  };
}

test('the command says what happened, what happens next, and what is there', async () => {
  const table = { socket, output: 'table' } as const;
  const one = screen();
  assert.equal(await listQuarantine(table, one), true);
  assert.equal(await addToQuarantine('data', table, one), true);
  assert.equal(await listQuarantine(table, one), true);
  assert.equal(one.out[0], 'No volume is in quarantine.\n');
  assert.match(one.out[1] ?? '', /^Volume data is in quarantine\.\nIt is unpublished and unstaged now/);
  assert.match(
    one.out[2] ?? '',
    /^VOLUME +DRIVER +REASON +SINCE +CLEAN\ndata +loopfile.mooring.dev +operator +1970-\S+ +no\n {4}└ in quarantine/,
  );
  const asJson = screen();
  assert.equal(await listQuarantine({ socket, output: 'json' }, asJson), true);
  assert.deepEqual(JSON.parse(asJson.out.join('')), await list());
});

test('clearing without --yes only says what it means, and is no success', async () => {
  const table = { socket, output: 'table' } as const;
  await addToQuarantine('data', table, screen());
  const hesitant = screen();
  assert.equal(await clearQuarantine('data', { ...table, yes: false }, hesitant), false);
  assert.match(hesitant.err.join(''), /without any proof.*its data is lost.*Nothing was done.*--yes/);
  assert.equal((await list()).volumes.length, 1);
  const sure = screen();
  assert.equal(await clearQuarantine('data', { ...table, yes: true }, sure), true);
  assert.match(sure.out.join(''), /^Volume data is out of quarantine, without proof\.\nNobody has proven/);
  assert.equal((await list()).volumes.length, 0);
  const wrong = screen();
  assert.equal(await clearQuarantine('dtaa', { ...table, yes: true }, wrong), false);
  assert.match(wrong.err.join(''), /^mooring: no volume is called "dtaa"/);
});

test('a change that is not answered is not taken for done', async () => {
  const answer = await changeAtAgent({
    socket: join(folder, 'none'),
    path: '/v1/quarantine',
    timeoutMs: 30_000,
    kind: 'QuarantineChange',
    method: 'POST',
    body: { volume: 'data' },
  });
  assert.equal(answer.kind, 'unreachable');
});

test('the examples in docs/API.md have exactly the keys of what is answered', async () => {
  const text = readFileSync(new URL('../../docs/API.md', import.meta.url), 'utf8');
  const examples = [...text.matchAll(/```json\n([\s\S]*?)```/g)].map(
    ([, json = '']) => JSON.parse(json) as { readonly kind?: string },
  );
  const change = (await raw('POST', '', '{"volume":"data"}')).document as QuarantineChangeDocument;
  given = { ...given, obstacles: [obstacle(DATA, { operation: 'clean', code: 'device-in-use' })] };
  const listed = await list();
  const keys = (value: unknown): unknown => {
    if (Array.isArray(value)) return typeof value[0] === 'object' ? [keys(value[0])] : 'value';
    if (typeof value !== 'object' || value === null) return typeof value === 'object' ? null : 'value';
    return Object.fromEntries(
      Object.entries(value)
        .map(([key, inner]) => [key, keys(inner)])
        .sort(),
    );
  };
  const plain = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(keys(value)).replaceAll('null', '"value"'));
  assert.deepEqual(plain(examples.find(({ kind }) => kind === 'Quarantine')), plain(listed));
  assert.deepEqual(plain(examples.find(({ kind }) => kind === 'QuarantineChange')), plain(change));
});
