/** The real entry as a child process; for status and explain against a stand-in for the agent's API. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { explain } from '../../agent/status/explain.ts';
import { programArguments } from '../machine/program.ts';
import { SETTINGS } from '../../agent/config/setting.ts';
import { statusOf } from '../../agent/status/status.ts';
import { LAYOUT, richFacts } from './status-fixture.ts';
import { signalProcess } from '../signal.ts';

const MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function start(
  words: readonly string[],
  environment: Record<string, string> = {},
  wrapper: readonly string[] = [],
): ChildProcess {
  const [program = '', ...rest] = [
    ...wrapper,
    process.execPath,
    ...programArguments('agent/main.ts'),
    ...words,
  ];
  const { NO_COLOR: _, MOORING_SOCKET: __, JOURNAL_STREAM: ___, ...inherited } = process.env;
  const env = { ...inherited, LC_ALL: 'C.UTF-8', ...environment };
  return spawn(program, rest, { env, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
}

function ended(child: ChildProcess): Promise<Ended> {
  const text = { out: '', err: '' };
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text.out += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text.err += chunk;
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...text })));
}

const run = (...words: readonly string[]): Promise<Ended> => ended(start(words));

/** Settles when the stream has said what is looked for, with all it has said. */
function said(child: ChildProcess, stream: 'stdout' | 'stderr', what: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    child[stream]?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (what.test(text)) resolve(text);
    });
    child.once('close', () => reject(new Error(`ended without saying ${what}: ${text}`)));
  });
}

let folder = '';
let socket = '';
let revision = 'r-1';
let agent: Server;
let askedPaths: string[] = [];
let strangeAnswers = 0;
let release: () => void = () => {};

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'mooring-cli-'));
  socket = join(folder, 's.sock');
  agent = createServer((request, response) => {
    askedPaths.push(request.url ?? '');
    const url = new URL(request.url ?? '', 'http://x');
    const status = statusOf(richFacts(), LAYOUT, revision);
    if (revision === 'strange') {
      response.end('{}');
      if (strangeAnswers++ > 0) agent.emit('asked again');
    } else if (url.pathname === '/v1/explain') {
      const explanation = explain(url.searchParams.get('subject') ?? '', status);
      if (explanation.kind === 'found') response.end(JSON.stringify(explanation.document));
      else
        response
          .writeHead(404)
          .end(JSON.stringify({ error: { code: 'subject-unknown', message: explanation.message } }));
    } else if (url.searchParams.get('after') === revision) {
      release = () => response.end(JSON.stringify(statusOf(richFacts(), LAYOUT, revision)));
      agent.emit('waiting');
    } else {
      response.end(JSON.stringify(status));
    }
  });
  await new Promise<void>((resolve) => agent.listen(socket, resolve));
});

after(() => {
  agent.close();
  agent.closeAllConnections();
  rmSync(folder, { recursive: true });
});

test('help is in groups, with examples and exit codes, and fits 80 columns', async () => {
  for (const words of [
    ['--help'],
    ['agent', '--help'],
    ['status', '-h'],
    ['help', 'explain'],
    ['quarantine', '-h'],
    ['manifests', '-h'],
    ['forget', '-h'],
    ['mounts', '-h'],
    ['render', '-h'],
    ['wait', '-h'],
    ['release', '-h'],
  ]) {
    const { code, out, err } = await run(...words);
    assert.deepEqual([code, err], [0, '']);
    for (const line of out.split('\n')) assert.equal(line.length <= 80, true, line);
  }
  const { out } = await run('--help');
  const look = /Look:\n {2}status .*\n {2}explain .*\n {2}version .*\n\nRun:/;
  assert.match(out, look);
  assert.match(out, /Run:\n {2}mounts .*\n {2}render .*\n {2}wait .*\n {2}release .*\n\nChange:/);
  assert.match(out, /Change:\n {2}quarantine .*\n {2}manifests .*\n {2}forget .*\n\nServe:\n {2}agent /);
  assert.match(out, /Examples:\n {2}mooring status .*\n[\s\S]*Exit codes:/);
  assert.doesNotMatch(out, /broker/);
});

test('what the agent starts for itself is wrong usage for anybody else, told in a line', async () => {
  for (const words of [['broker'], ['broker', 'x'], ['broker', 'path'], ['broker', '--help']]) {
    const { code, out, err } = await run(...words);
    assert.deepEqual([code, out], [2, ''], words.join(' '));
    assert.match(err, /^mooring: a broker is started by the agent alone; .*mooring --help.*\n$/);
  }
});

test('the help of the agent lists every setting with its default', async () => {
  const { out } = await run('agent', '--help');
  for (const { key, default: byDefault } of SETTINGS)
    assert.match(out, new RegExp(`^  ${key}: ${literally(byDefault)}$`, 'm'));
});

const literally = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

test('wrong usage is exit code 2, with a hint', async () => {
  const typo = await run('stauts');
  assert.equal(typo.code, 2);
  assert.match(typo.err, /unknown command 'stauts'\n\(Did you mean status\?\)/);
  assert.equal((await run('status', '--bogus')).code, 2);
  assert.equal((await run('explain')).code, 2);
  assert.equal((await run('status', '-o', 'xml')).code, 2);
});

test('SE-21: no complaint has a character that a terminal acts on, whoever makes it', async () => {
  for (const words of [
    ['\u001b[31m'],
    ['agent', '--config', '/\u001b[31m'],
    ['wait', 'web', '--timeout', '\u001b[31m'],
    ['render', '/\u001b[31m'],
  ]) {
    const { err } = await run(...words);
    assert.match(err, /\\u001b\[31m/);
    assert.doesNotMatch(err, /[^\P{C}\n]/u);
  }
});

test('version is text or JSON', async () => {
  assert.match((await run('version')).out, /^mooring \S+ \(commit \S+, Node\.js \d+\.\d+\.\d+\)\n$/);
  assert.equal((await run('--version')).out, (await run('version')).out);
  assert.equal(JSON.parse((await run('version', '-o', 'json')).out).kind, 'Version');
});

test('status is a table, wide, or the very document', async () => {
  const table = await run('status', '-s', socket);
  assert.deepEqual([table.code, table.err], [0, '']);
  assert.match(
    table.out,
    /default\/db +pvc-0f3a9c52-7b1e-4b43-9a55-2d7c3f1e8b60 +loopfile.mooring.dev +◌ waiting\n/,
  );
  assert.match((await run('status', '-s', socket, '-o', 'wide')).out, /UID +PATH\n/);
  const json = await run('status', '--socket', socket, '-o', 'json');
  assert.deepEqual(JSON.parse(json.out), statusOf(richFacts(), LAYOUT, 'r-1'));
});

test('the socket can come from the environment, and a plain locale gets plain characters', async () => {
  const { code, out } = await ended(start(['status'], { MOORING_SOCKET: socket, LC_ALL: 'C' }));
  assert.equal(code, 0);
  assert.match(out, /^[\x20-\x7e\n]+$/);
});

test('an agent that is not running is a sentence and exit code 1', async () => {
  const missing = join(folder, 'none');
  assert.deepEqual(await run('status', '-s', missing), {
    code: 1,
    out: '',
    err:
      `mooring: the agent is not running, or still starting: there is no socket ${missing} ` +
      '(another place? give --socket)\n',
  });
});

test('who cannot write what it has to say says that, and fails', { skip: cannotBeFull() }, async () => {
  const full = openSync('/dev/full', 'w');
  for (const entry of ['agent/main.ts', 'plugins/loopfile/main.ts'] as const) {
    const words = [...programArguments(entry), '--help'];
    const { status, stderr } = spawnSync(process.execPath, words, { stdio: ['ignore', full, 'pipe'] });
    assert.match(stderr.toString(), /^mooring(-loopfile)?: standard output: ENOSPC\n$/);
    assert.equal(status, 1, entry);
  }
  closeSync(full);
});

function cannotBeFull(): string | false {
  return existsSync('/dev/full') ? false : 'there is no /dev/full';
}

test('explain says what is in the way; who is unknown is exit code 1', async () => {
  const { code, out } = await run('explain', 'default/db', '-s', socket);
  assert.equal(code, 0);
  assert.match(
    out,
    /^pod default\/db: 0 of 1 volume mounted\n {2}• volume pvc-\S+: stage failed 3 times \(driver-busy\)/,
  );
  assert.equal(JSON.parse((await run('explain', 'web', '-o', 'json', '-s', socket)).out).kind, 'Explanation');
  const unknown = await run('explain', 'wbe', '-s', socket);
  const unread = 'broken.yaml cannot be read now, and may tell of it.';
  const message = `mooring: no pod and no volume is called "wbe". ${unread} Did you mean "web"?\n`;
  assert.deepEqual([unknown.code, unknown.out, unknown.err], [1, '', message]);
});

test('quarantine needs a verb it knows and a volume, and an agent', async () => {
  assert.equal((await run('quarantine', 'ad', 'x')).code, 2);
  assert.equal((await run('quarantine', 'add')).code, 2);
  assert.equal((await run('quarantine', 'clear', 'x', '--bogus')).code, 2);
  const { code, err } = await run('quarantine', 'list', '-s', join(folder, 'none'));
  assert.deepEqual([code, /the agent is not running/.test(err)], [1, true]);
  // Without --yes nobody is asked, and what it means is said.
  askedPaths = [];
  const hesitant = await run('quarantine', 'clear', 'x', '-s', socket);
  assert.deepEqual([hesitant.code, hesitant.out, askedPaths], [1, '', []]);
  assert.match(hesitant.err, /without any proof.*--yes/s);
});

test('watch shows the next status, and says once and beside it that there is none', async () => {
  askedPaths = [];
  const waiting = new Promise((resolve) => agent.once('waiting', resolve));
  const child = start(['status', '--watch', '-o', 'json', '-s', socket]);
  const first = said(child, 'stdout', /"revision": "r-1"/);
  const second = said(child, 'stdout', /"revision": "r-2"/);
  await first;
  await waiting;
  revision = 'r-2';
  const waitingAgain = new Promise((resolve) => agent.once('waiting', resolve));
  release();
  const text = await second;
  assert.equal(text.match(/"kind": "Status"/g)?.length, 2);
  assert.deepEqual(
    askedPaths,
    ['/v1/status', '/v1/status?after=r-1&waitMs=25000', '/v1/status?after=r-2&waitMs=25000'].slice(
      0,
      askedPaths.length,
    ),
  );
  await waitingAgain;
  const later = { out: '', err: '' };
  child.stdout?.on('data', (chunk: string) => {
    later.out += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    later.err += chunk;
  });
  const asked = new Promise((resolve) => agent.once('asked again', resolve));
  const again = said(child, 'stdout', /"revision": "r-3"/);
  revision = 'strange';
  agent.closeAllConnections();
  await asked;
  revision = 'r-3';
  await again;
  assert.doesNotMatch(later.out, /^[a-z]/m);
  assert.equal(later.err.match(/not an agent of this version/g)?.length, 1);
  child.kill();
  await new Promise((resolve) => child.once('close', resolve));
  revision = 'r-1';
});

test('plan says before the first start what an agent would do, and makes no root for that', async () => {
  const [root, manifests] = [join(folder, 'none', 'root'), join(folder, 'first')];
  mkdirSync(manifests);
  const pod =
    '{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {volumes: [{name: scratch, emptyDir: {}}], ' +
    'containers: [{name: c, image: none, volumeMounts: [{name: scratch, mountPath: /scratch}]}]}}\n';
  writeFileSync(join(manifests, 'web.yaml'), pod);
  const words = ['plan', '--root', root, '--manifests', manifests, '--allow-private-mount-namespace'];
  const { code, out, err } = await run(...words, '--node-name', 'n', '--config', '/dev/null', '-o', 'json');
  assert.deepEqual([code, err], [0, '']);
  const { volumes, whole } = JSON.parse(out);
  assert.deepEqual([whole, volumes.length, volumes[0].places[0].action], [true, 1, 'mount']);
  assert.equal(existsSync(dirname(root)), false);
});

test('a state root that cannot be made now is told as what the kernel said, and another try is worth it', async () => {
  const words = ['agent', '--config', '/dev/null', '--log-format', 'json', '--node-name', 'n'];
  const denied = await run(...words, '--root', '/sys/mooring-test');
  assert.match(denied.err + denied.out, /"code":"permission-denied","message":"[^"]*\/sys\/mooring-test/);
  assert.equal(denied.code, 1);
  const misplaced = await run(...words, '--root', '/dev/null');
  assert.match(misplaced.err + misplaced.out, /"code":"path-wrong-kind"/);
  assert.equal(misplaced.code, 78);
  // No file system has names so long.
  const tooLong = await run(...words, '--root', join(folder, 'x'.repeat(300)));
  assert.match(tooLong.err + tooLong.out, /"code":"too-large","message":"[^"]*ENAMETOOLONG/);
  assert.equal(tooLong.code, 78);
});

/** An agent at a socket of its own that has pod default/db, whose volume is not there; `say` is its next answer. */
async function agentThatSays(name: string) {
  const path = join(folder, name);
  const asked: ((document: object) => void)[] = [];
  const waiting: (() => void)[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://x');
    const answer = (document: object): void => void response.end(JSON.stringify(document));
    if (url.searchParams.get('after') === null) answer(statusOf(richFacts(), LAYOUT, 'r-1'));
    else asked.push(answer);
    if (asked.length > 0) for (const wake of waiting.splice(0)) wake();
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const documentOf = (revision: string, ready: boolean, message: string): object => {
    const status = statusOf(richFacts(), LAYOUT, revision);
    const pods = status.pods.map((pod) => {
      const volumes = pod.volumes.map((one) => ({
        ...one,
        reason: one.reason && { ...one.reason, message },
      }));
      return pod.name === 'db' ? { ...pod, ready, volumes } : pod;
    });
    return { ...status, pods };
  };
  return {
    path,
    /** Settles when somebody waits for a change. */
    asked: () =>
      new Promise<void>((resolve) => {
        if (asked.length > 0) resolve();
        else waiting.push(resolve);
      }),
    say: (revision: string, ready: boolean, message: string) =>
      asked.shift()?.(documentOf(revision, ready, message)),
    end: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Nobody reads it from here on. */
function closed(stream: ChildProcess['stdout']): Promise<void> {
  return new Promise((resolve) => {
    stream?.once('close', resolve);
    stream?.destroy();
  });
}

test('wait whose words nobody reads any more goes on, and ends with 0 when the volumes are there', async (t) => {
  const stub = await agentThatSays('unread.sock');
  t.after(stub.end);
  const child = start(['wait', 'default/db', '-s', stub.path]);
  const over = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await said(child, 'stdout', /waits: /);
  await stub.asked();
  await closed(child.stdout);
  // It has something to say, and nobody listens.
  stub.say('r-2', false, 'something else is in the way');
  const ended = over.then((code) => `it ended with ${code}`);
  assert.equal(await Promise.race([stub.asked().then(() => 'it waits on'), ended]), 'it waits on');
  stub.say('r-3', true, '');
  assert.equal(await over, 0);
});

test('wait whose time is over says so by its exit code, though nobody reads a word of it', async (t) => {
  const stub = await agentThatSays('unheard.sock');
  t.after(stub.end);
  const child = start(['wait', 'default/db', '--timeout', '1', '-s', stub.path]);
  const over = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await said(child, 'stdout', /waits: /);
  await Promise.all([closed(child.stdout), closed(child.stderr)]);
  assert.equal(await over, 124);
});

test('status --watch ends when nobody reads it any more', async (t) => {
  const stub = await agentThatSays('unwatched.sock');
  t.after(stub.end);
  const child = start(['status', '--watch', '-s', stub.path]);
  const over = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await said(child, 'stdout', /db/);
  await stub.asked();
  await closed(child.stdout);
  stub.say('r-2', false, 'something else is in the way');
  assert.equal(await over, 0);
});

test('a name that a variable left empty is wrong usage, and nobody is said to be gone', async () => {
  askedPaths = [];
  for (const [command, name, expected] of [
    ['release', '', 2],
    ['release', 'default/', 2],
    ['wait', 'pod:', 2],
    ['mounts', '', 2],
    ['forget', '', 1],
  ] as const) {
    const { code, out, err } = await run(command, name, '-s', socket);
    assert.deepEqual([code, out], [expected, ''], command);
    assert.equal(
      err,
      'mooring: the name is empty; expected that of a pod: its name, namespace/name or uid\n',
    );
  }
  assert.deepEqual(askedPaths, []);
});

test('a configuration that cannot be used is exit code 78, with all its problems', async () => {
  const file = join(folder, 'config.yaml');
  writeFileSync(file, 'rot: /x\nresync_ms: 5\nlog: {format: xml}\n');
  const { code, err } = await run('agent', '--config', file, '--node-name', 'A B');
  assert.equal(code, 78);
  assert.deepEqual(err.split('\n'), [
    'mooring: the configuration cannot be used:',
    '  --node-name: "A B": must be a DNS name: 1 to 253 of a-z, 0-9, "-" and ".", ' +
      'beginning and ending with a letter or digit',
    '  resync_ms: 5: must be a whole number from 1000 to 3600000 (milliseconds)',
    '  log.format: "xml": must be one of auto, json, human',
    '  rot: unknown key; did you mean "root"?',
    '',
  ]);
});

test('a configuration file that is named must be there and be YAML', async () => {
  const missing = await run('agent', '--config', join(folder, 'none.yaml'));
  assert.deepEqual([missing.code, /none\.yaml: cannot be read: ENOENT/.test(missing.err)], [78, true]);
  const file = join(folder, 'bad.yaml');
  writeFileSync(file, 'root: [\n');
  const bad = await run('agent', '--config', file);
  assert.deepEqual([bad.code, /bad\.yaml: line \d+: /.test(bad.err)], [78, true]);
});

test("status, explain and version load no third-party package but the command line's", () => {
  const reached = new Set<string>();
  const visit = (file: string): void => {
    if (reached.has(file)) return;
    reached.add(file);
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(
      /^(?:import|export) (?!type )[^;]*?from '([^']+)'/gm,
    )) {
      if (name.startsWith('.')) visit(normalize(join(dirname(file), name)));
      else assert.match(name, /^node:/, `${file} loads ${name}`);
    }
  };
  visit(MAIN);
  visit(join(dirname(MAIN), 'cli', 'show.ts'));
  assert.equal(
    [...reached].some((file) => file.includes('linux-host')),
    false,
  );
});

const IN_NAMESPACE = ['unshare', '--mount', '--propagation', 'private'];

function cannotUnshare(t: TestContext): boolean {
  if (process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0) return false;
  t.diagnostic('SKIPPED: this needs root and unshare(1)');
  t.skip('this needs root and unshare(1)');
  return true;
}

interface Place {
  readonly words: readonly string[];
  readonly root: string;
  readonly socket: string;
}

function makePlace(name: string): Place {
  const base = join(folder, name);
  const manifests = join(base, 'm');
  mkdirSync(manifests, { recursive: true });
  const uid = '11111111-1111-4111-8111-111111111111';
  writeFileSync(
    join(manifests, 'web.json'),
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', namespace: 'default', uid },
      spec: {
        containers: [{ name: 'c', image: 'i', volumeMounts: [{ name: 'mem', mountPath: '/m' }] }],
        volumes: [{ name: 'mem', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }],
      },
    }),
  );
  const place = { root: join(base, 'r'), socket: join(base, 's.sock') };
  const words = [
    'agent',
    '--root',
    place.root,
    '--socket',
    place.socket,
    '--manifests',
    manifests,
    '--log-format',
    'json',
  ];
  return { ...place, words };
}

test('an agent whose mounts pods would not see does not start: exit code 78, with the reason', async (t) => {
  if (cannotUnshare(t)) return;
  const place = makePlace('private');
  const { code, err } = await ended(start(place.words, {}, IN_NAMESPACE));
  assert.equal(code, 78);
  assert.match(err, /"code":"mount-foreign".*mount namespace.*"event":"agent not started"/);
  assert.equal(existsSync(place.socket), false);
});

function metricsOf(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: path, path: '/metrics' }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () => resolve(text));
    });
    asked.once('error', reject);
    asked.end();
  });
}

test('an agent serves, refuses a second one, opens no debugger, and leaves in time without unmounting', async (t) => {
  if (cannotUnshare(t)) return;
  const place = makePlace('life');
  const words = [...place.words, '--allow-private-mount-namespace'];
  const child = start(words, {}, IN_NAMESPACE);
  const over = ended(child);
  await said(child, 'stderr', /volume published/);
  const table = await run('status', '-s', place.socket);
  assert.match(table.out, /1 of 1 pods ready[\s\S]*default\/web +mem +empty-dir +● mounted/);
  const none = await run('quarantine', 'list', '-s', place.socket);
  assert.deepEqual([none.code, none.out], [0, 'No volume is in quarantine.\n']);
  const refused = await run('quarantine', 'add', 'mem', '-s', place.socket);
  assert.deepEqual([refused.code, refused.out], [1, '']);
  assert.match(refused.err, /belongs to this node alone/);
  assert.match(await metricsOf(place.socket), /^mooring_volumes\{driver="[^"]+",state="mounted"\} 1$/m);
  const second = await run(...words);
  assert.equal(second.code, 75);
  assert.match(second.err, new RegExp(`"code":"already-running".*pid ${child.pid}`));
  child.kill('SIGUSR1');
  assert.equal((await run('status', '-s', place.socket)).code, 0);
  const mounts = (): number =>
    readFileSync(`/proc/${child.pid}/mountinfo`, 'utf8').split(place.root).length - 1;
  assert.equal(mounts(), 1);
  child.kill('SIGTERM');
  const { code, err } = await over;
  assert.equal(code, 0);
  assert.match(err, /"event":"agent stopped"/);
  assert.doesNotMatch(err, /Debugger|volume unpublished/);
  assert.equal(existsSync(place.socket), false);
});

test('an agent with an open debugger does not start', async () => {
  const place = makePlace('debugger');
  const { code, err } = await ended(start(place.words, { NODE_OPTIONS: '--inspect=127.0.0.1:0' }));
  assert.equal(code, 78);
  assert.match(err, /mooring: a debugger is open at ws:.* without NODE_OPTIONS/);
});

test('an agent that is told to stop while it starts leaves too', async (t) => {
  if (cannotUnshare(t)) return;
  const place = makePlace('early');
  const child = start([...place.words, '--allow-private-mount-namespace'], {}, IN_NAMESPACE);
  const over = ended(child);
  await said(child, 'stderr', /agent starting/);
  child.kill('SIGTERM');
  const { code, err } = await over;
  assert.equal(code, 0, err);
  assert.match(err, /agent stopped/);
});

test('an agent whose helpers hang for ever leaves all the same', async (t) => {
  if (cannotUnshare(t)) return;
  const place = makePlace('hang');
  const child = start([...place.words, '--allow-private-mount-namespace'], {}, IN_NAMESPACE);
  // Not `close`: the stopped helpers hold the pipes.
  const over = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await said(child, 'stderr', /volume published/);
  const helpers = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .map(Number);
  assert.notDeepEqual(helpers, []);
  for (const pid of helpers) signalProcess(pid, 'SIGSTOP');
  try {
    const began = performance.now();
    child.kill('SIGTERM');
    const code = await over;
    const tookMs = performance.now() - began;
    t.diagnostic(`left after ${Math.round(tookMs)} ms with exit code ${code}`);
  } finally {
    for (const pid of helpers) {
      if (existsSync(`/proc/${pid}`)) signalProcess(pid, 'SIGKILL');
    }
  }
});
