/** Every id, document and file that code, tests and documents cite is there to be read. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDERS = ['agent', 'docs', 'kubernetes', 'mount', 'plugins', 'reconciler', 'systemd', 'test', '.ci'];
/** Made by others, or from what others made. */
const FOREIGN = /generated\/|node_modules\/|\/proto\/|\.sum$/;

interface Text {
  readonly path: string;
  readonly text: string;
}

function pathsBelow(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length));
}

const rootFiles = readdirSync(ROOT, { withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map(({ name }) => name);
const paths = [...FOLDERS.flatMap(pathsBelow), ...rootFiles].filter(
  (path) => !path.includes('node_modules/'),
);
const texts: readonly Text[] = paths
  .filter((path) => /\.(?:ts|mjs|go|md|service)$|^\.ci\//.test(path) && !FOREIGN.test(path))
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

const document = (name: string): string => readFileSync(join(ROOT, 'docs', name), 'utf8');
const all = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([, found = '']) => found);

const INVARIANTS = document('INVARIANTS.md');
const GLOSSARY = document('GLOSSARY.md');
const decisions = all(document('DECISIONS.md'), /^\*\*(D-\d+) /gm);
const duties = all(document('CSI.md'), /^(?:\| |- )(A-\d{3})[ :]/gm);
const cases = all(document('CSI.md').replaceAll(/^(?!\| S\d).*$/gm, ''), /\b(S\d+)\b/g);
const rows = INVARIANTS.split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, id = '']) => /^[A-Z]+-[A-Z]?\d+$/.test(id));
const known = new Set([...decisions, ...duties, ...cases, ...rows.map(([, id = '']) => id)]);

/** What looks like an id. `S3-21` is one case of csi-sanity to another. */
const ID = /(?<![\w-])[A-Z]{1,4}\d{0,2}-[A-Z]?\d+\b/g;
/** What anybody can look up: standards, character sets, lists of others. */
const PUBLIC = /^(?:CVE-\d{4}|KEP-\d+|UTF-\d+|DNS-1123|ECMA-48)$/;

function isKnown(id: string): boolean {
  const [, first, last] = /^S(\d+)-(\d+)$/.exec(id) ?? [];
  return first === undefined ? known.has(id) : known.has(`S${first}`) && known.has(`S${last}`);
}

function unknownIn(text: string): readonly string[] {
  const ids = (text.match(ID) ?? []).filter((id) => !PUBLIC.test(id));
  return ids.filter((id) => !isKnown(id));
}

test('every id that is cited is in a document here', () => {
  const unknown = texts.flatMap(({ path, text }) => unknownIn(text).map((id) => `${path} cites ${id}`));
  assert.deepEqual(unknown, []);
});

test('every source of a duty that `mooring drive` names is in docs/CSI.md', () => {
  const drive = texts.filter(({ path }) => path.startsWith('agent/drive/'));
  const sources = drive.flatMap(({ text }) => all(text, /\bsource: '([A-Z][^']*)'/g));
  assert.ok(sources.length > 10, 'the sources are not where they were');
  for (const source of sources.flatMap((one) => one.split(' '))) {
    const isTable = /^A\.\d$/.test(source) && new RegExp(`\\b${source}, the`).test(document('CSI.md'));
    assert.ok(isTable || isKnown(source), `nobody says what ${source} is`);
  }
});

test('decisions are numbered from 1, none twice, none left out', () => {
  assert.deepEqual(
    decisions,
    decisions.map((_, index) => `D-${index + 1}`),
  );
  assert.doesNotMatch(document('DECISIONS.md'), /^\*\*\d/m, 'a decision without a number');
});

test('no id is explained twice', () => {
  const ids = rows.map(([, id = '']) => id);
  assert.deepEqual(
    ids.filter((id, index) => ids.indexOf(id) !== index),
    [],
  );
});

test('what docs/INVARIANTS.md explains is cited somewhere else', () => {
  const others = texts.filter(({ path }) => path !== 'docs/INVARIANTS.md');
  const cited = new Set(others.flatMap(({ text }) => text.match(ID) ?? []));
  const idle = rows.map(([, id = '']) => id).filter((id) => !cited.has(id));
  assert.deepEqual(idle, []);
});

/** Citations that nobody could follow: of documents elsewhere, by a number without its list, by a range. */
const UNFOLLOWABLE = [
  /\bshelf\b/,
  /\bdecisions? \d+/i,
  /§/,
  /\b[A-Z]{1,4}-\d+\.\.\d/,
  /\b(?:kubelet,? )[A-K]\d{1,2}\b/,
  /(?:['"`(]|, )[A-KS]\d{1,2}[:,)]/,
];

test('no line cites what only its author had', () => {
  for (const { path, text } of texts.filter((one) => one.path !== 'test/citations.test.ts')) {
    for (const [index, line] of text.split('\n').entries()) {
      const found = UNFOLLOWABLE.map((pattern) => pattern.exec(line)?.[0]).find((one) => one !== undefined);
      assert.equal(found, undefined, `${path}:${index + 1}: ${line.trim()}`);
    }
  }
});

/** The comments of a program, or all of a document; without addresses. */
function proseOf({ path, text }: Text): string {
  const prose = path.endsWith('.md')
    ? text
    : (text.match(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm) ?? []).join('\n');
  return prose.replaceAll(/\b[a-z]+:\/\/\S+/g, '');
}

/** What `npm run build` makes; `file.ts` is any file. */
const NOT_HERE = new Set(['file.ts', 'mooring.mjs', 'dist/mooring.mjs', 'dist/mooring-loopfile.mjs']);
/** Paths of the kubelet, below its root, and of other projects; a boundary of an effect. */
const NOT_OURS = /^(?:plugins\/kubernetes\.io|kubernetes\/kubernetes|test\/e2e|mount\/before)\b/;

function isThere(name: string): boolean {
  return NOT_HERE.has(name) || paths.some((path) => path === name || path.endsWith(`/${name}`));
}

test('every file that a comment or a document names is there', () => {
  const missing = texts.flatMap((one) =>
    all(proseOf(one), /(?<![\w./<*{-])((?:[\w@.-]+\/)*[\w-][\w.-]*\.(?:ts|mjs|go|md|service))\b/g)
      .filter((name) => !isThere(name))
      .map((name) => `${one.path} names ${name}`),
  );
  assert.deepEqual(missing, []);
});

test('every folder that a comment or a document names is there', () => {
  const tops = FOLDERS.filter((folder) => folder !== '.ci').join('|');
  const pattern = new RegExp(`(?<![\\w./<~$-])((?:${tops})/[\\w./-]*\\w)`, 'g');
  const missing = texts.flatMap((one) =>
    all(proseOf(one), pattern)
      .filter((name) => !NOT_OURS.test(name) && !existsSync(join(ROOT, name)))
      .map((name) => `${one.path} names ${name}`),
  );
  assert.deepEqual(missing, []);
});

/** A file is named by an end of its path that no other has. */
function theFile(name: string): string {
  const found = paths.filter((path) => path === name || path.endsWith(`/${name}`));
  assert.equal(found.length, 1, `${name} is ${found.length} files: ${found.join(' ')}`);
  return readFileSync(join(ROOT, found[0] ?? ''), 'utf8');
}

test('every invariant names one file that holds it, and judges that name it', () => {
  const invariants = rows.filter(([, id = '']) => id.startsWith('INV-'));
  assert.ok(invariants.length > 0);
  for (const [, id = '', , held = '', judged = ''] of invariants) {
    for (const name of all(held, /`([^`]+)`/g)) theFile(name);
    const judges = all(judged, /`([^`]+)`/g);
    const silent = judges.filter((name) => !new RegExp(`\\b${id}\\b`).test(theFile(name)));
    assert.deepEqual(silent, [], `judges of ${id} that do not name it`);
    assert.ok(held.includes('`') || held.startsWith('not yet'), `${id} is held nowhere`);
  }
});

/** As words and as names in a program: `on the ground` is `isOnTheGround`, too. */
const plain = (text: string): string => text.toLowerCase().replaceAll(/[\s*_-]+/g, '');

test('every word of the glossary has its file, and is used in it', () => {
  const entries = GLOSSARY.split('\n').filter((line) => /^\| [a-z]/.test(line));
  assert.ok(entries.length >= 30);
  for (const line of entries) {
    const [, words = '', , , place = ''] = line.split('|').map((cell) => cell.trim());
    const [name = ''] = all(place, /`([^`]+)`/g);
    const text = plain(theFile(name));
    for (const word of words.split(','))
      assert.ok(text.includes(plain(word)), `${name} says nothing of ${word}`);
  }
});
