import assert from 'node:assert/strict';
import { test } from 'node:test';
import { below, parseAbsolutePath } from '../../mount/host.ts';
import { createRandom } from '../sim/random.ts';

const PIECES = ['/', '.', '..', 'a', ' ', '\n', '\0', 'ü', '…', '//', '/.', '/..', '.a', '...', '\u{1F4BE}'];

/** The definition, in the words of path_resolution(7). */
function isAbsolutePath(text: string): boolean {
  if (text === '/') return true;
  if (!text.startsWith('/') || text.includes('\0') || Buffer.byteLength(text) > 4_095) return false;
  return text
    .slice(1)
    .split('/')
    .every((one) => one !== '' && one !== '.' && one !== '..');
}

test('an absolute path is one without empty, `.` and `..` components, of at most 4,095 bytes', () => {
  const random = createRandom(7);
  let paths = 0;
  for (let draw = 0; draw < 20_000; draw += 1) {
    const text = Array.from({ length: random.below(7) }, () => random.pick(PIECES)).join('');
    assert.equal(parseAbsolutePath(text) !== undefined, isAbsolutePath(text), JSON.stringify(text));
    if (isAbsolutePath(text)) paths += 1;
  }
  assert.ok(paths > 500);
  for (const text of [
    `/${'a'.repeat(4_094)}`,
    `/${'a'.repeat(4_095)}`,
    `/${'…'.repeat(1_364)}`,
    `/${'…'.repeat(1_365)}`,
  ])
    assert.equal(parseAbsolutePath(text) !== undefined, isAbsolutePath(text), String(text.length));
});

test('a component that is none is a broken invariant', () => {
  const root = parseAbsolutePath('/') ?? assert.fail();
  assert.equal(below(root, 'a', 'b c'), '/a/b c');
  assert.equal(below(below(root, 'a'), '...'), '/a/...');
  for (const component of ['', '.', '..', 'a/b', '/', 'a\0', 'x'.repeat(4_095)])
    assert.throws(() => below(root, component), /not a path component/);
});
