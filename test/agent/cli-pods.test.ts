/** `mooring mounts`, `wait` and `release` against a stand-in for the agent's API. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { forgetPods } from '../../agent/cli/manifest-command.ts';
import { type MountsOptions, showMounts } from '../../agent/cli/mounts-command.ts';
import { renderFile } from '../../agent/cli/render-command.ts';
import { type Screen, watchStatus } from '../../agent/cli/show.ts';
import { releasePod, waitForPod } from '../../agent/cli/wait-command.ts';
import type { MountsDocument } from '../../agent/mounts/mounts-document.ts';
import { statusOf } from '../../agent/status/status.ts';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import type { StatusFacts } from '../../agent/status/status-facts.ts';
import type { Failure } from '../../mount/failure.ts';
import { publicationKey } from '../../plugins/volume.ts';
import { PRESENT } from '../../reconciler/model/actual-state.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import type { ToldStep } from '../../reconciler/model/told-step.ts';
import { until } from '../until.ts';
import { mountsIn, webYaml } from './mounts/pod-mounts.ts';
import {
  actual,
  DB,
  DATA,
  desired,
  facts,
  GONE,
  LAYOUT,
  obstacle,
  OLD,
  richFacts,
  wanted,
  WEB,
} from './status-fixture.ts';

let folder = '';
let socket = '';
let servers: Server[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mooring-pods-'));
  socket = join(folder, 's.sock');
  servers = [];
});

afterEach(() => {
  for (const server of servers) server.closeAllConnections();
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true });
});

/** What a command has said so far, and the event that it says something. */
interface Heard extends Screen {
  readonly out: string[];
  readonly err: string[];
  /** Settles when it has said so. */
  said(what: RegExp): Promise<void>;
}

function listener(): Heard {
  const waits: { readonly what: RegExp; readonly heard: () => void }[] = [];
  const screen: Heard = {
    out: [],
    err: [],
    look: () => ({ widthMax: undefined, colour: false, unicode: true }),
    rows: () => undefined,
    write: (text) => {
      screen.out.push(text);
      for (const { what, heard } of waits) if (what.test(screen.out.join(''))) heard();
    },
    complain: (text) => {
      screen.err.push(text);
    },
    sleep: (delayMs) => pause(delayMs),
    said: (what) =>
      new Promise((heard) => {
        if (what.test(screen.out.join(''))) heard();
        else waits.push({ what, heard });
      }),
  };
  return screen;
}

/**
 * An agent that answers with the newest of its statuses, and a wait when there is another one. What is answered settles
 * when who waits has heard of it, and asks what comes next.
 */
async function agentWith(first: StatusFacts): Promise<(next: StatusFacts) => Promise<void>> {
  let revision = 1;
  let heard = (): void => {};
  let document: StatusDocument = statusOf(first, LAYOUT, 'r1');
  let waiting: (() => void)[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://x');
    const answer = (): void => void response.end(JSON.stringify(document));
    const waitMs = Number(url.searchParams.get('waitMs') ?? 0);
    if (url.searchParams.get('after') !== document.revision || waitMs === 0) return answer();
    waiting.push(answer);
    heard();
    const timer = setTimeout(answer, waitMs);
    response.once('close', () => clearTimeout(timer));
  });
  await listen(server);
  return (next) => {
    revision += 1;
    document = statusOf(next, LAYOUT, `r${revision}`);
    for (const answer of waiting) answer();
    waiting = [];
    return new Promise((resolve) => (heard = resolve));
  };
}

async function listen(server: Server): Promise<void> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(socket, resolve));
}

const forEver = (): { socket: string; timeoutMs: number } => ({
  socket,
  timeoutMs: Number.POSITIVE_INFINITY,
});

/** Pod web with its volume `data`, which is there or not. */
function webFacts(isThere: boolean, rest: Partial<StatusFacts> = {}): StatusFacts {
  return facts({
    desired: desired([wanted(DATA, WEB)]),
    pods: [WEB],
    actual: isThere ? new Map([[DATA.id, actual(DATA, PRESENT, PRESENT, WEB)]]) : new Map(),
    ...rest,
  });
}

test('wait ends with 0 at once for a pod that has everything', async () => {
  await agentWith(richFacts());
  const screen = listener();
  assert.equal(await waitForPod('web', forEver(), screen), 0);
  assert.deepEqual(screen.out, ['pod default/web: all 3 volumes are there\n']);
});

test('wait says what it waits for when that changes, and not again when time goes by', async () => {
  const change = await agentWith(webFacts(false));
  const screen = listener();
  const ended = waitForPod('default/web', forEver(), screen);
  await screen.said(/volume data is mounting/);
  void change(webFacts(false, { obstacles: [obstacle(DATA, {})] }));
  await screen.said(/the driver is busy/);
  void change(webFacts(false, { obstacles: [obstacle(DATA, {})], nowMs: 1_005_000 }));
  void change(webFacts(true));
  assert.equal(await ended, 0);
  assert.equal(screen.out.length, 3, screen.out.join(''));
  assert.match(
    screen.out.join(''),
    /^waits: volume data is mounting\nwaits: volume data is waiting: stage failed/,
  );
  assert.match(screen.out.at(-1) ?? '', /its volume is there/);
});

test('wait waits for an agent that does not run yet, and for a pod that nobody knows yet', async () => {
  const screen = listener();
  const ended = waitForPod('web', forEver(), screen);
  await screen.said(/the agent is not running/);
  const change = await agentWith(facts({}));
  await screen.said(/no pod is called "web"/);
  void change(webFacts(true));
  assert.equal(await ended, 0);
});

test('wait ends in time when the agent hangs', async () => {
  await listen(createServer(() => {}));
  const screen = listener();
  assert.equal(await waitForPod('web', { socket, timeoutMs: 1_500 }, screen), 124);
  const hangs = `the agent did not answer on ${socket} within 2500 ms`;
  assert.deepEqual([screen.out, screen.err], [[`waits: ${hangs}\n`], [`mooring: not within 1s: ${hangs}\n`]]);
});

test('wait ends with 124 and the reason when the time is over, with and without an agent', async () => {
  const alone = listener();
  assert.equal(await waitForPod('web', { socket, timeoutMs: 0 }, alone), 124);
  assert.match(alone.err.join(''), /not within 0ms: the agent is not running/);
  await agentWith(webFacts(false, { obstacles: [obstacle(DATA, {})] }));
  const screen = listener();
  assert.equal(await waitForPod('web', { socket, timeoutMs: 20 }, screen), 124);
  assert.match(screen.err.join(''), /not within 20ms: volume data is waiting: stage failed/);
});

test('status --watch says nothing of an agent that has no room for who waits, and shows each status once', async () => {
  let revision = 'r1';
  let refusals = 0;
  await listen(
    createServer((request, response) => {
      if (request.url === '/v1/status')
        return void response.end(JSON.stringify(statusOf(webFacts(true), LAYOUT, revision)));
      refusals += 1;
      if (refusals === 3) revision = 'r2';
      const error = { code: 'too-many-watchers', message: 'others wait already' };
      response.writeHead(429).end(JSON.stringify({ error }));
    }),
  );
  const screen = listener();
  const isOver = (): boolean => /"r2"/.test(screen.out.join(''));
  const never = new Promise(() => {});
  void watchStatus(socket, 'json', { ...screen, sleep: () => (isOver() ? never : pause(1)) });
  await screen.said(/"r2"/);
  const revisions = screen.out.map((text) => (JSON.parse(text) as StatusDocument).revision);
  assert.deepEqual([revisions, screen.err], [['r1', 'r2'], []]);
});

test('wait says nothing of an agent that has no room for who waits, and ends when the volumes are there', async () => {
  let document = statusOf(webFacts(false), LAYOUT, 'r1');
  let refusals = 0;
  await listen(
    createServer((request, response) => {
      if (request.url === '/v1/status') return void response.end(JSON.stringify(document));
      refusals += 1;
      if (refusals === 3) document = statusOf(webFacts(true), LAYOUT, 'r2');
      const error = { code: 'too-many-watchers', message: 'others wait already' };
      response.writeHead(429).end(JSON.stringify({ error }));
    }),
  );
  const screen = listener();
  assert.equal(await waitForPod('web', forEver(), { ...screen, sleep: () => pause(1) }), 0);
  assert.deepEqual(screen.out, [
    'waits: volume data is mounting\n',
    'pod default/web: its volume is there\n',
  ]);
});

test('forget takes names or --all: with both nobody is asked, for one of the two is not meant', async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.end('{}');
  });
  await listen(server);
  const screen = listener();
  assert.equal(await forgetPods(['default/web'], { socket, output: 'text', all: true }, screen), false);
  assert.deepEqual(asked, []);
  assert.match(screen.err.join(''), /pods by name or --all, not both/);
});

test('wait means the pod that is wanted, while the one that had its name is still on its way down', async () => {
  const before = { ...GONE, name: 'web' };
  const rest = { actual: new Map([[OLD.id, actual(OLD, PRESENT, PRESENT, before)]]) };
  const change = await agentWith(webFacts(false, rest));
  const screen = listener();
  const ended = waitForPod('default/web', forEver(), screen);
  await screen.said(/waits: volume data is mounting/);
  void change(
    webFacts(true, { actual: new Map([...rest.actual, [DATA.id, actual(DATA, PRESENT, PRESENT, WEB)]]) }),
  );
  assert.equal(await ended, 0);
  // By its uid the other one is meant.
  assert.equal(await waitForPod(before.uid, { socket, timeoutMs: 0 }, screen), 124);
});

test('wait for a name that two pods have is a failure, whatever comes', async () => {
  await agentWith(facts({ pods: [WEB, { ...DB, name: 'web', namespace: 'other' }] }));
  const screen = listener();
  assert.equal(await waitForPod('web', forEver(), screen), 1);
  assert.match(screen.err.join(''), /"web" can mean/);
});

test('release leaves a pod that is wanted alone, and says so', async () => {
  await agentWith(webFacts(true));
  const screen = listener();
  assert.equal(await releasePod('web', forEver(), screen), 0);
  assert.match(screen.out.join(''), /still wanted: its volumes stay/);
});

test('release leaves nothing behind that keeps its process when the agent hangs after its first answer', async () => {
  const leaving = statusOf(webFacts(true, { desired: desired([]), pods: [] }), LAYOUT, 'r1');
  let hasReleaseEnded = (): void => {};
  const releaseEnded = new Promise<void>((resolve) => (hasReleaseEnded = resolve));
  await listen(
    createServer((request, response) => {
      if (request.method === 'POST') response.once('close', () => hasReleaseEnded());
      else if (request.url === '/v1/status') response.end(JSON.stringify(leaving));
    }),
  );
  const screen = listener();
  assert.equal(await releasePod('web', { socket, timeoutMs: 300, force: true }, screen), 124);
  await releaseEnded;
  // The word has at most the 300 ms and one second.
  assert.match(screen.err.join(''), /did not answer on \S+ within 1[0-3]\d\d ms; it may have done it/);
});

/** An agent that has the pod of `leaving`, and the uids of the pods that it was told of with force. */
async function forcedAt(leaving: StatusFacts): Promise<{ readonly forced: string[]; end(): Promise<void> }> {
  const document = statusOf(leaving, LAYOUT, 'r1');
  const forced: string[] = [];
  const server = createServer((request, response) => {
    const url = request.url ?? '';
    if (request.method === 'POST') forced.push(url);
    if (url === '/v1/status') response.end(JSON.stringify(document));
    else if (request.method === 'POST')
      response.end(JSON.stringify({ apiVersion: 'mooring/v1', kind: 'Release' }));
  });
  await listen(server);
  return {
    forced,
    async end() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test('release --force is told to the agent that comes after another one, and of the same pod alone', async () => {
  const leaving = (pod: typeof WEB): StatusFacts =>
    facts({
      desired: desired([]),
      pods: [],
      actual: new Map([[DATA.id, actual(DATA, PRESENT, PRESENT, pod)]]),
    });
  const first = await forcedAt(leaving(WEB));
  const screen = listener();
  const ended = releasePod('web', { socket, timeoutMs: 20_000, force: true }, screen);
  await until('the first agent was told', () => first.forced.length === 1);
  await first.end();
  const second = await forcedAt(leaving(WEB));
  await until('the second agent was told', () => second.forced.length === 1);
  await second.end();
  // Whoever has the name by then is not who was meant.
  const third = await forcedAt(leaving({ ...WEB, uid: DB.uid }));
  assert.equal(await ended, 124);
  assert.deepEqual([first.forced, second.forced, third.forced], [[RELEASE], [RELEASE], []]);
});

const RELEASE = `/v1/pods/${WEB.uid}/release`;

test('SE-21: the name of a pod that is gone is told without what a terminal acts on', async () => {
  await agentWith(webFacts(true));
  const screen = listener();
  assert.equal(await releasePod('gone\u001b[2J', forEver(), screen), 0);
  assert.deepEqual(screen.out, ['pod gone\\u001b[2J: nothing is left of it\n']);
});

test('release does not take a pod for wanted whose manifest was deleted right before', async () => {
  const change = await agentWith(webFacts(true));
  const screen = listener();
  const ended = releasePod('web', forEver(), screen);
  void change(webFacts(true, { desired: desired([]), pods: [] }));
  await screen.said(/volume data is unmounting/);
  void change(facts({}));
  assert.equal(await ended, 0);
  assert.doesNotMatch(screen.out.join(''), /still wanted/);
});

test('release waits until nothing is left of a pod that is not wanted', async () => {
  const leaving = webFacts(true, { desired: desired([]), pods: [] });
  const change = await agentWith(leaving);
  const screen = listener();
  const ended = releasePod('web', forEver(), screen);
  await screen.said(/volume data is unmounting/);
  // What is only on disk has not been found yet: that nobody knows the pod says nothing.
  void change(facts({ desired: desired([], { complete: false }) }));
  await screen.said(/has not read everything yet/);
  void change(facts({}));
  assert.equal(await ended, 0);
  assert.match(screen.out.at(-1) ?? '', /nothing is left of it/);
});

test('release says once who keeps a volume, however often it is tried, and once who does then', async () => {
  const busy = { code: 'mount-busy', message: 'target is busy' } as const;
  const leaving = (rest: Partial<Obstacle>): StatusFacts => {
    const here = { operation: 'unpublish', publication: publicationKey(WEB.uid, 'data') } as const;
    return webFacts(true, {
      desired: desired([]),
      pods: [],
      obstacles: [obstacle(DATA, { ...here, ...rest })],
    });
  };
  const now = { sinceMs: 1_000_000, signMs: 1_000_000 };
  const steps: readonly ToldStep[] = [
    { kind: 'recording', ...now },
    { kind: 'called', rpc: 'NodeUnpublishVolume', deadlineMs: 9_000, ...now },
    { kind: 'working', ...now },
  ];
  const change = await agentWith(leaving({ ...busy, attempts: 1 }));
  const screen = listener();
  const ended = releasePod('web', forEver(), screen);
  await screen.said(/failed once \(mount-busy\)/);
  for (const [attempts, blocker] of ['pid 7 (sh)', 'pid 7 (sh)', 'pid 7 (sh)', 'pid 9 (tail)'].entries()) {
    await change(leaving({ ...busy, attempts, blocker }));
    const lastFailure: Failure = { ...busy, effect: 'none', blocker };
    for (const step of steps) {
      const message = `unpublish is running: ${step.kind}`;
      await change(leaving({ kind: 'running', code: undefined, message, step, lastFailure, attempts }));
    }
    // Who it is, is looked for anew after each failure.
    await change(leaving({ ...busy, attempts: attempts + 1 }));
  }
  void change(facts({}));
  assert.equal(await ended, 0);
  assert.deepEqual(
    screen.out.map((line) => /blocked by pid \d|nothing is left/.exec(line)?.at(0)),
    [undefined, 'blocked by pid 7', 'blocked by pid 9', 'nothing is left'],
    screen.out.join(''),
  );
});

async function mountsShown(
  document: MountsDocument,
  rest: Partial<MountsOptions> = {},
  terminal: Partial<Screen> = {},
): Promise<{ readonly shown: boolean; readonly out: string; readonly err: string; readonly asked: string }> {
  let asked = '';
  const server = createServer((request, response) => {
    asked = request.url ?? '';
    response.end(JSON.stringify(document));
  });
  await listen(server);
  const screen = listener();
  const options = { socket, output: 'table', ...rest } as const;
  const shown = await showMounts('default/web', options, { ...screen, ...terminal });
  await new Promise((resolve) => server.close(resolve));
  return { shown, out: screen.out.join(''), err: screen.err.join(''), asked };
}

const TWO = (): MountsDocument =>
  mountsIn([
    webYaml(
      `containers: [{name: main, volumeMounts: [{name: tmp, mountPath: /a b, readOnly: true}]}]
  initContainers: [{name: first, volumeMounts: [{name: gone, mountPath: /i}]}]`,
      '[{name: tmp, emptyDir: {}}, {name: gone, persistentVolumeClaim: {claimName: none}}]',
    ),
  ]);
const TMP = `${LAYOUT.root}/pods/uid-web/volumes/kubernetes.io~empty-dir/tmp`;

test('mounts are a table, with the reason below what is not there', async () => {
  const { shown, out, asked } = await mountsShown(TWO());
  assert.equal(shown, true);
  assert.equal(asked, '/v1/pods/default%2Fweb/mounts');
  assert.match(out, /^CONTAINER +VOLUME +IN THE CONTAINER +ACCESS +ON THE HOST\n/);
  assert.match(out, new RegExp(`\\nmain +tmp +/a b +ro +${TMP}\\n`));
  assert.match(out, /\nfirst +gone +\/i +rw +—\n {2}.*PersistentVolumeClaim default\/none/);
});

test('mounts are printed for podman and for a unit, of one container and only when all is there', async () => {
  const podman = await mountsShown(TWO(), { output: 'podman', container: 'main' });
  assert.equal(podman.out, `'--mount=type=bind,src=${TMP},dst=/a b,ro=true,bind-propagation=rprivate'\n`);
  const unit = await mountsShown(TWO(), { output: 'systemd', container: 'main' });
  assert.equal(unit.out, `BindReadOnlyPaths=${TMP}:"/a b"\n`);
  for (const [options, why] of [
    [{ output: 'podman' }, /say with --container which of main, first/],
    [{ output: 'podman', container: 'first' }, /container first cannot be started yet:\n {2}gone: /],
    [{ output: 'systemd', container: 'no' }, /no container no, but main, first/],
  ] as const) {
    const refused = await mountsShown(TWO(), options);
    assert.deepEqual([refused.shown, refused.out], [false, '']);
    assert.match(refused.err, why);
  }
  const json = await mountsShown(TWO(), { output: 'json', container: 'main' });
  assert.deepEqual(
    (JSON.parse(json.out) as MountsDocument).containers.map(({ name }) => name),
    ['main'],
  );
});

test('an emptyDir that is on its way up is no argument for anybody', async () => {
  const document = mountsIn(
    [
      webYaml(
        'containers: [{name: main, volumeMounts: [{name: t, mountPath: /t}]}]',
        '[{name: t, emptyDir: {}}]',
      ),
    ],
    (all) => ({ ...all, actual: new Map() }),
  );
  const { shown, out, err } = await mountsShown(document, { output: 'podman' });
  assert.deepEqual([shown, out], [false, '']);
  assert.match(err, /t: it is on its way up/);
});

test('render asks for the pods of a file by their whole names, and prints all of them or none', async () => {
  const yaml = (name: string): string =>
    webYaml(
      'containers: [{name: main, volumeMounts: [{name: t, mountPath: /t}]}]',
      '[{name: t, emptyDir: {}}]',
    ).replace('name: web', `name: ${name}`);
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end(JSON.stringify(mountsIn([yaml('web')])));
  });
  await listen(server);
  const file = join(folder, 'web.yaml');
  writeFileSync(
    file,
    [yaml('web'), 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n', yaml('two')].join('---\n'),
  );
  const screen = listener();
  assert.equal(await renderFile(file, socket, screen), true);
  const pods = screen.out
    .join('')
    .split('---\n')
    .map((text) => JSON.parse(text) as { metadata: { name: string } });
  assert.deepEqual(
    pods.map(({ metadata }) => metadata.name),
    ['web', 'two'],
  );
  assert.deepEqual(asked, ['/v1/pods/pod%3Adefault%2Fweb/mounts', '/v1/pods/pod%3Adefault%2Ftwo/mounts']);
  writeFileSync(file, [yaml('web'), yaml('two').replace('/t}', '/other}')].join('---\n'));
  const refused = listener();
  assert.equal(await renderFile(file, socket, refused), false);
  assert.deepEqual(refused.out, []);
  assert.match(refused.err.join(''), /Pod default\/two: main: the agent knows other containers/);
  for (const [text, why] of [
    ['kind: ConfigMap\n', /there is no pod in it/],
    ['kind: Pod\na: &x 1\nb: *x\n', /b: /],
    ['a: [', /not valid YAML|line 1/],
    ['{"kind": "Pod", "kind": "Pod"}', /web\.yaml: the key "kind" is given twice\n$/],
    [Buffer.from(yaml('web').replace('main', 'm\u00e4in'), 'latin1'), /web\.yaml: it is not UTF-8 text\n$/],
  ] as const) {
    writeFileSync(file, text);
    const bad = listener();
    assert.equal(await renderFile(file, socket, bad), false);
    assert.match(bad.err.join(''), why);
  }
  assert.equal(await renderFile(join(folder, 'none'), socket, refused), false);
  assert.match(refused.err.at(-1) ?? '', /cannot be read \(ENOENT\)/);
});

test('what is wrong with other objects of a file keeps no pod of it from being rendered', async () => {
  const yaml = webYaml(
    'containers: [{name: main, volumeMounts: [{name: t, mountPath: /t}]}]',
    '[{name: t, emptyDir: {}}]',
  );
  const server = createServer((_, response) => void response.end(JSON.stringify(mountsIn([yaml]))));
  await listen(server);
  const file = join(folder, 'web.yaml');
  const settings = (kind: string): string => `${kind}metadata: {name: c}\ndata: {a: &x b, c: *x}\n`;
  writeFileSync(file, [yaml, settings('kind: ConfigMap\n')].join('---\n'));
  const screen = listener();
  assert.deepEqual([await renderFile(file, socket, screen), screen.err], [true, []]);
  assert.equal((JSON.parse(screen.out.join('')) as { kind: string }).kind, 'Pod');
  // An object without a kind may be a pod.
  writeFileSync(file, [yaml, settings('')].join('---\n'));
  assert.equal(await renderFile(file, socket, screen), false);
  assert.match(screen.err.join(''), /web\.yaml: data\.c: aliases/);
});

/** What a terminal would act on, and a line that could be ours. */
const ESCAPES = '/x\\e]0;owned\\a\\e[2J\\nmooring: all is well';
/** All but the line end. */
const UNSAFE = /[^\P{C}\n]/u;

test('SE-21: paths that are no words for a launcher are told without what a terminal acts on', async () => {
  const yaml = webYaml(
    `containers: [{name: main, image: i, volumeMounts: [
      {name: tmp, mountPath: "${ESCAPES}:", readOnly: true, recursiveReadOnly: Enabled}]}]`,
    '[{name: tmp, emptyDir: {}}]',
  );
  const document = mountsIn([yaml]);
  const file = join(folder, 'web.yaml');
  writeFileSync(file, yaml);
  const complaints: string[] = [];
  for (const output of ['podman', 'systemd'] as const) {
    const { out, err } = await mountsShown(document, { output });
    assert.equal(out, '');
    complaints.push(err);
  }
  const server = createServer((_, response) => void response.end(JSON.stringify(document)));
  await listen(server);
  const screen = listener();
  assert.equal(await renderFile(file, socket, screen), false);
  for (const complaint of [...complaints, screen.err.join('')]) {
    assert.match(complaint, /\\u001b\[2J/);
    assert.doesNotMatch(complaint, UNSAFE);
    assert.doesNotMatch(complaint, /^mooring: all is well/m);
  }
});

test('SE-21: words for a launcher are exact in a pipe, and no terminal acts on them, nor on JSON', async () => {
  const yaml = webYaml(
    'containers: [{name: main, image: i, volumeMounts: [{name: tmp, mountPath: "/\\e[2J\\x9b\\u202e"}]}]',
    '[{name: tmp, emptyDir: {}}]',
  );
  const document = mountsIn([yaml]);
  const words = `'--mount=type=bind,src=${TMP},dst=/\u001b[2J\u009b\u202e,bind-propagation=rprivate'\n`;
  assert.equal((await mountsShown(document, { output: 'podman' })).out, words);
  const shown = await mountsShown(document, { output: 'podman' }, { rows: () => 24 });
  assert.match(shown.out, /dst=\/\\u001b\[2J\\u009b\\u202e,/);
  assert.doesNotMatch(shown.out, UNSAFE);
  const json = await mountsShown(document, { output: 'json' });
  assert.deepEqual(JSON.parse(json.out), document);
  assert.doesNotMatch(json.out, UNSAFE);
});
