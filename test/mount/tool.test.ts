import assert from 'node:assert/strict';
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { runTool, type ToolReport, type ToolRequest } from '../../mount/tool.ts';
import { scratchDirectory } from './scratch.ts';
import { until } from '../until.ts';
import { withDescriptors } from './with-descriptors.ts';
import { signalProcess } from '../signal.ts';

async function report(request: Partial<ToolRequest> & { tool: string }): Promise<ToolReport> {
  const result = await runTool({ argv: [], deadlineMs: 120_000, ...request });
  assert.ok(result.ok, result.ok ? '' : result.failure.message);
  return result.value;
}

const shell = (script: string): { tool: string; argv: string[] } => ({ tool: 'sh', argv: ['-c', script] });

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test('a tool that says no is a report, not a failure', async () => {
  assert.deepEqual(await report(shell('echo out; echo err >&2; exit 3')), {
    exitCode: 3,
    signal: undefined,
    deadlinePassed: false,
    stdout: 'out\n',
    stderr: 'err\n',
  });
});

test('a tool that is nowhere is missing, and nothing has happened', async () => {
  const result = await runTool({ tool: 'no-such-tool-anywhere', argv: [], deadlineMs: 1_000 });
  assert.deepEqual(result.ok ? 'ok' : [result.failure.code, result.failure.effect], ['tool-missing', 'none']);
});

test('a tool is never looked for in the PATH of the caller', async (t) => {
  const folder = scratchDirectory(t);
  writeFileSync(`${folder}/planted-tool`, '#!/bin/sh\necho planted\n', { mode: 0o755 });
  const before = process.env['PATH'];
  process.env['PATH'] = `${folder}:${before}`;
  t.after(() => {
    process.env['PATH'] = before;
  });
  const result = await runTool({ tool: 'planted-tool', argv: [], deadlineMs: 1_000 });
  assert.equal(result.ok ? 'ran' : result.failure.code, 'tool-missing');
});

test('a tool gets a cleared environment, no shell and the root directory', async (t) => {
  process.env['MOORING_CANARY'] = 'secret';
  t.after(() => {
    delete process.env['MOORING_CANARY'];
  });
  const seen = await report({ tool: 'env', environment: { NOTIFY_SOCKET: '/x' } });
  assert.deepEqual(seen.stdout.trim().split('\n').sort(), [
    'LC_ALL=C',
    'NOTIFY_SOCKET=/x',
    'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
  ]);
  assert.equal((await report({ tool: 'pwd' })).stdout, '/\n');
  assert.equal((await report({ tool: 'echo', argv: ['$HOME; `id`', '*'] })).stdout, '$HOME; `id` *\n');
});

test('what is left behind with the pipes open is not waited for', async (t) => {
  const seen = await report(shell('sleep 600 & echo $!; exit 0'));
  const pid = Number(seen.stdout);
  t.after(() => signalProcess(pid, 'SIGKILL'));
  assert.equal(seen.exitCode, 0);
  assert.ok(isAlive(pid), 'the daemon lives on');
});

test('at its deadline a tool is killed with all that it started, and the report says so', async (t) => {
  const file = `${scratchDirectory(t)}/pid`;
  const seen = await report({
    ...shell(`sleep 600 & echo $! >${file}; trap '' TERM; wait`),
    deadlineMs: 2_000,
  });
  assert.deepEqual([seen.signal, seen.exitCode, seen.deadlinePassed], ['SIGKILL', undefined, true]);
  const pid = Number(readFileSync(file, 'utf8'));
  // Killed in the same moment; who collects the dead is not us.
  await until(`${pid} is gone`, () => !isAlive(pid));
});

test('output is cut at 64 KiB, and its writer is not held up', async () => {
  const seen = await report(shell('head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; echo end >&2'));
  assert.deepEqual([seen.exitCode, seen.stdout.length, seen.stderr.length], [0, 65_536, 65_536]);
});

test('input reaches the tool, and a tool that does not want it is no trouble', async () => {
  assert.equal((await report({ tool: 'cat', input: 'hello' })).stdout, 'hello');
  assert.equal((await report({ tool: 'true', input: 'x'.repeat(1_000_000) })).exitCode, 0);
  assert.equal((await report({ tool: 'cat' })).stdout, '');
});

test('inherited descriptors become 3, 4, and so on, and no other one is inherited', async (t) => {
  const folder = scratchDirectory(t);
  const descriptors = ['a', 'b', 'c'].map((name) => {
    writeFileSync(`${folder}/${name}`, name);
    return openSync(`${folder}/${name}`, 'r');
  });
  t.after(() => descriptors.forEach(closeSync));
  const [first = -1, , third = -1] = descriptors;
  const seen = await report({
    ...shell('cat <&3; cat <&4; readlink /proc/self/fd/*'),
    inheritedDescriptors: [third, first],
  });
  assert.ok(seen.stdout.startsWith('ca'));
  assert.ok(!seen.stdout.includes(`${folder}/b`), seen.stdout);
});

test('many tools at a time each get their own answer', async () => {
  const seen = await Promise.all(Array.from({ length: 20 }, (_, n) => report(shell(`echo ${n}; exit ${n}`))));
  assert.deepEqual(
    seen.map(({ exitCode, stdout }) => [exitCode, stdout]),
    seen.map((_, n) => [n, `${n}\n`]),
  );
});

test('a tool for which there are too few descriptors is not started, and none of them is lost', async () => {
  const open = (): number => readdirSync('/proc/self/fd').length;
  await report({ tool: 'true', input: '' });
  const before = open();
  for (const request of [{}, { input: 'x' }, { inputFile: 'x' }]) {
    for (let left = 0; left <= 8; left += 1) {
      const result = await withDescriptors(left, () =>
        runTool({ tool: 'true', argv: [], deadlineMs: 10_000, ...request }),
      );
      if (left === 0) assert.ok(!result.ok);
      if (!result.ok)
        assert.deepEqual([result.failure.code, result.failure.effect], ['input-output', 'none']);
      if (!result.ok) assert.match(result.failure.message, /: EMFILE$/);
    }
  }
  await until('all descriptors are closed', () => open() === before);
});
