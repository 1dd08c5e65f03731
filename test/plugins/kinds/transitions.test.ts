import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { TRANSITIONS } from '../../../plugins/kinds/transitions.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const DECLARED = /= transition(?:<[^;]*?>)?\(\s*'([^']+)'/g;

test('a broker knows every transition that there is, each by a name of its own', () => {
  const declared = ['mount', 'plugins', 'reconciler', 'agent'].flatMap((floor) =>
    readdirSync(join(ROOT, floor), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .flatMap((name) => [...readFileSync(join(ROOT, floor, name), 'utf8').matchAll(DECLARED)])
      .map(([, name]) => name),
  );
  assert.ok(declared.length > 0);
  assert.deepEqual(TRANSITIONS.map(({ name }) => name).sort(), declared.sort());
});
