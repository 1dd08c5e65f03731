/** docs/CSI.md keeps its word: every duty has a row, every row its code, and every test it names the duty's id. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FAILURE_RETRY } from '../mount/failure.ts';
import { failureOf } from '../plugins/csi/wire/status.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const LINE_COLUMNS_MAX = 120;
const RULE_WORDS_MAX = 12;
const DOCUMENT = readFileSync(join(ROOT, 'docs/CSI.md'), 'utf8');

/** The numbers between are not given to anything. */
const DUTIES = [
  [1, 25],
  [30, 40],
  [50, 76],
].flatMap(([first = 0, last = 0]) =>
  Array.from({ length: last - first + 1 }, (_, index) => `A-${String(first + index).padStart(3, '0')}`),
);

interface Row {
  readonly duty: string;
  readonly rule: string;
  readonly code: readonly string[];
  readonly tests: readonly string[];
  /** Why Mooring does not have it; undefined where it has. */
  readonly notOurs: string | undefined;
}

function cellsOf(line: string): readonly string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}

const quoted = (cell: string): readonly string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);

const rows: readonly Row[] = DOCUMENT.split('\n')
  .filter((line) => /^\| A-\d{3} \|/.test(line))
  .map((line) => {
    const [duty = '', rule = '', code = '', tests = ''] = cellsOf(line);
    const [, notOurs] = /^not ours: (.+)$/.exec(code) ?? [];
    return { duty, rule, code: quoted(code), tests: quoted(tests), notOurs };
  });

/** A file is named by an end of its path that no other has. */
function find(name: string, files: readonly string[]): string {
  const found = files.filter((path) => path === name || path.endsWith(`/${name}`));
  assert.equal(found.length, 1, `${name} is ${found.length} files: ${found.join(' ')}`);
  return readFileSync(join(ROOT, found[0] ?? ''), 'utf8');
}

function filesBelow(folder: string): readonly string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names.map((name) => join(folder, name));
}

const productFiles = ['mount', 'plugins', 'kubernetes', 'reconciler', 'agent', 'systemd'].flatMap(filesBelow);
const testFiles = filesBelow('test');

test('every duty of a node orchestrator has one row, in order, in few words', () => {
  assert.deepEqual(
    rows.map(({ duty }) => duty),
    DUTIES,
  );
  for (const { duty, rule } of rows) assert.ok(rule.split(' ').length <= RULE_WORDS_MAX, `${duty}: ${rule}`);
});

test('every row names code that is there, or says why there is none', () => {
  for (const { duty, code, notOurs } of rows) {
    assert.equal(code.length === 0, notOurs !== undefined, duty);
    for (const place of code) {
      const [file = '', name] = place.split(':');
      const text = find(file, productFiles);
      if (name !== undefined) assert.match(text, new RegExp(`\\b${name}\\b`), `${duty}: ${place}`);
    }
  }
});

/** Titles of tests, and the rows of tables that tests are made from: the id within a string, not in a comment. */
function titlesOf(text: string): string {
  return text
    .split('\n')
    .filter((line) => !/^\s*(?:\*|\/\/|\/\*)/.test(line))
    .flatMap((line) => [...line.matchAll(/(['"`])((?:(?!\1).)*)\1/g)].map(([, , title = '']) => title))
    .join('\n');
}

test('every row names tests that have its id in a title', () => {
  for (const { duty, tests, notOurs } of rows) {
    assert.equal(tests.length === 0, notOurs !== undefined, `${duty} has a test`);
    for (const name of tests) {
      const text = find(`${name}.test.ts`, testFiles);
      assert.match(titlesOf(text), new RegExp(`\\b${duty}\\b`), `${name} has no test of ${duty}`);
    }
  }
});

test('the table of answers is what the code makes of them', () => {
  const answers = DOCUMENT.split('\n')
    .filter((line) => /^\| \d+ \|/.test(line))
    .map(cellsOf);
  assert.deepEqual(
    answers.map(([status]) => Number(status)),
    [...Array(16).keys()].map((index) => index + 1).concat(99),
  );
  const context = { driver: 'd', method: 'm', secrets: [] } as const;
  for (const [status = '', name = '', code = '', effect, retry] of answers) {
    const answer = { kind: 'status', status: Number(status), message: '' } as const;
    const climbing = failureOf(answer, { ...context, direction: 'climbing' });
    assert.deepEqual(
      [`\`${climbing.code}\``, climbing.effect, FAILURE_RETRY[climbing.code]],
      [code, effect, retry],
    );
    if (Number(status) < 17) assert.match(climbing.message, new RegExp(`: ${name}$`));
    assert.equal(failureOf(answer, { ...context, direction: 'teardown' }).effect, 'unknown');
  }
});

test('no line of the document is too long', () => {
  for (const [index, line] of DOCUMENT.split('\n').entries())
    assert.ok(line.length <= LINE_COLUMNS_MAX, `docs/CSI.md:${index + 1} has ${line.length} columns`);
});
