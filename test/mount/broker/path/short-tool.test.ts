/** How a tool that a path broker waits for has ended. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runShortTool, type ShortTool } from '../../../../mount/broker/path/short-tool.ts';

function failureOf(script: string, parts: Partial<ShortTool> = {}): readonly string[] {
  const argv = ['-c', script];
  const ran = runShortTool({ tool: 'sh', argv, open: [], failed: 'mount-failed', ...parts });
  assert.ok(!ran.ok);
  return [ran.failure.code, ran.failure.effect, ran.failure.message];
}

test('one that says no has failed in its own words', () => {
  assert.deepEqual(failureOf('echo busy >&2; exit 3'), ['mount-failed', 'unknown', 'sh exit 3: busy']);
});

test('one that takes too long is told so, and was started', () => {
  const told = failureOf('echo slow >&2; exec sleep 60', { deadlineMs: 300 });
  assert.deepEqual(told, ['deadline-passed', 'unknown', 'sh SIGKILL: slow']);
});

test('one that somebody has ended, as the kernel does for memory, took no time, and was refused nothing', () => {
  assert.deepEqual(failureOf('kill -KILL $$'), ['input-output', 'unknown', 'sh SIGKILL: ']);
});
