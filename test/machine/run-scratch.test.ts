import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { until } from '../until.ts';
import { createRunScratch, isOfAnotherRun, RUN_PREFIX, type RunScratch } from './run-scratch.ts';
import { signalProcess } from '../signal.ts';

function scratchOf(t: TestContext): RunScratch {
  const scratch = createRunScratch();
  t.after(() => scratch.remove());
  return scratch;
}

test('what lies in the directory of one of two runs is left behind by that one alone', (t) => {
  const [one, other] = [scratchOf(t), scratchOf(t)];
  const left = join(one.directory, 'mooring-left');
  mkdirSync(left);
  assert.ok(one.leftBehind().includes(`scratch ${left}`));
  assert.ok(!other.leftBehind().some((trace) => trace.includes(left)));
  one.remove();
  assert.equal(existsSync(left), false);
});

test('what lies beside the directories of all runs is left behind by each', (t) => {
  const [one, other] = [scratchOf(t), scratchOf(t)];
  const left = join(tmpdir(), `mooring-stray-${process.pid}`);
  t.after(() => rmSync(left, { recursive: true, force: true }));
  mkdirSync(left);
  for (const scratch of [one, other]) assert.ok(scratch.leftBehind().includes(`scratch ${left}`));
});

test('a simulation, or the hostile world, that goes beside a run is none of its leftovers', (t) => {
  const run = scratchOf(t);
  const beside = mkdtempSync(join(tmpdir(), RUN_PREFIX));
  t.after(() => rmSync(beside, { recursive: true, force: true }));
  assert.ok(!run.leftBehind().some((trace) => trace.includes(beside)));
});

/** A process whose parent is gone, named as ours are; its id. */
async function orphan(t: TestContext, environment: Record<string, string>): Promise<string> {
  const script = 'exec -a mooring-orphan sleep 300 >/dev/null & echo $!';
  const child = spawn('bash', ['-c', script], { stdio: ['ignore', 'pipe', 'inherit'], env: environment });
  const [pid] = await once(createInterface(child.stdout), 'line');
  t.after(() => signalProcess(Number(pid), 'SIGTERM'));
  await once(child, 'exit');
  // Between its fork and its program it has the shell's words, or none.
  const words = () => readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  await until('the program runs', () => words().startsWith('mooring-orphan'));
  return String(pid);
}

test('a process without a parent belongs to the run whose directory it has for TMPDIR, or to each', async (t) => {
  const [one, other] = [scratchOf(t), scratchOf(t)];
  const names = (scratch: RunScratch, pid: string): boolean =>
    scratch.leftBehind().some((trace) => trace.startsWith(`process ${pid} `));
  const ofOne = await orphan(t, { PATH: String(process.env['PATH']), TMPDIR: one.directory });
  assert.deepEqual([names(one, ofOne), names(other, ofOne)], [true, false]);
  const ofNobody = await orphan(t, { PATH: String(process.env['PATH']) });
  assert.deepEqual([names(one, ofNobody), names(other, ofNobody)], [true, true]);
});

test('a text is of another run when it names one, and not this one', () => {
  const own = '/tmp/mooring-r-aaaaaa';
  assert.equal(isOfAnotherRun('mount /tmp/mooring-r-bbbbbb/x', own), true);
  assert.equal(isOfAnotherRun('mount /tmp/mooring-r-aaaaaa/x', own), false);
  assert.equal(isOfAnotherRun('mount /tmp/mooring-r-bbbbbb /tmp/mooring-r-aaaaaa', own), false);
  assert.equal(isOfAnotherRun('mount /tmp/mooring-real-bbbbbb', own), false);
});
