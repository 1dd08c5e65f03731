import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import type { Result } from '../../../mount/failure.ts';
import { transitionTurnsContract } from '../../contract/transition.ts';
import { dawdle, spin, stumble } from '../../contract/transitions.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { value } from '../../value.ts';
import { realHost, scratchDirectory } from '../scratch.ts';

const skip = inPrivateNamespace();
/** A busy machine starts a broker within this, and stands still for no longer. */
const DEADLINE_MS = 10_000;

const verdict = (result: Result<unknown>): unknown =>
  result.ok ? 'ok' : [result.failure.code, result.failure.effect, result.failure.blocker];

if (skip === false)
  transitionTurnsContract('LinuxHost', async (t) => ({ host: await realHost(t), root: scratchDirectory(t) }));

test('a transition that hangs is killed, and nobody knows how far it came; others go on', {
  skip,
}, async (t) => {
  const host = await realHost(t, { deadlinesMs: { path: DEADLINE_MS } });
  const path = scratchDirectory(t);
  const hung = host.perform(spin, { path });
  let ended = false;
  const noted = hung.then(() => {
    ended = true;
  });
  const elsewhere = scratchDirectory(t);
  value(await host.makeDirectory(below(elsewhere, 'a'), 0o750));
  assert.equal(value(await host.perform(dawdle, { path: elsewhere, steps: 1, stepMs: 0 })), 1);
  assert.equal(ended, false);
  assert.deepEqual(verdict(await hung), ['deadline-passed', 'unknown', path]);
  assert.equal(value(await host.inspect(below(path, 'begun'))).kind, 'directory');
  await noted;
});

test('each step is a sign of life: a transition of many steps may take longer than one', {
  skip,
}, async (t) => {
  const host = await realHost(t, { deadlinesMs: { path: 3_000 } });
  const path = '/' as AbsolutePath;
  // The broker is there.
  value(await host.inspect(path));
  assert.equal(value(await host.perform(dawdle, { path, steps: 20, stepMs: 250 })), 20);
});

test('a transition that breaks its promise takes its broker with it and nothing else', {
  skip,
}, async (t) => {
  const host = await realHost(t);
  const path = scratchDirectory(t);
  assert.deepEqual(verdict(await host.perform(stumble, { path })), ['broker-lost', 'unknown', path]);
  assert.equal(value(await host.inspect(below(path, 'begun'))).kind, 'directory');
  assert.equal(value(await host.perform(dawdle, { path, steps: 2, stepMs: 0 })), 2);
});
