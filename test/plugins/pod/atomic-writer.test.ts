import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FailureCode, Result } from '../../../mount/failure.ts';
import type { AbsolutePath } from '../../../mount/host.ts';
import { temporaryName } from '../../../mount/temporary-file.ts';
import { transition } from '../../../mount/transition.ts';
import { type Generation, writeGeneration } from '../../../plugins/pod/atomic-writer.ts';
import {
  CONTENT_BYTES_MAX,
  CONTENT_FILES_MAX,
  type ContentTree,
  parseContentTree,
} from '../../../plugins/pod/content-tree.ts';
import { accept } from '../accept.ts';
import { type Files, filesOf, inodeOf } from '../local-world.ts';
import { CRASH, createMemoryHost, type MemoryHost } from '../memory-host.ts';

const VOLUME = '/volume' as AbsolutePath;
const SECRET = { text: 's3cret', mode: 0o400 };

/** Every step from one of these to another (and to itself) is walked, cut and failed below. */
const GENERATIONS: readonly Files[] = [
  { a: 'one', b: 'one' },
  { a: 'two', b: 'two' },
  { a: 'one', b: { text: 'one', mode: 0o600 } },
  { b: 'three', c: 'three', 'deep/er/key': 'three' },
  { deep: 'a file where a directory was', a: 'four' },
  {},
  { 'deep/er/key': 'five', 'deep/key': SECRET, 'deep/er/.key.tmp': 'five' },
];

function treeOf(files: Files): ContentTree {
  const tree = parseContentTree(filesOf(files).reveal());
  accept(tree);
  return tree.value;
}

const writing = transition('test-write', (generation: Generation) => writeGeneration(generation));

function write(host: MemoryHost, files: Files): Promise<Result<unknown>> {
  return host.perform(writing, { path: VOLUME, tree: treeOf(files), gid: undefined });
}

function freshVolume(): MemoryHost {
  const host = createMemoryHost();
  host.plant(VOLUME, { kind: 'directory' });
  return host;
}

async function volumeWith(files: Files | undefined): Promise<MemoryHost> {
  const host = freshVolume();
  if (files !== undefined) accept(await write(host, files));
  return host;
}

function textOf(file: Files[string]): string {
  return typeof file === 'string' ? file : file.text;
}

/** All files below, by path; undefined when there is nothing of that name. */
function readAll(host: MemoryHost, root: string, prefix = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of host.names(`${root}/${prefix}`)) {
    const text = host.read(`${root}/${prefix}${name}`);
    if (text === undefined) Object.assign(found, readAll(host, root, `${prefix}${name}/`));
    else found[`${prefix}${name}`] = text;
  }
  return found;
}

function asText(files: Files): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([path, file]) => [path, textOf(file)]));
}

/**
 * What a reader may see at any instant: all of one of these generations, by every link that leads to it. A link may be
 * missing only for a key that the generation before, `had`, did not have.
 */
function checkReader(host: MemoryHost, allowed: readonly Files[], had: Files = {}): void {
  if (host.names(VOLUME).includes('..data')) {
    const seen = readAll(host, `${VOLUME}/..data`);
    const generation = allowed.find((one) => same(asText(one), seen));
    assert.ok(generation !== undefined, `a reader saw a mixture: ${JSON.stringify(seen)}`);
    for (const [path, text] of Object.entries(seen)) {
      const byLink = host.read(`${VOLUME}/${path}`);
      const isNew = !firstComponents(had).includes(path.split('/')[0] ?? '');
      assert.ok(byLink === text || (byLink === undefined && isNew), `${path} read by its link: ${byLink}`);
    }
  } else {
    assert.equal(allowed.length, 1, 'the visible generation disappeared');
  }
}

function firstComponents(files: Files): readonly string[] {
  return Object.keys(files).map((path) => path.split('/')[0] ?? '');
}

function same(a: unknown, b: unknown): boolean {
  try {
    assert.deepEqual(a, b);
    return true;
  } catch {
    return false;
  }
}

const STEPS = [undefined, ...GENERATIONS].flatMap((from) => GENERATIONS.map((to) => ({ from, to })));

/** The tree as it must be in the end, whatever happened on the way. */
async function crashFree(files: Files): Promise<readonly string[]> {
  return (await volumeWith(files)).describe(VOLUME);
}

test('a first write makes the layout of the kubelet', async () => {
  const host = await volumeWith({ key: 'value', 'sub/dir/other': SECRET });
  assert.deepEqual(host.names(VOLUME), ['..2026_01_31_15_04_05.1073741824', '..data', 'key', 'sub']);
  assert.deepEqual(host.describe(VOLUME), [
    '/volume/..GENERATION directory 755',
    '/volume/..GENERATION/key file 644 "value"',
    '/volume/..GENERATION/sub directory 755',
    '/volume/..GENERATION/sub/dir directory 755',
    '/volume/..GENERATION/sub/dir/other file 400 "s3cret"',
    '/volume/..data symlink 777 -> ..GENERATION',
    '/volume/key symlink 777 -> ..data/key',
    '/volume/sub symlink 777 -> ..data/sub',
  ]);
});

test('INV-24: a reader sees exactly one complete generation at every instant of every change', async () => {
  for (const { from, to } of STEPS) {
    const host = await volumeWith(from);
    host.onEffect(() => checkReader(host, from === undefined ? [to] : [from, to], from));
    accept(await write(host, to));
    assert.deepEqual(host.describe(VOLUME), await crashFree(to));
  }
});

test('after a crash at any effect a reader sees one generation, and the next write ends like no crash', async () => {
  let crashes = 0;
  for (const { from, to } of STEPS) {
    const expected = await crashFree(to);
    for (let n = 1; ; n += 1) {
      const host = await volumeWith(from);
      host.crashAt(n);
      const ended = await write(host, to).then(
        () => true,
        (thrown) => {
          assert.equal(thrown, CRASH);
          return false;
        },
      );
      if (ended) break;
      crashes += 1;
      host.crashAt(undefined);
      checkReader(host, from === undefined ? [to] : [from, to], from);
      host.wall += 1_000;
      accept(await write(host, to));
      assert.deepEqual(host.describe(VOLUME), expected, `crash at effect ${n}`);
    }
  }
  assert.ok(crashes > 300, `${crashes} crashes were tried`);
});

test('a crash in the repair after a crash is repaired too, and the wish may change meanwhile', async () => {
  const [first, second, third] = GENERATIONS as [Files, Files, Files, Files];
  const last = GENERATIONS[3] as Files;
  for (let n = 1; n <= 12; n += 1) {
    for (let m = 1; m <= 16; m += 1) {
      const host = await volumeWith(first);
      for (const [at, files] of [
        [n, second],
        [m, third],
        [m, last],
      ] as const) {
        host.crashAt(at);
        await write(host, files).catch((thrown) => assert.equal(thrown, CRASH));
      }
      host.crashAt(undefined);
      checkReader(host, [first, second, third, last]);
      accept(await write(host, last));
      assert.deepEqual(host.describe(VOLUME), await crashFree(last), `crashes at ${n} and ${m}`);
    }
  }
});

test('INV-22: a failure of any call leaves one generation, "none" means the old one, and it is repaired', async () => {
  const codes: readonly FailureCode[] = ['disk-full', 'input-output', 'deadline-passed'];
  for (const { from, to } of STEPS) {
    const expected = await crashFree(to);
    const calls = await callsOf(from, to);
    for (let n = 1; n <= calls; n += 1) {
      for (const code of codes)
        for (const moment of ['before', 'after'] as const) {
          const host = await volumeWith(from);
          host.failAt(n, code, moment);
          const result = await write(host, to);
          checkReader(host, from === undefined ? [to] : [from, to], from);
          if (!result.ok && result.failure.effect === 'none' && from !== undefined) checkReader(host, [from]);
          accept(await write(host, to));
          assert.deepEqual(host.describe(VOLUME), expected, `${code} ${moment} call ${n}`);
        }
    }
  }
});

async function callsOf(from: Files | undefined, to: Files): Promise<number> {
  const host = await volumeWith(from);
  const before = host.calls();
  await write(host, to);
  return host.calls() - before;
}

test('a full disk leaves the previous generation as it was, frees what it took, and has no effect', async () => {
  for (let writes = 0; writes < 3; writes += 1) {
    const host = await volumeWith({ a: 'old', b: 'old', c: 'old' });
    const before = host.describe(VOLUME);
    const writeFile = host.writeFile;
    let left = writes;
    host.writeFile = async (path, bytes, options) => {
      left -= 1;
      if (left < 0)
        return { ok: false, failure: { code: 'disk-full', message: 'ENOSPC', effect: 'unknown' } };
      return writeFile(path, bytes, options);
    };
    const result = await write(host, { a: 'new', b: 'new', c: 'new' });
    assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['disk-full', 'none']);
    assert.deepEqual(host.describe(VOLUME), before);
  }
});

test('the first write that fails is in doubt, because there is no generation to fall back to', async () => {
  const host = freshVolume();
  host.failNext('writeFile', 'disk-full');
  const result = await write(host, { a: 'new' });
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['disk-full', 'unknown']);
});

test('a rename whose answer was lost is looked up, and the visible generation is never given up', async () => {
  const host = await volumeWith({ a: 'old' });
  host.failNext('rename', 'deadline-passed', 'after');
  accept(await write(host, { a: 'new' }));
  assert.equal(host.read('/volume/a'), 'new');

  const doubtful = await volumeWith({ a: 'old' });
  doubtful.failNext('rename', 'broker-lost', 'after');
  const readLink = doubtful.readLink;
  let asked = 0;
  doubtful.readLink = async (path) => {
    asked += 1;
    if (asked < 2) return readLink(path);
    return { ok: false, failure: { code: 'broker-lost', message: 'gone', effect: 'none' } };
  };
  const result = await write(doubtful, { a: 'new' });
  assert.equal(!result.ok && result.failure.effect, 'unknown');
  assert.equal(doubtful.read('/volume/a'), 'new');
});

test('the same content writes nothing', async () => {
  for (const files of GENERATIONS) {
    const host = await volumeWith(files);
    const before = host.effects();
    host.wall += 60_000;
    accept(await write(host, files));
    assert.equal(host.effects(), before);
  }
});

test('a changed mode is a change', async () => {
  const host = await volumeWith({ a: 'x' });
  accept(await write(host, { a: { text: 'x', mode: 0o440 } }));
  assert.deepEqual(host.describe(VOLUME), await crashFree({ a: { text: 'x', mode: 0o440 } }));
});

test('missing and misled links are repaired though the content is the same', async () => {
  const host = await volumeWith({ a: 'x', b: 'x', c: 'x' });
  const expected = host.describe(VOLUME);
  await host.removeFile('/volume/a' as AbsolutePath);
  await host.removeFile('/volume/b' as AbsolutePath);
  host.plant('/volume/b', { kind: 'symlink', text: '/etc/passwd' });
  host.plant('/volume/..data_tmp', { kind: 'symlink', text: '..gone' });
  host.plant('/volume/..2020_01_01_00_00_00.7/junk', { kind: 'file', content: 'half' });
  accept(await write(host, { a: 'x', b: 'x', c: 'x' }));
  assert.deepEqual(host.describe(VOLUME), expected);
});

test('a crash while a misled link is put right is repaired', async () => {
  for (let n = 1; n <= 3; n += 1) {
    const host = await volumeWith({ a: 'x', b: 'x' });
    const expected = host.describe(VOLUME);
    host.plant('/volume/a', { kind: 'symlink', text: '/etc/passwd' });
    host.crashAt(n);
    await write(host, { a: 'x', b: 'x' }).catch((thrown) => assert.equal(thrown, CRASH));
    host.crashAt(undefined);
    assert.notEqual(host.names(VOLUME).indexOf('a'), -1, 'the link is never missing');
    accept(await write(host, { a: 'x', b: 'x' }));
    assert.deepEqual(host.describe(VOLUME), expected, `crash at effect ${n}`);
  }
});

test('a file inside the visible generation that was tampered with is written anew as a whole generation', async () => {
  for (const [path, node] of [
    ['/volume/..2026_01_31_15_04_05.1073741824/a', { kind: 'file', content: 'evil' }],
    ['/volume/..2026_01_31_15_04_05.1073741824/more', { kind: 'file', content: 'evil' }],
    ['/volume/..2026_01_31_15_04_05.1073741824/a', { kind: 'symlink', text: '/etc/passwd' }],
    ['/volume/..data', { kind: 'symlink', text: '/etc' }],
    ['/volume/..data', { kind: 'symlink', text: '..2030_01_01_00_00_00.1' }],
  ] as const) {
    const host = await volumeWith({ a: 'x', b: 'x' });
    host.plant('/etc/passwd', { kind: 'file', content: 'root' });
    const expected = host.describe(VOLUME);
    host.plant(path, node);
    accept(await write(host, { a: 'x', b: 'x' }));
    assert.deepEqual(host.describe(VOLUME), expected, path);
    assert.equal(host.read('/etc/passwd'), 'root');
  }
});

test('links planted in the volume lead the writer to delete nothing that is not its own', async () => {
  const host = await volumeWith({ a: 'x' });
  host.plant('/etc/passwd', { kind: 'file', content: 'root' });
  host.plant('/volume/..2020_01_01_00_00_00.1', { kind: 'symlink', text: '/etc' });
  host.plant('/volume/mine', { kind: 'symlink', text: '/etc/passwd' });
  host.plant('/volume/notes', { kind: 'file', content: 'kept' });
  accept(await write(host, { b: 'y' }));
  assert.equal(host.read('/etc/passwd'), 'root');
  assert.equal(host.read('/volume/notes'), 'kept');
  assert.equal(host.names('/volume/..2020_01_01_00_00_00.1').join(), 'passwd');
  assert.equal(host.read('/volume/mine'), 'root');
});

test('a mount inside an old generation is left alone', async () => {
  const host = await volumeWith({ 'sub/a': 'x' });
  host.plantMount('/volume/..2026_01_31_15_04_05.1073741824/sub', 'ext4', 'precious');
  const result = await write(host, { b: 'y' });
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['mount-busy', 'unknown']);
  assert.equal(host.read('/volume/b'), 'y');
  assert.equal(host.read('/volume/..2026_01_31_15_04_05.1073741824/sub/precious'), '');
});

test('the root directory of the volume keeps its inode, and chance never names a generation twice', async () => {
  const host = await volumeWith({ a: '1' });
  const inode = await inodeOf(host, VOLUME);
  for (const text of ['2', '3', '4']) {
    accept(await write(host, { a: text }));
    assert.equal(host.read('/volume/a'), text);
  }
  assert.equal(await inodeOf(host, VOLUME), inode);
});

test('a clock that is out of its mind still makes names of the right form', async () => {
  for (const wall of [-1e15, 0, 8.64e15]) {
    const host = freshVolume();
    host.wall = wall;
    accept(await write(host, { a: 'x' }));
    assert.match(host.names(VOLUME)[0] ?? '', /^\.\.[0-9]{4}(_[0-9]{2}){5}\.[0-9]+$/);
  }
});

test('INV-24: a name that the host uses for its temporary file is written all the same', async () => {
  // Where a name leaves no room for more the temporary one is a hash, which is shorter.
  const long = 'a'.repeat(253);
  const between = 'b'.repeat(248);
  for (const files of [
    { '.a.tmp': 'first', a: 'second' },
    { [temporaryName(long)]: 'first', [long]: 'second' },
    {
      [temporaryName(temporaryName(between))]: 'first',
      [temporaryName(between)]: 'second',
      [between]: 'third',
    },
  ]) {
    const host = await volumeWith(files);
    assert.deepEqual(readAll(host, `${VOLUME}/..data`), files);
    assert.equal(host.names(`${VOLUME}/..data`).length, Object.keys(files).length);
  }
});

test('paths that could leave the volume or meet its own names are refused before anything is written', () => {
  const long = 'x'.repeat(256);
  const bad = [
    '',
    '/',
    '.',
    '../',
    '/abs',
    '//abs',
    '..',
    '../up',
    'a/../b',
    'a/..',
    '..data',
    '..data/a',
    '..2024_01_01_00_00_00.1',
    '..data_tmp',
    '..x',
    '...',
    './..data',
    './/../x',
    'nul\0',
    'a/nul\0/b',
    long,
    `a/${long}`,
    'x/'.repeat(1_100),
    '\ud800',
    'a/\udfff',
    'é'.repeat(128),
  ];
  for (const path of bad) {
    const result = parseContentTree(filesOf({ good: 'x', [path]: 's3cret' }).reveal());
    assert.deepEqual(
      !result.ok && [result.failure.code, result.failure.effect],
      ['spec-invalid', 'none'],
      JSON.stringify(path),
    );
    assert.ok(
      !result.ok && !result.failure.message.includes('s3cret') && result.failure.message.length < 1_024,
    );
  }
  for (const path of [
    'a',
    '.hidden',
    'a..b',
    'a/..data',
    'ü/日本',
    'a b',
    'a\nb',
    'x'.repeat(255),
    '__proto__',
  ]) {
    assert.ok(parseContentTree(filesOf({ [path]: 'x' }).reveal()).ok, JSON.stringify(path));
  }
});

test('paths that cannot exist together are refused, and untidy ones are tidied as the kubelet does', () => {
  for (const pair of [
    ['a', 'a/b'],
    ['a/b', 'a'],
    ['a', './a'],
    ['a/b', 'a//b'],
  ] as const) {
    const result = parseContentTree(filesOf(Object.fromEntries(pair.map((path) => [path, 'x']))).reveal());
    assert.equal(!result.ok && result.failure.code, 'spec-invalid', pair.join(' and '));
  }
  const tidied = treeOf({ './a//b/./c/': 'x' });
  assert.deepEqual([...(tidied.directories.get('a')?.directories.get('b')?.files.keys() ?? [])], ['c']);
});

test('modes other than permission bits are refused', () => {
  for (const mode of [-1, 0o1000, 0o4755, 1.5, Number.NaN, 2 ** 40]) {
    const result = parseContentTree(filesOf({ a: { text: 'x', mode } }).reveal());
    assert.equal(!result.ok && result.failure.code, 'spec-invalid', String(mode));
  }
});

test('more bytes or files than any object can hold are refused', () => {
  const bytes = new Map([['a', { content: new Uint8Array(CONTENT_BYTES_MAX), mode: 0o644 }]]);
  accept(parseContentTree(bytes));
  const tooMany = parseContentTree(bytes.set('b', { content: new Uint8Array(1), mode: 0o644 }));
  assert.equal(!tooMany.ok && tooMany.failure.code, 'too-large');
  const names = Array.from({ length: CONTENT_FILES_MAX + 1 }, (_, index) => [`f${index}`, '']);
  const files = parseContentTree(filesOf(Object.fromEntries(names)).reveal());
  assert.equal(!files.ok && files.failure.code, 'too-large');
});
