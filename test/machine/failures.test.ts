import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Failures } from './failures.ts';

test('what failed is told at the end of the log, each with its place and message', () => {
  const failures = new Failures();
  for (const line of [
    'ok 1 - fine',
    '  ---',
    '  duration_ms: 1',
    '  ...',
    '    not ok 2 - stages once',
    '      ---',
    "      location: 'a.test.ts:3:1'",
    '      error: two mounts',
    '      ...',
    'ok 3 - fine, too',
  ]) {
    failures.add(line);
  }
  assert.equal(
    String(failures),
    "\n=== failed:\n    not ok 2 - stages once\n      ---\n      location: 'a.test.ts:3:1'\n      error: two mounts\n",
  );
  assert.equal(String(new Failures()), '');
});
