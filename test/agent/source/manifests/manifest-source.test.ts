/** A directory over time: what is wanted while files come, go, break and are half written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  createManifestSource,
  type ManifestSource,
} from '../../../../agent/source/manifests/manifest-source.ts';
import { afterLooks, mayWantPods } from '../../../../agent/source/manifests/manifest-files.ts';
import { massRemovalIn, type DesiredObjects } from '../../../../agent/source/desired-objects.ts';
import { createRejectionLog } from '../../../../agent/source/rejection-log.ts';
import { createSlices } from '../../../../mount/process/slices.ts';
import type { PodUid } from '../../../../plugins/volume.ts';
import { DirectoryHost } from '../../directory-host.ts';
import { IN_PROCESS_PARSER } from '../../in-process-parser.ts';
import { oneSource, type OneSource } from '../../one-source.ts';
import {
  claimSource,
  claimYaml,
  configMapYaml,
  path,
  podUid,
  podYaml,
  secretYaml,
  volumeYaml,
} from '../../manifests.ts';

const SETTLE_MS = 300;
const HOLD_MS = 300_000;

interface Bench {
  readonly host: DirectoryHost;
  readonly source: OneSource;
  readonly manifests: ManifestSource;
  /** How often the wish was said to have changed. */
  changes(): number;
}

async function bench(
  files: Readonly<Record<string, string>> = {},
  settleMs = SETTLE_MS,
  piecesMax = Number.POSITIVE_INFINITY,
): Promise<Bench> {
  const host = new DirectoryHost();
  for (const [name, text] of Object.entries(files)) host.write(name, text);
  const manifests = createManifestSource({
    host,
    directory: path('/etc/manifests'),
    parser: IN_PROCESS_PARSER,
    settleMs,
    holdMs: HOLD_MS,
  });
  const source = oneSource(host, manifests, createSlices({ clock: host, piecesMax }));
  let changes = 0;
  source.onChange(() => (changes += 1));
  const started = source.start();
  if (piecesMax !== Number.POSITIVE_INFINITY) await host.advance(1);
  await started;
  return { host, source, manifests, changes: () => changes };
}

function podsOf(wish: DesiredObjects): readonly string[] {
  return [...wish.pods.keys()].sort();
}

function revisionOf(source: OneSource): number {
  return source.current().secrets.get('default/keys')?.revision ?? 0;
}

/** Told as soon as the pod is not wanted, however shortly. */
function watchLost(source: OneSource, pod: string): readonly string[] {
  const lost: string[] = [];
  source.onChange(() => {
    const { pods, unknownOrigins } = source.current();
    if (!pods.has(podUid(pod))) lost.push(`${pod}, with ${[...unknownOrigins].join() || 'nothing'} unknown`);
  });
  return lost;
}

/** Would anything of this pod be taken down? Not while it is wanted, frozen, or its file unknown. */
function isSafe(wish: DesiredObjects, uid: string, origin: string): boolean {
  const pod = podUid(uid);
  return wish.pods.has(pod) || wish.frozenPods.has(pod) || wish.unknownOrigins.has(origin) || !wish.complete;
}

test('the first listing is the wish, and it is complete', async () => {
  const { source } = await bench({ 'web.yaml': podYaml('web'), 'none.json': '{"kind":"List","items":[]}' });
  assert.deepEqual([source.current().complete, podsOf(source.current())], [true, ['uid-web']]);
});

test('a wish that is put together in slices is seen whole, or not at all', async () => {
  const { host, source, changes } = await bench({ 'web.yaml': podYaml('web') }, SETTLE_MS, 1);
  const seen: (readonly string[])[] = [];
  source.onChange(() => seen.push(podsOf(source.current())));
  const before = changes();
  host.write('app.yaml', `${podYaml('app')}---\n${podYaml('db')}`);
  await host.hint();
  await host.advance(1);
  assert.deepEqual(podsOf(source.current()), ['uid-app', 'uid-db', 'uid-web']);
  assert.equal(changes(), before + 1);
  assert.deepEqual(seen, [podsOf(source.current())]);
});

test('only regular files named .yaml, .yml or .json and not beginning with a dot are read', async () => {
  const { host, source } = await bench();
  for (const name of ['a.yaml', 'b.yml', 'c.json', '.d.yaml', 'e.yaml~', 'f.txt', '.yaml', 'g.yaml.swp']) {
    host.write(name, podYaml(name.slice(0, 1).replace('.', 'z')));
  }
  host.write('link.yaml', '', 'symlink');
  host.write('pipe.yaml', '', 'fifo');
  host.write('directory.yaml', '', 'directory');
  await host.hint();
  const wish = source.current();
  assert.deepEqual(podsOf(wish), ['uid-a', 'uid-b', 'uid-c']);
  assert.deepEqual(
    wish.rejected.map((one) => one.origin),
    ['directory.yaml', 'link.yaml', 'pipe.yaml'],
  );
  assert.match(wish.rejected[1]?.message ?? '', /symbolic link.*\.\.data/);
});

test('files that are not read for their names are told of, as long as they are there', async () => {
  const { host, source, changes } = await bench({ 'web.yaml': podYaml('web') });
  const told = () => source.current().rejected.map(({ origin, message }) => `${origin}: ${message}`);
  for (const name of ['.hidden', 'backup.yaml~', '#edited.yaml#']) host.write(name, podYaml('none'));
  host.write('pods', '', 'directory');
  await host.advance(61_000);
  assert.deepEqual(told(), []);
  host.write('db.manifest', podYaml('db'));
  host.write('app.YAML', '', 'symlink');
  await host.advance(61_000);
  const why = 'not read, for a manifest has a name that ends in .yaml, .yml or .json:';
  assert.deepEqual(told(), [`/etc/manifests: ${why} app.YAML, db.manifest`]);
  assert.deepEqual([source.current().unknownOrigins.size, podsOf(source.current())], [0, ['uid-web']]);
  const before = changes();
  await host.advance(61_000);
  assert.equal(changes(), before);
  host.remove('db.manifest');
  host.write('db.yaml', podYaml('db'));
  await host.hint();
  assert.deepEqual(told(), [`/etc/manifests: ${why} app.YAML`]);
  for (const name of ['b', 'c', 'd', 'e']) host.write(name, '');
  await host.advance(61_000);
  assert.deepEqual(told(), [`/etc/manifests: ${why} app.YAML, b, c and 2 more`]);
});

test('a new file counts at once', async () => {
  const { host, source, changes } = await bench();
  host.write('web.yaml', podYaml('web'));
  await host.hint();
  assert.deepEqual([podsOf(source.current()), changes()], [['uid-web'], 2]);
});

test('a listing that says the same again is not a change, and keeps every revision', async () => {
  const { host, source, changes } = await bench({ 'web.yaml': podYaml('web') });
  const before = source.current();
  host.write('web.yaml', podYaml('web'));
  await host.hint();
  await host.advance(61_000);
  assert.equal(source.current(), before);
  assert.equal(changes(), 1);
  assert.ok(host.listings >= 3);
});

test('after a hint only what was written since is read; the resync reads everything', async () => {
  const { host, source } = await bench({ 'web.yaml': podYaml('web'), 'db.yaml': podYaml('db') });
  assert.deepEqual(host.readSince(), ['db.yaml', 'web.yaml']);
  await host.advance(4_000);
  await host.hint();
  assert.deepEqual(host.readSince(), ['db.yaml', 'web.yaml'], 'they were young before');
  await host.hint();
  assert.deepEqual(host.readSince(), []);
  host.write('new.yaml', podYaml('new'));
  await host.hint();
  assert.deepEqual(
    [host.readSince(), podsOf(source.current())],
    [['new.yaml'], ['uid-db', 'uid-new', 'uid-web']],
  );
  host.writeBehindItsTimes('web.yaml', podYaml('other'));
  await host.hint();
  assert.deepEqual(podsOf(source.current()), ['uid-db', 'uid-new', 'uid-web']);
  host.readSince();
  await host.advance(60_000);
  assert.deepEqual(host.readSince(), ['db.yaml', 'new.yaml', 'web.yaml']);
  assert.ok(podsOf(source.current()).includes('uid-other'));
  source.stop();
  assert.equal(host.pendingTimers, 0);
});

test('each accepted directory is read whole, and no resync is planned beside the one that is', async () => {
  const { host, source, manifests } = await bench({ 'web.yaml': podYaml('web') });
  for (let times = 1; times <= 3; times += 1) {
    await host.advance(10_000);
    manifests.accepted();
    await host.advance(1);
  }
  assert.equal(host.pendingTimers, 1);
  source.stop();
  assert.equal(host.pendingTimers, 0);
});

test('hints do not put the resync off, and neither does a listing that fails', async () => {
  const { host, source } = await bench({ 'web.yaml': podYaml('web') });
  await host.advance(4_000);
  await host.hint();
  host.readSince();
  for (let second = 0; second < 50; second += 1) {
    await host.advance(1_000);
    await host.hint();
  }
  assert.deepEqual(host.readSince(), []);
  host.trouble = 'input-output';
  host.writeBehindItsTimes('web.yaml', podYaml('other'));
  await host.advance(10_000);
  host.trouble = undefined;
  await host.advance(60_000);
  assert.deepEqual([host.readSince(), podsOf(source.current())], [['web.yaml'], ['uid-other']]);
});

test('a file that vanished is unwanted only after it was missing in two listings that lie apart', async () => {
  const { host, source } = await bench({ 'web.yaml': podYaml('web') });
  host.remove('web.yaml');
  await host.hint();
  await host.advance(SETTLE_MS - 1);
  assert.deepEqual(podsOf(source.current()), ['uid-web']);
  await host.advance(1);
  assert.deepEqual(podsOf(source.current()), []);
});

test('even without a settle time a file has to be missing in two listings', async () => {
  const { host, source } = await bench({ 'web.yaml': podYaml('web') }, 0);
  host.remove('web.yaml');
  await host.hint();
  assert.deepEqual(podsOf(source.current()), ['uid-web']);
  await host.advance(1);
  assert.deepEqual(podsOf(source.current()), []);
});

test('an editor that renames the file away and writes it again causes no change', async () => {
  const { host, source, changes } = await bench({ 'web.yaml': podYaml('web') });
  host.remove('web.yaml');
  host.write('web.yaml~', podYaml('web'));
  await host.hint();
  await host.advance(SETTLE_MS - 100);
  host.write('web.yaml', podYaml('web'));
  await host.hint();
  await host.advance(10_000);
  assert.deepEqual([podsOf(source.current()), changes()], [['uid-web'], 1]);
});

test('a changed object counts once it has settled, with a greater revision', async () => {
  const { host, source } = await bench({ 'c.yaml': configMapYaml('c', { a: '1' }) });
  const before = source.current().configMaps.get('default/c');
  host.write('c.yaml', configMapYaml('c', { a: '2' }));
  await host.hint();
  assert.equal(source.current().configMaps.get('default/c'), before);
  await host.advance(SETTLE_MS);
  const after = source.current().configMaps.get('default/c');
  assert.equal(String(after?.data.get('a')), '2');
  assert.ok((after?.revision ?? 0) > (before?.revision ?? Number.POSITIVE_INFINITY));
});

test('a pod that comes right after a change of another file is wanted together with that', async () => {
  const { host, source } = await bench({
    'keys.yaml': secretYaml('keys', { key: 'one' }),
    'old.yaml': podYaml('old'),
  });
  const seen: string[] = [];
  source.onChange(() => seen.push(`${podsOf(source.current())} ${revisionOf(source)}`));
  const before = revisionOf(source);
  host.write('keys.yaml', secretYaml('keys', { key: 'two' }));
  await host.hint();
  await host.advance(100);
  host.write('web.yaml', podYaml('web'));
  await host.hint();
  assert.deepEqual([podsOf(source.current()), revisionOf(source)], [['uid-old'], before]);
  assert.ok(isSafe(source.current(), 'uid-web', 'web.yaml'));
  await host.advance(SETTLE_MS - 100);
  assert.ok(revisionOf(source) > before);
  await host.advance(100);
  assert.deepEqual(podsOf(source.current()), ['uid-old', 'uid-web']);
  assert.ok(
    seen.every((one) => !one.includes('uid-web') || !one.endsWith(` ${before}`)),
    seen.join('; '),
  );
});

test('a pod that is added to a file right after a change of another one waits, too, and no longer', async () => {
  const { host, source } = await bench({
    'keys.yaml': secretYaml('keys', { key: 'one' }),
    'old.yaml': podYaml('old'),
  });
  // The other file never comes to rest.
  for (let round = 0; round < 10; round += 1) {
    host.write('keys.yaml', secretYaml('keys', { key: `round ${round}` }));
    if (round === 0) host.write('old.yaml', `${podYaml('old')}---\n${podYaml('new')}`);
    await host.hint();
    if (round < 2) assert.deepEqual(podsOf(source.current()), ['uid-old'], `after round ${round}`);
    await host.advance(100);
  }
  assert.deepEqual(podsOf(source.current()), ['uid-new', 'uid-old']);
});

test('a new pod in a directory that is accepted waits no longer than elsewhere for what differs there', async () => {
  const { host, source, manifests } = await bench({
    'keys.yaml': secretYaml('keys', { key: 'one' }),
    'old.yaml': podYaml('old'),
    'two.yaml': `${podYaml('second')}---\n${configMapYaml('c', {})}`,
  });
  const before = revisionOf(source);
  host.write('keys.yaml', secretYaml('keys', { key: 'two' }));
  host.write('new.yaml', podYaml('new'));
  host.write('two.yaml', podYaml('second'));
  host.remove('old.yaml');
  manifests.accepted();
  await host.advance(0);
  assert.deepEqual(
    source.current().rejected.map(({ origin, message }) => `${origin}: ${message}`),
    ['new.yaml: it has a new pod, and waits until what is being changed in other manifests has settled'],
  );
  assert.equal(source.current().awaited, 'new.yaml');
  await host.advance(SETTLE_MS);
  const { rejected, unknownOrigins, awaited } = source.current();
  assert.deepEqual(podsOf(source.current()), ['uid-new', 'uid-old', 'uid-second']);
  assert.deepEqual([rejected, [...unknownOrigins], awaited], [[], [], undefined]);
  assert.ok(revisionOf(source) > before);
  // What is not there vanished unseen.
  await host.advance(HOLD_MS - SETTLE_MS - 1);
  assert.deepEqual(podsOf(source.current()), ['uid-new', 'uid-old', 'uid-second']);
  assert.deepEqual([...source.current().configMaps.keys()], ['default/c']);
  await host.advance(1);
  assert.deepEqual(podsOf(source.current()), ['uid-new', 'uid-second']);
  assert.deepEqual([...source.current().configMaps.keys()], []);
});

test('a file that could never be read and is not in a directory that is accepted is unknown for the hold', async () => {
  const { host, source, manifests } = await bench({ 'a.yaml': podYaml('a'), 'broken.yaml': 'a: [b\n' });
  host.remove('broken.yaml');
  manifests.accepted();
  await host.advance(HOLD_MS - 1);
  assert.deepEqual([...source.current().unknownOrigins], ['broken.yaml']);
  await host.advance(1);
  assert.deepEqual([...source.current().unknownOrigins], []);
});

test('a new pod waits no longer while most of the others are kept because they vanished at once', async () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const { host, source } = await bench({
    ...Object.fromEntries(names.map((name) => [`${name}.yaml`, podYaml(name)])),
    'c.yaml': `${podYaml('c')}---\n${configMapYaml('c', { a: '1' })}`,
  });
  for (const name of ['a', 'b', 'd', 'e']) host.remove(`${name}.yaml`);
  host.write('c.yaml', `${podYaml('c')}---\n${configMapYaml('c', { a: '2' })}`);
  host.write('new.yaml', podYaml('new'));
  await host.hint();
  await host.advance(SETTLE_MS);
  assert.equal(massRemovalIn(source.current())?.pods.size, 4);
  assert.equal(source.current().pods.get(podUid('uid-new'))?.origin, 'new.yaml');
  assert.equal(String(source.current().configMaps.get('default/c')?.data.get('a')), '2');
});

test('a changed secret has a greater revision although nothing of it can be seen', async () => {
  const { host, source } = await bench({ 's.yaml': secretYaml('s', { a: 'x' }) });
  const before = source.current().secrets.get('default/s')?.revision ?? 0;
  host.write('s.yaml', secretYaml('s', { a: 'y' }));
  await host.hint();
  await host.advance(SETTLE_MS);
  assert.ok((source.current().secrets.get('default/s')?.revision ?? 0) > before);
});

test('what is added to a file counts at once, and what stayed keeps its revision', async () => {
  const { host, source } = await bench({ 'a.yaml': podYaml('a') });
  const before = source.current().pods.get(podUid('uid-a'));
  host.write('a.yaml', `${podYaml('a')}---\n${podYaml('b')}`);
  await host.hint();
  assert.deepEqual(podsOf(source.current()), ['uid-a', 'uid-b']);
  assert.equal(source.current().pods.get(podUid('uid-a')), before);
});

test('a change that goes on changing never counts before it is still', async () => {
  const { host, source } = await bench({ 'c.yaml': configMapYaml('c', { a: '0' }) });
  for (let round = 1; round <= 20; round += 1) {
    host.write('c.yaml', configMapYaml('c', { a: String(round) }));
    await host.hint();
    await host.advance(SETTLE_MS - 1);
  }
  assert.equal(String(source.current().configMaps.get('default/c')?.data.get('a')), '0');
  await host.advance(SETTLE_MS);
  assert.equal(String(source.current().configMaps.get('default/c')?.data.get('a')), '20');
});

test('a file that breaks keeps what it said, says that it is unknown, and is well again when mended', async () => {
  const good = podYaml('web');
  const breakages: Readonly<Record<string, (host: DirectoryHost) => void>> = {
    empty: (host) => host.write('web.yaml', ''),
    comments: (host) => host.write('web.yaml', '# later\n'),
    syntax: (host) => host.write('web.yaml', 'a: [b\n'),
    tabs: (host) => host.write('web.yaml', good.replace('  name', '\tname')),
    binary: (host) => host.write('web.yaml', Uint8Array.of(0xff, 0xfe, 0)),
    unreadable: (host) => host.makeUnreadable('web.yaml', 'input-output', 'EIO'),
    large: (host) => host.makeUnreadable('web.yaml', 'too-large', 'larger than 1048576 bytes'),
    symlink: (host) => host.write('web.yaml', '', 'symlink'),
  };
  for (const [name, damage] of Object.entries(breakages)) {
    const { host, source } = await bench({ 'web.yaml': good });
    damage(host);
    await host.hint();
    await host.advance(3_600_000);
    const wish = source.current();
    assert.deepEqual([podsOf(wish), [...wish.unknownOrigins]], [['uid-web'], ['web.yaml']], name);
    assert.equal(wish.rejected.length, 1, name);
    host.write('web.yaml', good);
    await host.hint();
    assert.deepEqual([[...source.current().unknownOrigins], source.current().rejected], [[], []], name);
    source.stop();
  }
});

test('a file that others can write, or own, says nothing, and nothing of it is taken down', async () => {
  const wrong = [{ mode: 0o664 }, { mode: 0o646 }, { mode: 0o777 }, { uid: 4_242 }] as const;
  for (const facts of wrong) {
    const { host, source } = await bench({ 'web.yaml': podYaml('web') });
    host.write('new.yaml', podYaml('new'));
    for (const name of ['web.yaml', 'new.yaml']) host.giveAway(name, facts);
    await host.hint();
    await host.advance(60_000);
    const wish = source.current();
    assert.deepEqual(
      [podsOf(wish), [...wish.unknownOrigins].sort()],
      [['uid-web'], ['new.yaml', 'web.yaml']],
    );
    assert.match(wish.rejected[0]?.message ?? '', /can be written by others.*chmod go-w|belongs to uid 4242/);
    host.write('new.yaml', podYaml('new'));
    await host.hint();
    assert.deepEqual(podsOf(source.current()), ['uid-new', 'uid-web']);
    source.stop();
  }
});

test('a broken file that is deleted is not unknown any more', async () => {
  const { host, source } = await bench({ 'web.yaml': 'a: [b\n' });
  assert.deepEqual([...source.current().unknownOrigins], ['web.yaml']);
  host.remove('web.yaml');
  await host.hint();
  await host.advance(SETTLE_MS);
  assert.deepEqual([...source.current().unknownOrigins, ...source.current().rejected], []);
});

test('a document that becomes invalid keeps its last good object, frozen, and holds up no other', async () => {
  const { host, source } = await bench({
    'two.yaml': `${podYaml('a', { v: 'emptyDir: {}' })}---\n${podYaml('b')}`,
  });
  host.write(
    'two.yaml',
    `${podYaml('a', { v: 'hostPath: {path: x}' })}---\n${podYaml('b')}---\n${podYaml('c')}`,
  );
  await host.hint();
  await host.advance(60_000);
  const wish = source.current();
  assert.deepEqual(podsOf(wish), ['uid-a', 'uid-b', 'uid-c']);
  assert.equal(wish.pods.get(podUid('uid-a'))?.volumes[0]?.source.kind, 'empty-dir');
  assert.deepEqual([[...wish.frozenPods], [...wish.unknownOrigins]], [['uid-a'], []]);
});

test('a PersistentVolume that becomes invalid stays as it was', async () => {
  const { host, source } = await bench({ 'v.yaml': volumeYaml('v') });
  host.write('v.yaml', volumeYaml('v', { handle: '' }));
  await host.hint();
  await host.advance(60_000);
  const volume = source.current().volumes.get('v');
  assert.equal(volume?.source.kind === 'csi' && volume.source.volumeHandle, 'handle-v');
});

test('a good manifest cut short at every byte, and left so for an hour, never makes its pod unwanted', async () => {
  const claim = claimYaml('data');
  // Cut between two documents a file is a whole file: that cannot be told from a wish.
  const wholeFiles = [claim, `${claim}---\n`];
  for (const manifest of [
    podYaml('web', { data: claimSource('data'), tmp: 'emptyDir: {}' }),
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","uid":"uid-web"},"spec":{"containers":[{"name":"m"}]}}',
    'kind: Pod\nspec:\n  containers: [{name: main}]\nmetadata:\n  uid: uid-web\n  name: web\napiVersion: v1\n',
    `${claim}---\n${podYaml('web', { data: claimSource('data') })}`,
  ]) {
    for (let length = 0; length < manifest.length; length += 1) {
      const cut = manifest.slice(0, length);
      const { host, source } = await bench({ 'web.yaml': manifest });
      host.write('web.yaml', cut);
      await host.hint();
      assert.deepEqual(podsOf(source.current()), ['uid-web'], cut);
      await host.advance(3_600_000);
      assert.ok(wholeFiles.includes(cut) || isSafe(source.current(), 'uid-web', 'web.yaml'), cut);
      source.stop();
    }
  }
});

test('a good manifest cut short at every byte when the agent starts does not let its pod be torn down', async () => {
  const bytes = Buffer.from(podYaml('web', { data: claimSource('data'), tmp: 'emptyDir: {}' }));
  for (let length = 0; length <= bytes.length; length += 1) {
    const { source } = await bench({ 'web.yaml': bytes.subarray(0, length).toString() });
    assert.ok(isSafe(source.current(), 'uid-web', 'web.yaml'), `${length} bytes`);
    source.stop();
  }
});

test('a new file without an end of line waits until it is still', async () => {
  const { host, source } = await bench();
  host.write('web.yaml', podYaml('web').trimEnd());
  await host.hint();
  assert.deepEqual([podsOf(source.current()), [...source.current().unknownOrigins]], [[], ['web.yaml']]);
  assert.deepEqual(
    source.current().rejected.map(({ message }) => message),
    ['it ends as if it were still being written, and waits until it is still'],
  );
  await host.advance(SETTLE_MS);
  assert.deepEqual([podsOf(source.current()), [...source.current().unknownOrigins]], [['uid-web'], []]);
});

test('a good file is never logged as not taken, whatever it waits for; a wrong one is', async () => {
  const { host, source } = await bench({ 'web.yaml': podYaml('web') });
  const lines: string[] = [];
  const note = (event: string, facts: object = {}): void =>
    void lines.push(`${event} ${JSON.stringify(facts)}`);
  const log = createRejectionLog({ debug() {}, info: note, warn: note, error() {} });
  source.onChange(() => log.note(source.current()));
  host.write('db.yaml', podYaml('db').trimEnd());
  await host.hint();
  await host.advance(SETTLE_MS);
  // A pod that comes while another file changes is held.
  host.write('web.yaml', podYaml('web', { data: claimSource('data') }));
  host.write('api.yaml', podYaml('api'));
  await host.hint();
  assert.equal(source.current().awaited, 'api.yaml');
  await host.advance(2 * SETTLE_MS);
  assert.deepEqual(podsOf(source.current()), ['uid-api', 'uid-db', 'uid-web']);
  assert.deepEqual(lines, []);
  host.write('bad.yaml', 'kind: [\n');
  await host.hint();
  assert.match(lines.join('\n'), /^not taken .*bad\.yaml/);
});

test('a directory that cannot be listed is unknown: nothing complete before, nothing lost after', async () => {
  const host = new DirectoryHost();
  host.trouble = 'path-missing';
  const manifests = createManifestSource({
    host,
    directory: path('/etc/manifests'),
    parser: IN_PROCESS_PARSER,
  });
  const source = oneSource(host, manifests);
  await source.start();
  assert.deepEqual([source.current().complete, source.current().rejected.length], [false, 1]);
  host.trouble = undefined;
  host.write('web.yaml', podYaml('web'));
  await host.advance(2_000);
  assert.deepEqual([source.current().complete, podsOf(source.current())], [true, ['uid-web']]);
  host.trouble = 'input-output';
  await host.hint();
  await host.advance(3_600_000);
  const wish = source.current();
  assert.deepEqual([wish.complete, podsOf(wish)], [true, ['uid-web']]);
  assert.ok(wish.unknownOrigins.has('/etc/manifests'));
});

test('when most pods vanish at once they stay wanted for ten seconds', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const files = Object.fromEntries(names.map((name) => [`${name}.yaml`, podYaml(name)]));
  const { host, source } = await bench(files);
  for (const name of names.slice(0, 4)) host.remove(`${name}.yaml`);
  await host.hint();
  const sinceMs = host.nowMs();
  await host.advance(9_999);
  assert.equal(source.current().pods.size, 6);
  const pods = new Set(['uid-a', 'uid-b', 'uid-c', 'uid-d'].map(podUid));
  assert.deepEqual(massRemovalIn(source.current()), { pods, sinceMs, untilMs: sinceMs + 10_000 });
  await host.advance(1);
  assert.deepEqual(podsOf(source.current()), ['uid-e', 'uid-f']);
  assert.equal(massRemovalIn(source.current()), undefined);
});

test('pods that vanished and came back are not vanishing any more, and that is told', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const { host, source, changes } = await bench(
    Object.fromEntries(names.map((name) => [`${name}.yaml`, podYaml(name)])),
  );
  for (const name of names) host.remove(`${name}.yaml`);
  await host.hint();
  assert.deepEqual([changes(), massRemovalIn(source.current())?.pods.size], [2, 6]);
  for (const name of names) host.write(`${name}.yaml`, podYaml(name));
  await host.hint();
  await host.advance(20_000);
  assert.deepEqual(
    [changes(), massRemovalIn(source.current()), source.current().pods.size],
    [3, undefined, 6],
  );
});

test('the guard counts pods that vanish one listing after the other, before the first of them counts', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const { host, source } = await bench({
    'all.yaml': names
      .slice(0, 3)
      .map((one) => podYaml(one))
      .join('---\n'),
    ...Object.fromEntries(names.slice(3).map((name) => [`${name}.yaml`, podYaml(name)])),
  });
  host.remove('d.yaml');
  await host.hint();
  await host.advance(SETTLE_MS - 50);
  host.write('all.yaml', configMapYaml('nothing-else', {}));
  await host.hint();
  await host.advance(SETTLE_MS * 3);
  assert.equal(source.current().pods.size, 6);
  await host.advance(10_000);
  assert.deepEqual(podsOf(source.current()), ['uid-e', 'uid-f']);
});

test('that pods are gone is said of this time: when they vanish once more, they are kept once more', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  const leaving = names.slice(0, 5);
  for (const lastsMs of [0, 3_600_000]) {
    const { host, source, manifests } = await bench(
      Object.fromEntries(names.map((name) => [`${name}.yaml`, podYaml(name)])),
    );
    for (const name of leaving) host.remove(`${name}.yaml`);
    await host.hint();
    manifests.forget(leaving.map((name) => podUid(`uid-${name}`)));
    await host.advance(lastsMs);
    assert.equal(source.current().pods.size, lastsMs === 0 ? 7 : 2);
    for (const name of leaving) host.write(`${name}.yaml`, podYaml(name));
    await host.hint();
    await host.advance(3_600_000);
    assert.equal(source.current().pods.size, 7);
    for (const name of leaving) host.remove(`${name}.yaml`);
    await host.hint();
    await host.advance(9_999);
    assert.deepEqual([source.current().pods.size, massRemovalIn(source.current())?.pods.size], [7, 5]);
    await host.advance(1);
    assert.equal(source.current().pods.size, 2);
    source.stop();
  }
});

test('a pod that was once said to be gone is kept when it is not in a directory that is accepted', async () => {
  const names = ['a', 'b', 'c', 'd'];
  const { host, source, manifests } = await bench(
    Object.fromEntries(names.map((name) => [`${name}.yaml`, podYaml(name)])),
  );
  for (const name of names) host.remove(`${name}.yaml`);
  await host.hint();
  manifests.forget(names.map((name) => podUid(`uid-${name}`)));
  for (const name of names) host.write(`${name}.yaml`, podYaml(name));
  await host.hint();
  host.remove('a.yaml');
  manifests.accepted();
  await host.advance(HOLD_MS - 1);
  assert.deepEqual(podsOf(source.current()), ['uid-a', 'uid-b', 'uid-c', 'uid-d']);
  await host.advance(1);
  assert.deepEqual(podsOf(source.current()), ['uid-b', 'uid-c', 'uid-d']);
});

test('pods that are in another file by now have not vanished, however many they are', async () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const all = names.map((name) => podYaml(name)).join('---\n');
  for (const how of ['renamed', 'moved', 'accepted'] as const) {
    const { host, source, manifests } = await bench({ 'all.yaml': all, 'old.yaml': podYaml('old') });
    if (how === 'moved') host.write('all.yaml', configMapYaml('nothing-else', {}));
    else host.remove('all.yaml');
    host.write('pods.yaml', all);
    // One of six is not most of them.
    if (how === 'moved') host.remove('old.yaml');
    if (how === 'accepted') manifests.accepted();
    else await host.hint();
    await host.advance(SETTLE_MS);
    const { pods, rejected, frozenPods } = source.current();
    assert.deepEqual(
      names.map((name) => pods.get(podUid(`uid-${name}`))?.origin),
      names.map(() => 'pods.yaml'),
      how,
    );
    assert.equal(pods.has(podUid('uid-old')), how !== 'moved', how);
    assert.deepEqual([rejected, [...frozenPods], massRemovalIn(source.current())], [[], [], undefined], how);
    source.stop();
  }
});

test('a few of many pods vanish without the guard', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'];
  const { host, source } = await bench(
    Object.fromEntries(names.map((name) => [`${name}.yaml`, podYaml(name)])),
  );
  for (const name of names.slice(0, 4)) host.remove(`${name}.yaml`);
  await host.hint();
  await host.advance(SETTLE_MS);
  assert.equal(source.current().pods.size, 5);
  assert.equal(massRemovalIn(source.current()), undefined);
});

test('a pod that moves to another file is wanted all the time', async () => {
  const { host, source } = await bench({ 'a.yaml': podYaml('web') });
  const lost = watchLost(source, 'uid-web');
  host.remove('a.yaml');
  host.write('b.yaml', podYaml('web'));
  await host.hint();
  await host.advance(SETTLE_MS);
  assert.deepEqual([lost, source.current().pods.get(podUid('uid-web'))?.origin], [[], 'b.yaml']);
  assert.deepEqual([...source.current().frozenPods, ...source.current().rejected], []);
});

test('a pod whose file comes back under another name within the settle time is wanted all the time', async () => {
  for (const ms of [1, SETTLE_MS - 1, SETTLE_MS]) {
    const { host, source } = await bench({ 'a.yaml': podYaml('web') });
    const lost = watchLost(source, 'uid-web');
    host.remove('a.yaml');
    await host.hint();
    await host.advance(ms - 1);
    host.write('b.yaml', podYaml('web'));
    await host.advance(SETTLE_MS);
    assert.deepEqual(
      [lost, source.current().pods.get(podUid('uid-web'))?.origin],
      [[], 'b.yaml'],
      `${ms} ms`,
    );
  }
});

test('a pod that moves between two files that stay is wanted all the time, however far apart the writes', async () => {
  const others: Readonly<Record<string, readonly [string, string]>> = {
    new: ['', podYaml('web')],
    added: [podYaml('old'), `${podYaml('old')}---\n${podYaml('web')}`],
    exchanged: [podYaml('old'), podYaml('web')],
    unfinished: ['', podYaml('web').trimEnd()],
  };
  for (const [how, [before, after]] of Object.entries(others)) {
    for (const ms of [1, 20, SETTLE_MS - 1, SETTLE_MS]) {
      const { host, source } = await bench({ 'a.yaml': `${podYaml('web')}---\n${podYaml('other')}` });
      if (before !== '') host.write('b.yaml', before);
      await host.hint();
      const lost = watchLost(source, 'uid-web');
      host.write('a.yaml', podYaml('other'));
      await host.hint();
      await host.advance(ms - 1);
      host.write('b.yaml', after);
      await host.hint();
      await host.advance(SETTLE_MS * 2);
      const { pods, frozenPods, unknownOrigins, rejected } = source.current();
      const last = [pods.get(podUid('uid-web'))?.origin, ...frozenPods, ...unknownOrigins, ...rejected];
      assert.deepEqual([lost, last], [[], ['b.yaml']], `${how}, ${ms} ms`);
      source.stop();
    }
  }
});

test('pods that change their places, or go round, are wanted all the time, and nobody looks on and on', async () => {
  const names = ['a', 'b', 'c'];
  const { host, source } = await bench(
    Object.fromEntries(names.map((name) => [`${name}.yaml`, podYaml(`from-${name}`)])),
  );
  const lost = names.map((name) => watchLost(source, `uid-from-${name}`));
  for (const [index, name] of names.entries()) {
    host.write(`${name}.yaml`, podYaml(`from-${names.at(index - 1)}`));
    await host.hint();
    await host.advance(100);
  }
  const { listings } = host;
  await host.advance(SETTLE_MS * 3);
  const { pods } = source.current();
  assert.deepEqual(
    names.map((name) => pods.get(podUid(`uid-from-${name}`))?.origin),
    ['b.yaml', 'c.yaml', 'a.yaml'],
  );
  assert.deepEqual(lost.flat(), []);
  assert.ok(host.listings - listings <= names.length, `${host.listings - listings} listings`);
});

test('a pod that is refused in the file that it moves to is frozen without a gap', async () => {
  const { host, source } = await bench({
    'a.yaml': `${podYaml('web')}---\n${podYaml('other')}`,
    'b.yaml': configMapYaml('c', { a: '1' }),
  });
  const unsafe: number[] = [];
  source.onChange(() => {
    if (!isSafe(source.current(), 'uid-web', 'a.yaml')) unsafe.push(host.nowMs());
  });
  host.write('a.yaml', podYaml('other'));
  await host.hint();
  await host.advance(100);
  const refused = podYaml('web', { v: 'hostPath: {path: x}' });
  host.write('b.yaml', `${configMapYaml('c', { a: '2' })}---\n${refused}`);
  await host.hint();
  await host.advance(SETTLE_MS);
  const { pods, frozenPods } = source.current();
  assert.deepEqual([pods.has(podUid('uid-web')), [...frozenPods], unsafe], [false, ['uid-web'], []]);
});

test('an object that is no pod is there all the time, too, when it moves together with a new pod', async () => {
  const keys = secretYaml('keys', { key: 'one' });
  const { host, source } = await bench({ 'a.yaml': `${keys}---\n${podYaml('old')}` });
  const seen: number[] = [];
  source.onChange(() => seen.push(revisionOf(source)));
  const before = revisionOf(source);
  host.write('a.yaml', podYaml('old'));
  await host.hint();
  await host.advance(100);
  host.write('b.yaml', `${keys}---\n${podYaml('new')}`);
  await host.hint();
  await host.advance(SETTLE_MS);
  assert.deepEqual(podsOf(source.current()), ['uid-new', 'uid-old']);
  assert.ok(
    seen.every((revision) => revision === before),
    seen.join(),
  );
});

test('a pod whose new file is not there for a moment is wanted until it was missing for the settle time', async () => {
  for (const isBack of [true, false]) {
    const { host, source } = await bench({ 'a.yaml': `${podYaml('web')}---\n${podYaml('other')}` });
    const lost = watchLost(source, 'uid-web');
    host.write('a.yaml', podYaml('other'));
    await host.hint();
    await host.advance(SETTLE_MS - 1);
    host.write('b.yaml', podYaml('web'));
    await host.hint();
    await host.advance(100);
    host.remove('b.yaml');
    await host.hint();
    await host.advance(SETTLE_MS - 1);
    assert.deepEqual([lost, podsOf(source.current())], [[], ['uid-other', 'uid-web']]);
    if (isBack) host.write('b.yaml', podYaml('web'));
    await host.hint();
    await host.advance(SETTLE_MS);
    assert.equal(source.current().pods.get(podUid('uid-web'))?.origin, isBack ? 'b.yaml' : undefined);
    if (isBack) assert.deepEqual(lost, []);
    source.stop();
  }
});

test('a pod whose new file breaks before it counts there is wanted until it can be read (7004532)', async () => {
  const moved = podYaml('web');
  const breakages: Readonly<Record<string, (host: DirectoryHost) => void>> = {
    syntax: (host) => host.write('b.yaml', 'a: [b\n'),
    unreadable: (host) => host.makeUnreadable('b.yaml', 'input-output', 'EIO'),
    twice: (host) => {
      host.makeUnreadable('b.yaml', 'input-output', 'EIO');
      void host.hint().then(() => host.write('b.yaml', ''));
    },
    refused: (host) => host.write('b.yaml', `${configMapYaml('c', { a: '2' })}---\nkind: Pod\n`),
  };
  for (const [how, damage] of Object.entries(breakages)) {
    for (const after of [`${configMapYaml('c', { a: '1' })}---\n${moved}`, configMapYaml('c', { a: '1' })]) {
      const { host, source } = await bench({
        'a.yaml': `${moved}---\n${podYaml('other')}`,
        'b.yaml': configMapYaml('c', { a: '1' }),
      });
      host.write('a.yaml', podYaml('other'));
      await host.hint();
      await host.advance(100);
      host.write('b.yaml', `${configMapYaml('c', { a: '1' })}---\n${moved}`);
      await host.hint();
      damage(host);
      await host.hint();
      await host.advance(3_600_000);
      assert.deepEqual(podsOf(source.current()), ['uid-other', 'uid-web'], how);
      host.write('b.yaml', after);
      await host.hint();
      await host.advance(SETTLE_MS * 2);
      const { pods, rejected } = source.current();
      const isThere = after.includes('web');
      assert.deepEqual(
        [pods.get(podUid('uid-web'))?.origin, rejected],
        [isThere ? 'b.yaml' : undefined, []],
        how,
      );
      source.stop();
    }
  }
});

test('a file that is written again, and cannot be read as before, is no news, and keeps what moves', async () => {
  const { host, source, changes } = await bench({ 'a.yaml': podYaml('web'), 'b.yaml': 'a: [b\n' });
  const breakAgain = () => {
    host.write('b.yaml', podYaml('web'));
    host.makeUnreadable('b.yaml', 'input-output', 'EIO');
  };
  breakAgain();
  await host.hint();
  await host.advance(SETTLE_MS * 4);
  const before = changes();
  breakAgain();
  await host.hint();
  assert.equal(changes(), before);
  host.remove('a.yaml');
  await host.hint();
  await host.advance(60_000);
  assert.deepEqual(podsOf(source.current()), ['uid-web'], 'it may have moved there');
});

test('AP-12: a pod may be wanted from when its file is there until that was missing for the settle time', async () => {
  const { host, manifests } = await bench({ 'disk.yaml': volumeYaml('disk') });
  assert.ok(!manifests.mayWantPods());
  host.write('web.yaml', podYaml('web'));
  const read = host.hint();
  const seen: boolean[] = [];
  manifests.onChange(() => seen.push(manifests.mayWantPods()));
  await read;
  assert.deepEqual([...new Set(seen)], [true], 'whoever is told of it');
  host.remove('web.yaml');
  await host.hint();
  assert.ok(manifests.mayWantPods());
  await host.advance(SETTLE_MS);
  assert.ok(!manifests.mayWantPods());
  const listing = { nowMs: 0, beganMs: 0, settleMs: SETTLE_MS, readingSinceMs: 0 };
  const facts = { missing: 0, holdMs: undefined, forgotten: new Set<PodUid>() };
  const waiting = afterLooks(new Map(), new Map([['new.yaml', { kind: 'waiting' }]]), listing, facts);
  assert.ok(mayWantPods(waiting), 'nobody knows yet what it says');
});

test('what a listing shows is as old as its beginning, however late its answer comes', async () => {
  const { host, source } = await bench({ 'a.yaml': `${podYaml('web')}---\n${podYaml('other')}` });
  const lost = watchLost(source, 'uid-web');
  host.write('a.yaml', podYaml('other'));
  await host.hint();
  await host.advance(100);
  let answer = (): void => {};
  host.beforeAnswer = () => new Promise((resolve) => (answer = resolve));
  await host.hint();
  host.beforeAnswer = undefined;
  host.write('b.yaml', podYaml('web'));
  await host.advance(SETTLE_MS);
  answer();
  await host.advance(SETTLE_MS);
  assert.deepEqual([lost, source.current().pods.get(podUid('uid-web'))?.origin], [[], 'b.yaml']);
});

test('a hint during a listing causes another one', async () => {
  const { host, source } = await bench();
  const hinted = host.hint();
  host.write('web.yaml', podYaml('web'));
  await Promise.all([hinted, host.hint()]);
  assert.deepEqual(podsOf(source.current()), ['uid-web']);
});

test('without any hint the resync finds what is new', async () => {
  const { host, source } = await bench();
  host.write('web.yaml', podYaml('web'));
  await host.advance(60_000);
  assert.deepEqual(podsOf(source.current()), ['uid-web']);
});

test('a source that was stopped reads nothing, tells nothing and leaves no timer', async () => {
  const { host, source, changes } = await bench();
  source.stop();
  host.write('web.yaml', podYaml('web'));
  await host.hint();
  await host.advance(600_000);
  assert.deepEqual([host.pendingTimers, host.listings, changes(), podsOf(source.current())], [0, 1, 1, []]);
});

test('whatever happens to the files, no pod is lost while its file stands or has just gone', async () => {
  const good = podYaml('web');
  const step = fc.oneof(
    fc.constant({ kind: 'good' as const }),
    fc.constant({ kind: 'gone' as const }),
    fc.nat(good.length).map((length) => ({ kind: 'cut' as const, length })),
    fc.uint8Array({ maxLength: 20 }).map((bytes) => ({ kind: 'noise' as const, bytes })),
    fc.constantFrom(1, 150, 299).map((ms) => ({ kind: 'wait' as const, ms })),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const { host, source } = await bench({ 'web.yaml': good });
      let goneMs = 0;
      let gone = false;
      for (const one of steps) {
        if (one.kind === 'wait') {
          await host.advance(one.ms);
          goneMs = gone ? goneMs + one.ms : 0;
        } else {
          gone = one.kind === 'gone';
          if (!gone) goneMs = 0;
          if (one.kind === 'good') host.write('web.yaml', good);
          else if (one.kind === 'cut') host.write('web.yaml', good.slice(0, one.length));
          else if (one.kind === 'noise') host.write('web.yaml', one.bytes);
          else host.remove('web.yaml');
          await host.hint();
        }
        if (goneMs >= SETTLE_MS) return;
        assert.ok(isSafe(source.current(), 'uid-web', 'web.yaml'));
      }
      source.stop();
    }),
    { numRuns: 200 },
  );
});
