/** What a crash left in the pool: a command beside the driver may be making just such a thing. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { openPool } from '../../../../plugins/loopfile/pool/pool.ts';

const HOUR_MS = 3_600_000;

async function poolWithLeftover(t: TestContext, wallMs: number) {
  const directory = mkdtempSync(join(tmpdir(), 'loopfile-sweep-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const leftover = join(directory, '.new-left');
  mkdirSync(leftover);
  writeFileSync(join(leftover, 'data.img'), 'x');
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: wallMs });
  const pool = await openPool(directory, undefined);
  await pool.sweep();
  return { directory, leftover };
}

test('a clock that is ahead takes nothing from who is at work in the pool', async (t) => {
  const { leftover } = await poolWithLeftover(t, Date.now() + 2 * HOUR_MS);
  assert.ok(existsSync(leftover));
});

test('a clock that is behind keeps nothing that is left for longer than an hour', async (t) => {
  const { directory, leftover } = await poolWithLeftover(t, 0);
  const younger = join(directory, '.gone-younger');
  mkdirSync(younger);
  t.mock.timers.tick(HOUR_MS);
  for (let turn = 0; existsSync(leftover) && turn < 100_000; turn += 1) await setImmediate();
  assert.ok(!existsSync(leftover));
  assert.ok(existsSync(younger), 'it came since');
});
