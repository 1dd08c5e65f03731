/** The sentences that every `Host` keeps. They use the interface only, so any implementation can be put under them. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { FailureCode, Result } from '../../mount/failure.ts';
import {
  type AbsolutePath,
  below,
  type ContentStamp,
  type Host,
  type MountLookup,
  wayTo,
} from '../../mount/host.ts';
import { value } from '../value.ts';
import { ownershipContract } from './ownership.ts';
import { partContract } from './part.ts';
import { transitionContract } from './transition.ts';

export interface HostWorld {
  readonly host: Host;
  /** An empty directory; mounts are allowed below it. */
  readonly root: AbsolutePath;
}

/** Makes a fresh world for one sentence; clean up with `t.after`. */
export type MakeHostWorld = (t: TestContext) => Promise<HostWorld>;

const LIMITS = { entriesMax: 100, fileBytesMax: 1_000 };
const STAMPS_MS_MAX = 60_000;
const PLAIN = { mode: 0o640, durable: false };

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function refuses(result: Result<unknown>, code: FailureCode): void {
  assert.deepEqual(result.ok ? 'ok' : [result.failure.code, result.failure.effect], [code, 'none']);
}

async function text(host: Host, path: AbsolutePath): Promise<string> {
  return new TextDecoder().decode(value(await host.readFile(path, 10_000)));
}

async function write(host: Host, path: AbsolutePath, content: string): Promise<void> {
  value(await host.writeFile(path, bytes(content), PLAIN));
}

async function names(host: Host, path: AbsolutePath): Promise<readonly string[]> {
  return [...value(await host.listDirectory(path, 100))].sort();
}

async function mounted(host: Host, path: AbsolutePath): Promise<MountLookup & { mounted: true }> {
  const seen = value(await host.lookUpMount(path));
  assert.ok(seen.mounted, `nothing is mounted at ${path}`);
  return seen;
}

async function mountTmpfs(host: Host, target: AbsolutePath): Promise<void> {
  value(await host.makeDirectory(target, 0o750));
  value(await host.mount({ fsType: 'tmpfs', source: 'contract', target, options: ['size=1m', 'mode=0700'] }));
}

export function hostContract(name: string, make: MakeHostWorld): void {
  const sentence = (words: string, check: (world: HostWorld) => Promise<void>): void => {
    test(`${name}: ${words}`, async (t) => check(await make(t)));
  };
  directorySentences(sentence);
  roomSentences(sentence);
  stampSentences(sentence);
  fileSentences(sentence);
  linkSentences(sentence);
  mountSentences(sentence);
  boundarySentences(sentence);
  timeSentences(sentence);
  ownershipContract(name, make);
  partContract(name, make);
  transitionContract(name, make);
}

type Sentence = (words: string, check: (world: HostWorld) => Promise<void>) => void;

function directorySentences(sentence: Sentence): void {
  sentence('what is not there is absent, and so is what would be below it', async ({ host, root }) => {
    const absent = { kind: 'absent', mode: 0, uid: 0, gid: 0, inode: 0, sizeBytes: 0, modifiedMs: 0 };
    assert.deepEqual(value(await host.inspect(below(root, 'a'))), absent);
    assert.deepEqual(value(await host.inspect(below(root, 'a', 'b', 'c'))), absent);
  });
  sentence('the way to a path is every directory from the root on, down to what is absent', async (world) => {
    const { host, root } = world;
    const path = below(root, 'a', 'b');
    value(await host.makeDirectory(path, 0o700));
    const whole = value(await host.inspectWay(path));
    assert.equal(whole.length, wayTo(path).length);
    assert.deepEqual(whole.at(-1), value(await host.inspect(path)));
    assert.deepEqual(whole.at(-2), value(await host.inspect(below(root, 'a'))));
    const short = value(await host.inspectWay(below(path, 'none', 'deeper')));
    assert.deepEqual([short.length, short.at(-1)?.kind], [whole.length + 1, 'absent']);
  });
  sentence(
    'a directory is made with its parents, 0750, and gets exactly its mode',
    async ({ host, root }) => {
      const path = below(root, 'a', 'b', 'c');
      value(await host.makeDirectory(path, 0o2777));
      const facts = value(await host.inspect(path));
      assert.deepEqual([facts.kind, facts.mode], ['directory', 0o2777]);
      assert.equal(value(await host.inspect(below(root, 'a'))).mode, 0o750);
      value(await host.makeDirectory(path, 0o700));
      const again = value(await host.inspect(path));
      assert.deepEqual([again.mode, again.inode], [0o700, facts.inode]);
    },
  );
  sentence('what is mounted in the place of a directory keeps its mode', async ({ host, root }) => {
    const target = below(root, 'a');
    await mountTmpfs(host, target);
    value(await host.makeDirectory(target, 0o750));
    assert.equal(value(await host.inspect(target)).mode, 0o700);
    value(await host.unmount(target));
    assert.equal(value(await host.inspect(target)).mode, 0o750);
  });
  sentence('a file in the way of a directory is refused and kept', async ({ host, root }) => {
    await write(host, below(root, 'a'), 'kept');
    refuses(await host.makeDirectory(below(root, 'a'), 0o755), 'path-wrong-kind');
    refuses(await host.makeDirectory(below(root, 'a', 'b'), 0o755), 'path-wrong-kind');
    assert.equal(await text(host, below(root, 'a')), 'kept');
  });
  sentence("an empty directory goes, a full one is somebody's data", async ({ host, root }) => {
    const path = below(root, 'a');
    value(await host.makeDirectory(path, 0o755));
    await write(host, below(path, 'f'), 'kept');
    refuses(await host.removeEmptyDirectory(path), 'directory-not-empty');
    refuses(await host.removeEmptyDirectory(below(path, 'f')), 'path-wrong-kind');
    assert.equal(await text(host, below(path, 'f')), 'kept');
    value(await host.removeFile(below(path, 'f')));
    value(await host.removeEmptyDirectory(path));
    value(await host.removeEmptyDirectory(path));
    value(await host.removeEmptyDirectory(below(path, 'x', 'y')));
    assert.deepEqual(await names(host, root), []);
  });
  sentence(
    'a tree goes with all that is in it, and nothing that a link in it points to',
    async ({ host, root }) => {
      const outside = below(root, 'outside');
      value(await host.makeDirectory(outside, 0o755));
      await write(host, below(outside, 'f'), 'kept');
      const tree = below(root, 'tree');
      for (const deep of [below(tree, 'a', 'b'), below(tree, 'a', 'c')]) {
        value(await host.makeDirectory(deep, 0o755));
        await write(host, below(deep, 'f'), 'gone');
        value(await host.makeLink(below(deep, 'link'), outside));
      }
      value(await host.removeTree(tree));
      value(await host.removeTree(tree));
      value(await host.removeTree(below(tree, 'x', 'y')));
      assert.deepEqual(await names(host, root), ['outside']);
      assert.equal(await text(host, below(outside, 'f')), 'kept');
    },
  );
  sentence('a listing names all or says that it is too large', async ({ host, root }) => {
    for (const one of ['a', 'b', 'c']) await write(host, below(root, one), one);
    assert.deepEqual([...value(await host.listDirectory(root, 3))].sort(), ['a', 'b', 'c']);
    refuses(await host.listDirectory(root, 2), 'too-large');
    refuses(await host.listDirectory(below(root, 'x'), 3), 'path-missing');
    refuses(await host.listDirectory(below(root, 'a'), 3), 'path-wrong-kind');
  });
  sentence('the files of a directory are read with their facts in one go', async ({ host, root }) => {
    await write(host, below(root, 'a'), 'one');
    await write(host, below(root, '.b'), 'x'.repeat(1_001));
    value(await host.makeDirectory(below(root, 'c'), 0o755));
    value(await host.makeLink(below(root, 'd'), 'a'));
    const entries = [...value(await host.readDirectoryFiles(root, LIMITS))].sort((x, y) =>
      x.name < y.name ? -1 : 1,
    );
    assert.deepEqual(
      entries.map((entry) => [entry.name, entry.facts.kind]),
      [
        ['.b', 'file'],
        ['a', 'file'],
        ['c', 'directory'],
        ['d', 'symlink'],
      ],
    );
    const [large, small, directory, link] = entries;
    assert.deepEqual(small?.content?.ok && [...small.content.value], [...bytes('one')]);
    assert.equal(small?.facts.mode, 0o640);
    assert.ok(large?.content !== undefined);
    refuses(large.content, 'too-large');
    assert.equal(directory?.content, undefined);
    assert.equal(link?.content, undefined);
    assert.deepEqual([large.stamp, directory?.stamp, link?.stamp], [undefined, undefined, undefined]);
    refuses(await host.readDirectoryFiles(root, { ...LIMITS, entriesMax: 3 }), 'too-large');
    refuses(await host.readDirectoryFiles(below(root, 'x'), LIMITS), 'path-missing');
  });
  sentence('a directory is told from one that is put in its place, or over it', async ({ host, root }) => {
    const path = below(root, 'a');
    value(await host.makeDirectory(path, 0o755));
    const identity = value(await host.identifyDirectory(path));
    await write(host, below(path, 'f'), 'one');
    assert.deepEqual(value(await host.identifyDirectory(path)), identity);
    assert.equal(value(await host.readDirectoryFiles(path, { ...LIMITS, identity })).length, 1);
    await mountTmpfs(host, path);
    assert.notDeepEqual(value(await host.identifyDirectory(path)), identity);
    refuses(await host.readDirectoryFiles(path, { ...LIMITS, identity }), 'directory-replaced');
    value(await host.unmount(path));
    assert.deepEqual(value(await host.identifyDirectory(path)), identity);
    value(await host.rename(path, below(root, 'b')));
    refuses(await host.identifyDirectory(path), 'path-missing');
    value(await host.makeDirectory(path, 0o755));
    const other = value(await host.identifyDirectory(path));
    assert.deepEqual([other.device, other.inode === identity.inode], [identity.device, false]);
    refuses(await host.readDirectoryFiles(path, { ...LIMITS, identity }), 'directory-replaced');
    value(await host.makeLink(below(root, 'c'), 'b'));
    refuses(await host.identifyDirectory(below(root, 'c')), 'path-unsafe');
  });
}

function roomSentences(sentence: Sentence): void {
  sentence(
    'a listing without room for contents reads none, not even of an empty file',
    async ({ host, root }) => {
      await write(host, below(root, 'a'), '');
      await write(host, below(root, 'b'), 'x');
      const facts = { entriesMax: 100, fileBytesMax: Number.MAX_SAFE_INTEGER, contentBytesMax: 0 };
      const entries = value(await host.readDirectoryFiles(root, facts));
      const seen = entries.map(({ name, facts: { sizeBytes }, ...read }) => ({ name, sizeBytes, ...read }));
      const unread = { content: undefined, stamp: undefined, unread: true };
      assert.deepEqual(
        seen.sort((x, y) => (x.name < y.name ? -1 : 1)),
        [
          { name: 'a', sizeBytes: 0, ...unread },
          { name: 'b', sizeBytes: 1, ...unread },
        ],
      );
    },
  );
  sentence(
    'of contents that have no room in one answer the smaller are read first',
    async ({ host, root }) => {
      for (const [name, length] of [
        ['a', 6],
        ['b', 2],
        ['c', 5],
        ['d', 30_000],
      ] as const)
        await write(host, below(root, name), 'x'.repeat(length));
      value(await host.makeDirectory(below(root, 'e'), 0o755));
      const entries = value(await host.readDirectoryFiles(root, { ...LIMITS, contentBytesMax: 7 }));
      const seen = entries.map(({ name, content, unread }) => {
        const length = content?.ok === true ? content.value.length : content?.failure.code;
        return `${name} ${unread === true ? 'unread' : length}`;
      });
      assert.deepEqual(seen.sort(), ['a unread', 'b 2', 'c 5', 'd too-large', 'e undefined']);
      const [only, ...others] = value(await host.readDirectoryFiles(root, { ...LIMITS, only: 'a' }));
      assert.deepEqual([only?.name, only?.content?.ok, only?.unread, others], ['a', true, undefined, []]);
      assert.deepEqual(value(await host.readDirectoryFiles(root, { ...LIMITS, only: 'z' })), []);
    },
  );
}

/** The contents that are read where those of `known` are known, and then what is known. */
async function readOthers(host: Host, root: AbsolutePath, known: ReadonlyMap<string, ContentStamp>) {
  const entries = value(await host.readDirectoryFiles(root, { ...LIMITS, known }));
  const stamps = new Map(entries.flatMap(({ name, stamp }) => (stamp === undefined ? [] : [[name, stamp]])));
  const texts = entries.flatMap(({ name, content }) =>
    content?.ok === true ? [`${name}: ${new TextDecoder().decode(content.value)}`] : [],
  );
  return { texts: texts.sort(), stamps };
}

/** Until each of so many files is old enough for a stamp. */
async function stampsOf(host: Host, root: AbsolutePath, files: number) {
  const endMs = performance.now() + STAMPS_MS_MAX;
  for (;;) {
    const { stamps } = await readOthers(host, root, new Map());
    if (stamps.size === files) return stamps;
    if (performance.now() > endMs) throw new Error(`${stamps.size} of ${files} stamps`);
  }
}

function stampSentences(sentence: Sentence): void {
  sentence('what is known of a directory is not read again before it is written', async ({ host, root }) => {
    for (const name of ['a', 'b', 'c']) await write(host, below(root, name), 'same');
    const known = await stampsOf(host, root, 3);
    assert.deepEqual(await readOthers(host, root, known), { texts: [], stamps: known });
    assert.deepEqual((await readOthers(host, root, new Map())).texts, ['a: same', 'b: same', 'c: same']);
    await write(host, below(root, 'a'), 'else');
    value(await host.rename(below(root, 'b'), below(root, 'd')));
    const { texts } = await readOthers(host, root, known);
    assert.deepEqual(texts, ['a: else', 'd: same']);
  });
  sentence('a file in the place of another is not taken for it', async ({ host, root }) => {
    for (const name of ['a', 'b']) await write(host, below(root, name), name);
    const known = await stampsOf(host, root, 2);
    value(await host.rename(below(root, 'b'), below(root, 'a')));
    assert.deepEqual((await readOthers(host, root, known)).texts, ['a: b']);
  });
}

function fileSentences(sentence: Sentence): void {
  sentence('a file is written whole with its mode, and replaced whole', async ({ host, root }) => {
    const path = below(root, 'f');
    value(await host.writeFile(path, bytes('a longer first text'), { mode: 0o600, durable: true }));
    value(await host.writeFile(path, bytes('second'), { mode: 0o644, durable: false }));
    assert.equal(await text(host, path), 'second');
    const { kind, mode, sizeBytes } = value(await host.inspect(path));
    assert.deepEqual([kind, mode, sizeBytes], ['file', 0o644, 6]);
    assert.deepEqual(await names(host, root), ['f']);
  });
  sentence('an exclusive write never replaces', async ({ host, root }) => {
    const path = below(root, 'f');
    const exclusive = { ...PLAIN, exclusive: true };
    value(await host.writeFile(path, bytes('first'), exclusive));
    refuses(await host.writeFile(path, bytes('second'), exclusive), 'path-wrong-kind');
    assert.equal(await text(host, path), 'first');
    assert.deepEqual(await names(host, root), ['f']);
  });
  sentence('an exclusive write leaves alone what others have beside it', async ({ host, root }) => {
    const others = ['.f.tmp', '.f', 'f.tmp', '.f.tmp.tmp'];
    for (const name of others) await write(host, below(root, name), `of somebody: ${name}`);
    for (const content of ['', 'first']) {
      value(await host.writeFile(below(root, 'f'), bytes(content), { ...PLAIN, exclusive: true }));
      assert.equal(await text(host, below(root, 'f')), content);
      assert.deepEqual(await names(host, root), [...others, 'f'].sort());
      for (const name of others) assert.equal(await text(host, below(root, name)), `of somebody: ${name}`);
      value(await host.removeFile(below(root, 'f')));
    }
  });
  sentence('a file is not written where it cannot be', async ({ host, root }) => {
    value(await host.makeDirectory(below(root, 'd'), 0o755));
    refuses(await host.writeFile(below(root, 'd'), bytes('x'), PLAIN), 'path-wrong-kind');
    refuses(await host.writeFile(below(root, 'x', 'f'), bytes('x'), PLAIN), 'path-missing');
    assert.deepEqual(await names(host, root), ['d']);
  });
  sentence('bytes of a file are written over in place, and nothing else of it', async ({ host, root }) => {
    const path = below(root, 'f');
    value(await host.writeFile(path, bytes('one two three'), { mode: 0o640, durable: true }));
    const before = value(await host.inspect(path));
    value(await host.overwriteFile(path, 4, bytes('TWO')));
    assert.equal(await text(host, path), 'one TWO three');
    value(await host.overwriteFile(path, 0, bytes('ONE TWO THREE')));
    value(await host.overwriteFile(path, 13, bytes('')));
    assert.equal(await text(host, path), 'ONE TWO THREE');
    const { inode, mode, sizeBytes } = value(await host.inspect(path));
    assert.deepEqual([inode, mode, sizeBytes], [before.inode, 0o640, 13]);
    assert.deepEqual(await names(host, root), ['f']);
  });
  sentence('a file is never made or made longer by writing over it', async ({ host, root }) => {
    const path = below(root, 'f');
    await write(host, path, '12345');
    value(await host.makeDirectory(below(root, 'd'), 0o755));
    value(await host.makeLink(below(root, 'l'), 'f'));
    refuses(await host.overwriteFile(path, 3, bytes('abc')), 'too-large');
    refuses(await host.overwriteFile(below(root, 'd'), 0, bytes('a')), 'path-wrong-kind');
    refuses(await host.overwriteFile(below(root, 'l'), 0, bytes('a')), 'path-unsafe');
    refuses(await host.overwriteFile(below(root, 'x'), 0, bytes('a')), 'path-missing');
    assert.equal(await text(host, path), '12345');
    assert.deepEqual(await names(host, root), ['d', 'f', 'l']);
  });
  sentence('files and directories are synchronised, and nothing else', async ({ host, root }) => {
    await write(host, below(root, 'f'), '12345');
    value(await host.makeDirectory(below(root, 'd'), 0o755));
    value(await host.makeLink(below(root, 'l'), 'f'));
    value(await host.synchronise(below(root, 'f')));
    value(await host.synchronise(below(root, 'd')));
    refuses(await host.synchronise(below(root, 'l')), 'path-unsafe');
    refuses(await host.synchronise(below(root, 'x')), 'path-missing');
    assert.equal(await text(host, below(root, 'f')), '12345');
    assert.deepEqual(await names(host, root), ['d', 'f', 'l']);
  });
  sentence('only a regular file of the allowed size is read', async ({ host, root }) => {
    await write(host, below(root, 'f'), '12345');
    value(await host.makeDirectory(below(root, 'd'), 0o755));
    value(await host.makeLink(below(root, 'l'), 'f'));
    assert.equal(value(await host.readFile(below(root, 'f'), 5)).length, 5);
    refuses(await host.readFile(below(root, 'f'), 4), 'too-large');
    refuses(await host.readFile(below(root, 'd'), 5), 'path-wrong-kind');
    refuses(await host.readFile(below(root, 'l'), 5), 'path-unsafe');
    refuses(await host.readFile(below(root, 'x'), 5), 'path-missing');
    refuses(await host.readFile(below(root, 'x', 'y'), 5), 'path-missing');
  });
  sentence('files and links are removed, directories never', async ({ host, root }) => {
    await write(host, below(root, 'f'), 'kept');
    value(await host.makeLink(below(root, 'l'), 'f'));
    value(await host.makeDirectory(below(root, 'd'), 0o755));
    value(await host.removeFile(below(root, 'l')));
    assert.equal(await text(host, below(root, 'f')), 'kept');
    refuses(await host.removeFile(below(root, 'd')), 'path-wrong-kind');
    value(await host.removeFile(below(root, 'f')));
    value(await host.removeFile(below(root, 'f')));
    value(await host.removeFile(below(root, 'x', 'f')));
    assert.deepEqual(await names(host, root), ['d']);
  });
  sentence(
    'a rename replaces a file or a link, and no directory that has entries',
    async ({ host, root }) => {
      const [from, to, full] = [below(root, 'from'), below(root, 'to'), below(root, 'full')];
      await write(host, from, 'new');
      await write(host, to, 'old');
      value(await host.rename(from, to));
      assert.equal(await text(host, to), 'new');
      value(await host.makeLink(from, 'anywhere'));
      value(await host.rename(to, from));
      assert.equal(await text(host, from), 'new');
      value(await host.makeDirectory(below(full, 'inside'), 0o755));
      value(await host.makeDirectory(to, 0o755));
      refuses(await host.rename(to, full), 'directory-not-empty');
      refuses(await host.rename(from, full), 'path-wrong-kind');
      refuses(await host.rename(below(root, 'x'), to), 'path-missing');
      assert.deepEqual(await names(host, root), ['from', 'full', 'to']);
    },
  );
}

function linkSentences(sentence: Sentence): void {
  sentence('a link keeps its text and replaces nothing', async ({ host, root }) => {
    const path = below(root, 'l');
    value(await host.makeLink(path, '..2026_data/../x'));
    assert.equal(value(await host.readLink(path)), '..2026_data/../x');
    assert.equal(value(await host.inspect(path)).kind, 'symlink');
    refuses(await host.makeLink(path, 'other'), 'path-wrong-kind');
    assert.equal(value(await host.readLink(path)), '..2026_data/../x');
    await write(host, below(root, 'f'), 'text');
    refuses(await host.readLink(below(root, 'f')), 'path-wrong-kind');
    refuses(await host.readLink(below(root, 'x')), 'path-missing');
  });
  sentence('no call goes through a link on the way', async ({ host, root }) => {
    const real = below(root, 'real');
    value(await host.makeDirectory(below(real, 'd'), 0o755));
    await write(host, below(real, 'f'), 'kept');
    value(await host.makeLink(below(root, 'link'), real));
    const [file, directory, fresh] = ['f', 'd', 'n'].map((one) => below(root, 'link', one)) as [
      AbsolutePath,
      AbsolutePath,
      AbsolutePath,
    ];
    const outcomes = [
      await host.inspect(file),
      await host.makeDirectory(fresh, 0o755),
      await host.removeEmptyDirectory(directory),
      await host.removeTree(directory),
      await host.listDirectory(directory, 10),
      await host.readDirectoryFiles(directory, LIMITS),
      await host.readFile(file, 100),
      await host.writeFile(fresh, bytes('x'), PLAIN),
      await host.overwriteFile(file, 0, bytes('x')),
      await host.synchronise(file),
      await host.removeFile(file),
      await host.rename(file, below(root, 'moved')),
      await host.rename(below(real, 'f'), fresh),
      await host.makeLink(fresh, 'x'),
      await host.readLink(file),
      await host.lookUpMount(directory),
      await host.deviceOf(file),
      await host.holdDevice(file),
      await host.mount({ fsType: 'tmpfs', source: 'contract', target: directory, options: [] }),
      await host.unmount(directory),
    ];
    for (const outcome of outcomes) refuses(outcome, 'path-unsafe');
    assert.deepEqual(await names(host, real), ['d', 'f']);
    assert.equal(await text(host, below(real, 'f')), 'kept');
    assert.deepEqual(value(await host.lookUpMount(below(real, 'd'))), { mounted: false });
  });
  sentence('bytes are written over in the mount that was meant, and in no other', async ({ host, root }) => {
    const directory = below(root, 'd');
    const path = below(directory, 'f');
    value(await host.makeDirectory(directory, 0o755));
    value(await host.writeFile(path, bytes('below'), PLAIN));
    const { within } = value(await host.mountPlaceOf(path));
    value(await host.overwriteFile(path, 0, bytes('BE'), within));
    value(await host.mount({ fsType: 'tmpfs', source: 'contract', target: directory, options: [] }));
    value(await host.writeFile(path, bytes('above'), PLAIN));
    refuses(await host.overwriteFile(path, 0, bytes('XX'), within), 'mount-foreign');
    assert.equal(await text(host, path), 'above');
    value(await host.unmount(directory));
    assert.equal(await text(host, path), 'BElow');
    value(await host.overwriteFile(path, 2, bytes('LOW'), within));
    assert.equal(await text(host, path), 'BELOW');
  });
  sentence('a link is never taken for the directory it points to', async ({ host, root }) => {
    value(await host.makeDirectory(below(root, 'real', 'd'), 0o755));
    value(await host.makeLink(below(root, 'link'), below(root, 'real')));
    refuses(await host.listDirectory(below(root, 'link'), 10), 'path-unsafe');
    refuses(await host.makeDirectory(below(root, 'link'), 0o700), 'path-unsafe');
    refuses(await host.removeTree(below(root, 'link')), 'path-unsafe');
    assert.deepEqual(await names(host, below(root, 'real')), ['d']);
    assert.equal(value(await host.inspect(below(root, 'real'))).mode, 0o750);
  });
}

function mountSentences(sentence: Sentence): void {
  sentence(
    'a path lies in the mount of the directory above it, or of the nearest that is there',
    async (given) => {
      const { host, root } = given;
      const [directory, target] = [below(root, 'd'), below(root, 'd', 'm')];
      value(await host.makeDirectory(target, 0o755));
      const before = value(await host.mountPlaceOf(target));
      assert.equal(before.mountId, undefined);
      assert.equal(value(await host.mountPlaceOf(below(root, 'x', 'y', 'z'))).within, before.within);
      value(await host.mount({ fsType: 'tmpfs', source: 'contract', target: directory, options: [] }));
      const own = value(await host.mountIdOf(directory));
      assert.deepEqual(value(await host.mountPlaceOf(directory)), { mountId: own, within: before.within });
      assert.deepEqual(value(await host.mountPlaceOf(below(target, 'x'))), {
        mountId: undefined,
        within: own,
      });
      value(await host.unmount(directory));
    },
  );
  sentence('a tmpfs hides what is below it, and gives it back', async ({ host, root }) => {
    const target = below(root, 'm');
    value(await host.makeDirectory(target, 0o750));
    await write(host, below(target, 'under'), 'kept');
    await mountTmpfs(host, target);
    assert.deepEqual(await names(host, target), []);
    assert.equal(value(await host.inspect(target)).mode, 0o700);
    await write(host, below(target, 'over'), 'gone');
    value(await host.unmount(target));
    assert.deepEqual(value(await host.lookUpMount(target)), { mounted: false });
    assert.deepEqual(await names(host, target), ['under']);
  });
  sentence('a mounted file system that is well is alive, and nothing else is', async ({ host, root }) => {
    const target = below(root, 'm');
    const kind = async (path: AbsolutePath) => value(await host.probeFileSystem(path)).kind;
    assert.equal(await kind(target), 'unmounted');
    await mountTmpfs(host, target);
    const { device, readOnly, death } = await mounted(host, target);
    assert.deepEqual({ readOnly, death }, { readOnly: undefined, death: undefined });
    assert.deepEqual(value(await host.probeFileSystem(target)), { kind: 'alive', readOnly: false, device });
    assert.equal(await kind(below(target, 'x')), 'unmounted');
    value(await host.unmount(target));
    assert.equal(await kind(target), 'unmounted');
    value(await host.makeLink(below(root, 'l'), 'm'));
    refuses(await host.probeFileSystem(below(root, 'l', 'x')), 'path-unsafe');
  });
  sentence(
    'room is that of what is there, not of where links lead nor of what is mounted below',
    async ({ host, root }) => {
      const [tree, mount, other] = ['t', 't/m', 'other'].map((name) => below(root, ...name.split('/')));
      assert.ok(tree !== undefined && mount !== undefined && other !== undefined);
      const measure = async () => value(await host.measureUsage({ path: tree, scope: 'tree' }));
      refuses(await host.measureUsage({ path: tree, scope: 'tree' }), 'path-missing');
      await mountTmpfs(host, mount);
      const before = await measure();
      assert.deepEqual([before.inodes.used, before.bytes.total, before.isWhole], [1n, undefined, true]);
      await write(host, below(tree, 'file'), 'x'.repeat(20_000));
      const after = await measure();
      const grown = Number(after.bytes.used - before.bytes.used);
      assert.ok(grown >= 20_000 && grown < 60_000, `${grown} bytes`);
      await write(host, other, 'x'.repeat(20_000));
      value(await host.makeLink(below(tree, 'link'), '../other'));
      await write(host, below(mount, 'file'), 'x'.repeat(20_000));
      const last = await measure();
      assert.equal(last.inodes.used, 3n);
      assert.ok(last.bytes.used - after.bytes.used < 20_000n);
      refuses(await host.measureUsage({ path: mount, scope: 'tree' }), 'mount-foreign');
      const { bytes: room } = value(await host.measureUsage({ path: mount, scope: 'file-system' }));
      assert.ok(room.used >= 20_000n && (room.total ?? 0n) === room.used + (room.available ?? 0n));
      value(await host.unmount(mount));
      refuses(await host.measureUsage({ path: mount, scope: 'file-system' }), 'mount-lost');
      refuses(await host.measureUsage({ path: below(tree, 'link', 'x'), scope: 'tree' }), 'path-unsafe');
    },
  );
  sentence('a lookup and the table agree about a mount', async ({ host, root }) => {
    const target = below(root, 'm');
    await mountTmpfs(host, target);
    const { mountId, device } = await mounted(host, target);
    const stack = value(await host.readMountTable(target)).at(target);
    assert.deepEqual(
      stack.map((entry) => [entry.mountId, entry.device, entry.fsType, entry.source, entry.root]),
      [[mountId, device, 'tmpfs', 'contract', '/']],
    );
    value(await host.unmount(target));
    assert.deepEqual(value(await host.readMountTable(target)).at(target), []);
  });
  sentence('huge pages are mounted as a file system of their own', async ({ host, root }) => {
    const target = below(root, 'm');
    value(await host.makeDirectory(target, 0o750));
    const options = ['size=4194304', 'mode=0770', 'pagesize=2097152'];
    value(await host.mount({ fsType: 'hugetlbfs', source: 'contract', target, options }));
    const { mountId, device } = await mounted(host, target);
    assert.deepEqual(
      value(await host.readMountTable(target))
        .at(target)
        .map((entry) => [entry.mountId, entry.device, entry.fsType, entry.source]),
      [[mountId, device, 'hugetlbfs', 'contract']],
    );
    assert.equal(value(await host.inspect(target)).mode, 0o770);
    value(await host.unmount(target));
    assert.deepEqual(await names(host, target), []);
  });
  sentence('the table about a path has what is on the way to it and below it', async ({ host, root }) => {
    const [way, end] = [below(root, 'm'), below(root, 'm', 'd', 'n')];
    await mountTmpfs(host, way);
    value(await host.makeDirectory(below(way, 'd'), 0o755));
    await mountTmpfs(host, end);
    const ids = [(await mounted(host, way)).mountId, (await mounted(host, end)).mountId];
    for (const about of [root, way, below(way, 'd'), end, below(end, 'not-there')]) {
      const { entries } = value(await host.readMountTable(about));
      const seen = entries.map(({ mountId }) => mountId).filter((mountId) => ids.includes(mountId));
      assert.deepEqual(seen, ids, about);
    }
    const identity = value(await host.identifyDirectory(end));
    assert.equal(value(await host.readMountTable(end)).byId(identity.mountId)?.target, end);
    value(await host.unmount(end));
    value(await host.unmount(way));
  });
  sentence(
    'a directory in a mount, a file and an absent path are no mount points',
    async ({ host, root }) => {
      const target = below(root, 'm');
      await mountTmpfs(host, target);
      value(await host.makeDirectory(below(target, 'd'), 0o755));
      await write(host, below(target, 'f'), 'x');
      for (const path of [
        below(target, 'd'),
        below(target, 'f'),
        below(target, 'x'),
        below(root, 'x', 'y'),
      ]) {
        assert.deepEqual(value(await host.lookUpMount(path)), { mounted: false });
      }
      value(await host.unmount(target));
    },
  );
  sentence('a second mount stacks, and an unmount takes the upper one', async ({ host, root }) => {
    const target = below(root, 'm');
    await mountTmpfs(host, target);
    const lower = await mounted(host, target);
    await mountTmpfs(host, target);
    const upper = await mounted(host, target);
    assert.notEqual(upper.mountId, lower.mountId);
    const stack = value(await host.readMountTable(target)).at(target);
    assert.deepEqual(
      stack.map(({ mountId }) => mountId),
      [lower.mountId, upper.mountId],
    );
    value(await host.unmount(target));
    assert.deepEqual(await mounted(host, target), lower);
    value(await host.unmount(target));
  });
  sentence(
    'a mount without a directory for it, or an unmount without a mount, fails',
    async ({ host, root }) => {
      const target = below(root, 'x');
      const before = value(await host.readMountTable(root)).entries.length;
      assert.ok(!(await host.mount({ fsType: 'tmpfs', source: 'contract', target, options: [] })).ok);
      value(await host.makeDirectory(target, 0o750));
      assert.ok(!(await host.unmount(target)).ok);
      assert.deepEqual(value(await host.lookUpMount(target)), { mounted: false });
      assert.equal(value(await host.readMountTable(root)).entries.length, before);
    },
  );
  sentence('a bind of a directory is a mount of a part of its file system', async ({ host, root }) => {
    const [source, target] = [below(root, 's'), below(root, 't')];
    value(await host.makeDirectory(source, 0o755));
    value(await host.makeDirectory(target, 0o755));
    await write(host, below(source, 'f'), 'shared');
    value(await host.mount({ fsType: 'bind', source, target, options: [] }));
    const { mountId, device } = await mounted(host, target);
    assert.equal(await text(host, below(target, 'f')), 'shared');
    const [entry] = value(await host.readMountTable(target)).at(target);
    assert.deepEqual([entry?.mountId, entry?.device], [mountId, device]);
    assert.notEqual(entry?.root, '/');
    value(await host.unmount(target));
    assert.equal(await text(host, below(source, 'f')), 'shared');
  });
  sentence('nobody holds what is not mounted', async ({ host, root }) => {
    assert.deepEqual(value(await host.findHolders(below(root, 'x'))), []);
  });
}

function boundarySentences(sentence: Sentence): void {
  sentence(
    'deleting never crosses a mount, not even a bind of the same file system',
    async ({ host, root }) => {
      const [data, tree] = [below(root, 'data'), below(root, 'tree')];
      const target = below(tree, 'a', 'volume');
      value(await host.makeDirectory(data, 0o755));
      value(await host.makeDirectory(target, 0o755));
      await write(host, below(data, 'precious'), 'kept');
      await write(host, below(tree, 'z'), 'also kept');
      value(await host.mount({ fsType: 'bind', source: data, target, options: [] }));
      refuses(await host.removeTree(tree), 'mount-busy');
      refuses(await host.removeTree(target), 'mount-busy');
      assert.equal(await text(host, below(data, 'precious')), 'kept');
      assert.equal(await text(host, below(tree, 'z')), 'also kept');
      await mounted(host, target);
      value(await host.unmount(target));
      value(await host.removeTree(tree));
      assert.deepEqual(await names(host, root), ['data']);
    },
  );
  sentence('a mount point is no empty directory', async ({ host, root }) => {
    const target = below(root, 'm');
    await mountTmpfs(host, target);
    refuses(await host.removeEmptyDirectory(target), 'mount-busy');
    await mounted(host, target);
    value(await host.unmount(target));
    value(await host.removeEmptyDirectory(target));
  });
}

function timeSentences(sentence: Sentence): void {
  sentence(
    'time goes forward, a timer fires once after its delay, a cancelled one never',
    async ({ host }) => {
      const startMs = host.nowMs();
      let cancelled = true;
      const cancel = host.timer(5, () => {
        cancelled = false;
      });
      cancel();
      await new Promise<void>((resolve) => {
        host.timer(20, resolve);
      });
      assert.ok(host.nowMs() - startMs >= 20, `${host.nowMs() - startMs} ms`);
      assert.ok(cancelled);
      assert.ok(host.wallMs() > 0);
    },
  );
  sentence('a timer is never early, and one of no time waits for no other', async ({ host }) => {
    const early: number[] = [];
    for (let delayMs = 0.1; delayMs < 12; delayMs += 0.37) {
      const startMs = host.nowMs();
      await new Promise<void>((resolve) => void host.timer(delayMs, resolve));
      const passedMs = host.nowMs() - startMs;
      if (passedMs < delayMs) early.push(delayMs - passedMs);
    }
    assert.deepEqual(early, []);
    const order: string[] = [];
    await new Promise<void>((resolve) => {
      host.timer(1, () => resolve(void order.push('one')));
      host.timer(0, () => order.push('none'));
      host.timer(0, () => order.push('cancelled'))();
    });
    assert.deepEqual(order, ['none', 'one']);
  });
  sentence('chance is in [0, 1), and the boot has a name', async ({ host }) => {
    for (let n = 0; n < 100; n += 1) {
      const drawn = host.random();
      assert.ok(drawn >= 0 && drawn < 1);
    }
    assert.ok(host.bootId.length > 0);
  });
}
