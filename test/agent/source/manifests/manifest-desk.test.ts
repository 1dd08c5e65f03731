/** Manifests that take long to read, or cost their reader its life, beside others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unreadable } from '../../../../agent/source/manifests/parse/file-reading.ts';
import {
  DEFAULT_MANIFEST_LIMITS,
  type ManifestLimits,
} from '../../../../agent/source/manifests/parse/manifest-limits.ts';
import type { ManifestParser } from '../../../../agent/source/manifests/parse/manifest-parser.ts';
import { createManifestSource } from '../../../../agent/source/manifests/manifest-source.ts';
import type { DesiredObjects } from '../../../../agent/source/desired-objects.ts';
import { fail, ok } from '../../../../mount/failure.ts';
import { DirectoryHost } from '../../directory-host.ts';
import { IN_PROCESS_PARSER } from '../../in-process-parser.ts';
import { oneSource, type OneSource } from '../../one-source.ts';
import { configMapYaml, path, podUid, podYaml } from '../../manifests.ts';

const SETTLE_MS = 300;
const LOST = fail({ code: 'broker-lost', message: 'the process that reads manifests ended', effect: 'none' });

/** A parser that stops at files whose text says so. */
class SlowParser implements ManifestParser {
  /** Names, in the order in which they were begun. */
  readonly begun: string[] = [];
  readonly #held: (() => void)[] = [];

  async parse(request: Parameters<ManifestParser['parse']>[0]) {
    const text = Buffer.from(request.bytes).toString();
    this.begun.push(request.origin);
    if (text.includes('# slow')) await new Promise<void>((resolve) => this.#held.push(resolve));
    if (text.includes('# deadly')) return LOST;
    if (text.includes('# costly')) return ok(unreadable('to read it takes more than 15 s'));
    return IN_PROCESS_PARSER.parse(request);
  }

  /** What is held up now goes on. */
  release(): void {
    for (const go of this.#held.splice(0)) go();
  }
}

interface Bench {
  readonly host: DirectoryHost;
  readonly parser: SlowParser;
  readonly source: OneSource;
  /** Settled? */
  readonly started: Promise<void>;
}

async function bench(
  files: Readonly<Record<string, string>>,
  limits: Partial<ManifestLimits> = {},
): Promise<Bench> {
  const host = new DirectoryHost();
  for (const [name, text] of Object.entries(files)) host.write(name, text);
  const parser = new SlowParser();
  const manifests = createManifestSource({
    host,
    directory: path('/etc/manifests'),
    parser,
    limits: { ...DEFAULT_MANIFEST_LIMITS, ...limits },
    settleMs: SETTLE_MS,
  });
  const source = oneSource(host, manifests);
  const started = source.start();
  await host.advance(0);
  return { host, parser, source, started };
}

const podsOf = (wish: DesiredObjects): readonly string[] => [...wish.pods.keys()].sort();
/** Longer than what is read quickly. */
const LONG = `# ${'x'.repeat(70_000)}\n`;
const slow = (pod: string): string => `${podYaml(pod)}# slow\n${LONG}`;

test('small files are read first, and what they say counts while a large one is being read', async () => {
  const { source, parser, started, host } = await bench({ 'a.yaml': slow('a'), 'b.yaml': podYaml('b') });
  await started;
  const wish = source.current();
  assert.deepEqual([parser.begun, podsOf(wish)], [['b.yaml', 'a.yaml'], ['uid-b']]);
  assert.deepEqual([...wish.unknownOrigins], ['a.yaml']);
  assert.deepEqual(
    wish.rejected.map(({ origin, message }) => `${origin}: ${message}`),
    ['a.yaml: it is waiting to be read'],
  );
  assert.equal(wish.awaited, 'a.yaml');
  host.write('c.yaml', podYaml('c'));
  await host.hint();
  parser.release();
  await host.advance(0);
  assert.deepEqual(podsOf(source.current()), ['uid-a', 'uid-b', 'uid-c']);
  assert.deepEqual([source.current().rejected, source.current().awaited], [[], undefined]);
});

test('the wish is complete when every file of the first listing was read, and not before', async () => {
  const { source, parser, host } = await bench({ 'a.yaml': slow('a'), 'b.yaml': podYaml('b') });
  assert.equal(source.current().complete, false);
  await host.advance(120_000);
  assert.equal(source.current().complete, false);
  parser.release();
  await host.advance(0);
  assert.equal(source.current().complete, true);
  host.write('c.yaml', slow('c'));
  await host.hint();
  assert.equal(source.current().complete, true);
});

test('a pod that moves to a file that is yet to be read stays wanted', async () => {
  const { source, parser, host } = await bench({ 'a.yaml': podYaml('web'), 'b.yaml': podYaml('b') });
  host.write('z.yaml', slow('web'));
  host.remove('a.yaml');
  await host.hint();
  await host.advance(600_000);
  assert.deepEqual(podsOf(source.current()), ['uid-b', 'uid-web']);
  parser.release();
  await host.advance(60_000);
  assert.deepEqual(podsOf(source.current()), ['uid-b', 'uid-web']);
  assert.equal(source.current().pods.get('uid-web' as never)?.origin, 'z.yaml');
});

test('a pod stays wanted until a file is read that came before it counted as gone', async () => {
  const { source, parser, host } = await bench({ 'a.yaml': podYaml('web'), 'b.yaml': podYaml('b') });
  host.remove('a.yaml');
  await host.hint();
  await host.advance(SETTLE_MS - 1);
  host.write('z.yaml', slow('web'));
  await host.hint();
  const { listings } = host;
  await host.advance(50_000);
  assert.deepEqual(podsOf(source.current()), ['uid-b', 'uid-web']);
  assert.equal(host.listings, listings + 1, 'nobody looks again and again meanwhile');
  parser.release();
  await host.advance(0);
  assert.equal(source.current().pods.get('uid-web' as never)?.origin, 'z.yaml');
});

test('a file that comes after a pod counted as gone does not keep it, however long it takes to read', async () => {
  const { source, parser, host } = await bench({ 'a.yaml': podYaml('web'), 'b.yaml': podYaml('b') });
  host.remove('a.yaml');
  await host.hint();
  host.write('y.yaml', slow('y'));
  await host.advance(SETTLE_MS + 1);
  host.write('z.yaml', slow('z'));
  await host.hint();
  assert.deepEqual(podsOf(source.current()), ['uid-b', 'uid-web']);
  parser.release();
  await host.advance(0);
  assert.deepEqual([podsOf(source.current()), parser.begun.at(-1)], [['uid-b', 'uid-y'], 'z.yaml']);
});

test('a pod that moves to a file of which older content is still being read stays wanted (seed 5802)', async () => {
  const { source, parser, started, host } = await bench({ 'a.yaml': podYaml('a'), 'b.yaml': podYaml('b') });
  await started;
  host.write('a.yaml', configMapYaml('c', { a: '1' }));
  await host.hint();
  host.write('b.yaml', slow('b'));
  await host.hint();
  await host.advance(SETTLE_MS - 100);
  host.write('b.yaml', `${podYaml('a')}---\n${slow('b')}`);
  await host.hint();
  await host.advance(100);
  await host.hint();
  await host.advance(1);
  parser.release();
  await host.advance(SETTLE_MS * 3);
  assert.deepEqual(podsOf(source.current()), ['uid-a', 'uid-b']);
  parser.release();
  await host.advance(SETTLE_MS * 2);
  assert.equal(source.current().pods.get(podUid('uid-a'))?.origin, 'b.yaml');
});

test('a pod that moves to a file at which the reader dies is wanted until that can be read (seed 5177)', async () => {
  for (const isFirst of [true, false]) {
    const { source, started, host } = await bench({ 'a.yaml': podYaml('a'), 'b.yaml': podYaml('b') });
    await started;
    const moves = [
      () => host.write('a.yaml', configMapYaml('c', { a: '1' })),
      () => host.write('b.yaml', `${podYaml('a')}---\n${podYaml('b')}# deadly\n`),
    ];
    for (const move of isFirst ? moves : moves.toReversed()) {
      move();
      await host.hint();
      await host.advance(SETTLE_MS - 1);
    }
    await host.advance(600_000);
    const { pods, rejected } = source.current();
    assert.deepEqual([...pods.keys()].sort(), ['uid-a', 'uid-b']);
    assert.match(
      rejected.find(({ origin }) => origin === 'a.yaml')?.message ?? '',
      /until b\.yaml can be read/,
    );
    host.write('b.yaml', podYaml('b'));
    await host.hint();
    await host.advance(SETTLE_MS * 2);
    assert.deepEqual([podsOf(source.current()), source.current().rejected], [['uid-b'], []], 'it is nowhere');
    source.stop();
  }
});

test('a file that was broken long before a pod was dropped elsewhere does not keep that', async () => {
  const { source, started, host } = await bench({ 'a.yaml': podYaml('a'), 'b.yaml': '# deadly\n' });
  await started;
  await host.advance(SETTLE_MS * 4);
  host.remove('a.yaml');
  await host.hint();
  await host.advance(120_000);
  assert.deepEqual(podsOf(source.current()), []);
});

test('a file that is back before it counts as gone, and is yet to be read, is not gone', async () => {
  const { source, parser, host } = await bench({ 'a.yaml': podYaml('web'), 'b.yaml': podYaml('b') });
  host.remove('a.yaml');
  await host.hint();
  host.write('y.yaml', slow('y'));
  await host.advance(SETTLE_MS);
  host.write('a.yaml', slow('web'));
  await host.hint();
  parser.release();
  await host.advance(SETTLE_MS);
  // What comes meanwhile waits, for a while, for what it may name.
  assert.deepEqual([podsOf(source.current()), parser.begun.at(-1)], [['uid-b', 'uid-web'], 'a.yaml']);
  parser.release();
  await host.advance(SETTLE_MS);
  assert.deepEqual(podsOf(source.current()), ['uid-b', 'uid-web', 'uid-y']);
});

test('a pod that comes while another file is read for long waits for that three seconds, and no longer', async () => {
  const { source, parser, host } = await bench({ 'z.yaml': podYaml('z') });
  host.write('new.yaml', podYaml('new'));
  host.write('z.yaml', slow('z'));
  await host.hint();
  assert.equal(parser.begun.at(-1), 'z.yaml', 'the pod was read before');
  await host.advance(SETTLE_MS + 2_900);
  assert.deepEqual(podsOf(source.current()), ['uid-z']);
  await host.advance(200);
  assert.deepEqual(podsOf(source.current()), ['uid-new', 'uid-z']);
  parser.release();
});

test('what costs too much is told, and not read again before it changes', async () => {
  const { source, parser, host } = await bench({
    'a.yaml': `${podYaml('a')}# costly\n`,
    'b.yaml': podYaml('b'),
  });
  assert.deepEqual([...source.current().unknownOrigins], ['a.yaml']);
  assert.match(source.current().rejected[0]?.message ?? '', /takes more than 15 s/);
  await host.hint();
  await host.advance(600_000);
  assert.deepEqual(
    parser.begun.filter((name) => name === 'a.yaml'),
    ['a.yaml'],
  );
  host.write('a.yaml', podYaml('a'));
  await host.hint();
  assert.deepEqual(podsOf(source.current()), ['uid-a', 'uid-b']);
});

test('a file at which the reader dies is tried three times, last of all, and again at the resync', async () => {
  const { source, parser, host } = await bench({ 'a.yaml': '# deadly\n', 'b.yaml': podYaml('b') });
  assert.deepEqual(parser.begun, ['a.yaml', 'b.yaml', 'a.yaml', 'a.yaml']);
  assert.deepEqual([podsOf(source.current()), [...source.current().unknownOrigins]], [['uid-b'], ['a.yaml']]);
  assert.equal(source.current().rejected[0]?.message, LOST.failure.message);
  parser.begun.length = 0;
  await host.advance(60_000);
  assert.deepEqual(parser.begun, ['a.yaml', 'a.yaml', 'a.yaml']);
});

test('a listing that began before the reader of a file was given up does not take the file for read', async () => {
  const { source, parser, host } = await bench({ 'a.yaml': podYaml('a') });
  await host.advance(4_000);
  await host.hint();
  host.write('a.yaml', `${podYaml('b')}# slow\n# deadly\n`);
  await host.advance(4_000);
  await host.hint();
  for (let loss = 0; loss < 2; loss += 1) {
    parser.release();
    await host.advance(0);
  }
  // It is known when the listing begins, and given up before it is answered.
  host.beforeAnswer = async () => {
    parser.release();
    await new Promise((resolve) => setImmediate(resolve));
  };
  await host.hint();
  host.beforeAnswer = undefined;
  for (let loss = 0; loss < 3; loss += 1) {
    parser.release();
    await host.advance(0);
  }
  assert.deepEqual([podsOf(source.current()), [...source.current().unknownOrigins]], [['uid-a'], ['a.yaml']]);
});

test('a file that is written while it is being read is read once more', async () => {
  const { source, parser, host } = await bench({ 'a.yaml': slow('a') });
  host.write('a.yaml', podYaml('other'));
  await host.hint();
  parser.release();
  await host.advance(SETTLE_MS);
  assert.deepEqual(podsOf(source.current()), ['uid-other']);
  assert.deepEqual(parser.begun, ['a.yaml', 'a.yaml']);
});

test('a file that is deleted while it is being read says nothing', async () => {
  const { source, parser, host } = await bench({ 'a.yaml': slow('a'), 'b.yaml': podYaml('b') });
  host.remove('a.yaml');
  await host.hint();
  parser.release();
  await host.advance(600_000);
  assert.deepEqual([podsOf(source.current()), [...source.current().unknownOrigins]], [['uid-b'], []]);
});

test('what has no room in one answer is read by itself', async () => {
  const files = Object.fromEntries(
    ['a', 'b', 'c', 'd'].map((name) => [`${name}.yaml`, `${podYaml(name)}${LONG.repeat(6)}`]),
  );
  const { source, host } = await bench(files);
  assert.deepEqual(podsOf(source.current()), ['uid-a', 'uid-b', 'uid-c', 'uid-d']);
  host.write('d.yaml', `${podYaml('e')}${LONG.repeat(6)}`);
  await host.hint();
  await host.advance(SETTLE_MS);
  assert.deepEqual(podsOf(source.current()), ['uid-a', 'uid-b', 'uid-c', 'uid-e']);
  await host.advance(600_000);
  assert.deepEqual([...source.current().unknownOrigins], []);
});

test('beyond all that manifests may have together the larger files are unknown', async () => {
  const { source } = await bench(
    { 'a.yaml': podYaml('a'), 'b.yaml': `${podYaml('b')}${LONG}` },
    { allBytesMax: 70_000 },
  );
  assert.deepEqual([podsOf(source.current()), [...source.current().unknownOrigins]], [['uid-a'], ['b.yaml']]);
  assert.match(source.current().rejected[0]?.message ?? '', /more than 70000 bytes/);
});
