import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { isRunning, killTool, toolProcessOf } from '../../../mount/broker/tool-process.ts';

test('a process that has the number of a tool, but began at another time, is left alone', async (t) => {
  const child = spawn('cat', { detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  const tool = toolProcessOf(child.pid ?? 0);
  assert.ok(tool !== undefined);
  assert.deepEqual([isRunning(tool), isRunning({ ...tool, started: '0' })], [true, false]);
  killTool({ ...tool, started: `${Number(tool.started) - 1}` });
  child.stdin.write('alive');
  assert.equal(String((await once(child.stdout, 'data'))[0]), 'alive');
  const ended = once(child, 'exit');
  killTool(tool);
  assert.deepEqual(await ended, [null, 'SIGKILL']);
  killTool(tool);
  assert.equal(isRunning(tool), false);
  assert.equal(toolProcessOf(tool.pid), undefined);
});
