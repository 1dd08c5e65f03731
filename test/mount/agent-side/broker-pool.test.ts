import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type BrokerPool, createBrokerPool } from '../../../mount/agent-side/broker-pool.ts';
import type { BrokerPoolOptions } from '../../../mount/agent-side/broker-pool-options.ts';
import type { Result } from '../../../mount/failure.ts';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import { scratchDirectory } from '../scratch.ts';
import { value } from '../../value.ts';

const SLOW_BROKER = [process.execPath, fileURLToPath(new URL('../slow-broker.mjs', import.meta.url))];
const [FINE, HANG, SLOW, DIE] = ['/fine', '/hang', '/slow', '/die'] as unknown as [
  AbsolutePath,
  AbsolutePath,
  AbsolutePath,
  AbsolutePath,
];

/** A busy machine starts a broker within this, and a test waits so long for a deadline. */
const START_MS_MAX = 10_000;

function pool(t: TestContext, options: Partial<BrokerPoolOptions> = {}): BrokerPool {
  const made = createBrokerPool({
    command: SLOW_BROKER,
    deadlineMs: 20_000,
    removeTreeDeadlineMs: 20_000,
    ...options,
  });
  t.after(() => made.close());
  return made;
}

/** Whatever the machine has to do besides: for pools that are made from now on no time passes but by `tick`. */
function standStill(t: TestContext): (ms: number) => void {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  // What waits for a broker is kept alive by its deadline, and that is not real here.
  const awake = setInterval(() => {}, 60_000);
  t.after(() => {
    clearInterval(awake);
    t.mock.timers.reset();
  });
  return (ms) => t.mock.timers.tick(ms);
}

/** The pid of the broker that answered. */
async function answer(brokers: BrokerPool, path: AbsolutePath): Promise<number> {
  const result: Result<unknown> = await brokers.call('inspect', { path });
  assert.ok(result.ok, result.ok ? '' : result.failure.message);
  return result.value as number;
}

const verdict = (result: Result<unknown>): unknown =>
  result.ok ? 'ok' : [result.failure.code, result.failure.effect];
const isAlive = (pid: number | undefined): boolean => existsSync(`/proc/${pid}`);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('INV-28: a hung call holds up no other call', async (t) => {
  const tick = standStill(t);
  const brokers = pool(t);
  await answer(brokers, FINE);
  let hung = true;
  const stuck = brokers.call('inspect', { path: HANG }).then(() => {
    hung = false;
  });
  const answers = [FINE, FINE, FINE].map((path) => answer(brokers, path));
  tick(1_000);
  const pids = new Set(await Promise.all(answers));
  assert.ok(hung);
  assert.equal(pids.size, 1);
  assert.equal(brokers.pids().length, 2);
  void stuck;
});

test('INV-28: as many hung calls as there may be brokers hold up no other call', async (t) => {
  const now = performance.now.bind(performance);
  // What takes a second has soon taken a quarter of an hour.
  t.mock.method(performance, 'now', () => now() * 1_000);
  const brokers = pool(t, { deadlineMs: START_MS_MAX, removeTreeDeadlineMs: 600_000, pathBrokersMax: 2 });
  const hung = [HANG, HANG].map((path) => brokers.call('removeTree', { path }));
  await answer(brokers, FINE);
  await answer(brokers, FINE);
  assert.equal(brokers.pids().length, 3);
  void hung;
});

test('whether a broker answers is told while as many calls hang as there may be brokers', async (t) => {
  // No call that runs seems to hang.
  t.mock.method(performance, 'now', () => 60_000);
  const brokers = pool(t, { deadlineMs: START_MS_MAX, removeTreeDeadlineMs: 600_000, pathBrokersMax: 1 });
  const hung = brokers.call('removeTree', { path: HANG });
  const waiting = brokers.call('inspect', { path: FINE });
  for (let times = 0; times < 3; times += 1) value(await brokers.answers());
  assert.equal(brokers.pids().length, 2);
  assert.deepEqual(verdict(await waiting), ['deadline-passed', 'none'], 'the other broker is not for it');
  value(await brokers.answers());
  void hung;
});

test('whether a broker answers is told while more calls hang than are replaced', async (t) => {
  const now = performance.now.bind(performance);
  // What hangs has soon been silent for long.
  t.mock.method(performance, 'now', () => now() * 1_000);
  const brokers = pool(t, { deadlineMs: START_MS_MAX, removeTreeDeadlineMs: 600_000, abandonedMax: 1 });
  const hang = () => brokers.call('removeTree', { path: HANG });
  const hung = [hang()];
  value(await brokers.answers());
  hung.push(hang(), hang(), hang());
  for (let times = 0; times < 3; times += 1) value(await brokers.answers());
  assert.equal(brokers.pids().length, 3);
  void hung;
});

test('whether a broker answers is told when calls that began together hang, more than are replaced', async (t) => {
  let nowMs = 60_000;
  t.mock.method(performance, 'now', () => nowMs);
  const brokers = pool(t, {
    deadlineMs: START_MS_MAX,
    removeTreeDeadlineMs: 600_000,
    abandonedMax: 1,
    crowdBrokersMax: 8,
  });
  const hung = [HANG, HANG, HANG, HANG].map((path) => brokers.call('removeTree', { path }));
  // The broker of each answer is idle then, and takes a call if it may.
  for (let times = 0; times < 4; times += 1) value(await brokers.answers());
  nowMs += 60_000;
  value(await brokers.answers());
  assert.equal(brokers.pids().length, 3);
  void hung;
});

test('a call past its deadline settles when its broker is really gone, and another takes its place', async (t) => {
  const brokers = pool(t, { deadlineMs: START_MS_MAX });
  const pid = await answer(brokers, FINE);
  assert.deepEqual(verdict(await brokers.call('inspect', { path: HANG })), ['deadline-passed', 'none']);
  assert.ok(!isAlive(pid));
  assert.equal(brokers.abandoned(), 0);
  assert.notEqual(await answer(brokers, FINE), pid);
});

test('an overdue call that changes the world may have changed it', async (t) => {
  const brokers = pool(t, { removeTreeDeadlineMs: 50 });
  assert.deepEqual(verdict(await brokers.call('removeTree', { path: HANG })), ['deadline-passed', 'unknown']);
});

test('who waits is told when a broker takes the call', async (t) => {
  const brokers = pool(t, { pathBrokersMax: 1 });
  const told: string[] = [];
  const say = (word: string) => (): void => void told.push(word);
  const slow = brokers.call('inspect', { path: SLOW }, { onBegin: say('slow begins') });
  const fine = brokers.call('inspect', { path: FINE }, { onBegin: say('fine begins') });
  await Promise.all([slow.then(say('slow ends')), fine.then(say('fine ends'))]);
  assert.deepEqual([told.indexOf('slow begins'), told.at(-1)], [0, 'fine ends']);
  assert.deepEqual(told.slice(1, 3).toSorted(), ['fine begins', 'slow ends']);
});

test('a call that waited for its turn too long has changed nothing', async (t) => {
  // No call that runs seems to hang.
  t.mock.method(performance, 'now', () => 0);
  const brokers = pool(t, { deadlineMs: START_MS_MAX, pathBrokersMax: 1 });
  await answer(brokers, FINE);
  const hung = brokers.call('removeTree', { path: HANG });
  const waited = await brokers.call('removeFile', { path: FINE });
  assert.deepEqual(verdict(waited), ['deadline-passed', 'none']);
  assert.ok(!waited.ok && waited.failure.isUnasked === true);
  assert.match(waited.failure.message, /had no turn in time/);
  void hung;
});

test('a call that no broker was up for in time is not said to wait for other calls', async (t) => {
  const tick = standStill(t);
  const brokers = pool(t);
  const first = brokers.call('inspect', { path: FINE });
  tick(20_000);
  const waited = await first;
  assert.deepEqual(verdict(waited), ['deadline-passed', 'none']);
  assert.ok(!waited.ok && waited.failure.isUnasked === true);
  assert.match(waited.failure.message, /had no turn in time: no helper process was up/);
});

test('a broker that dies takes its call with it, and those that wait go to another', async (t) => {
  const brokers = pool(t, { pathBrokersMax: 1 });
  const pid = await answer(brokers, FINE);
  const results = await Promise.all([
    brokers.call('removeFile', { path: DIE }),
    brokers.call('inspect', { path: DIE }),
    answer(brokers, FINE),
  ]);
  assert.deepEqual(verdict(results[0]), ['broker-lost', 'unknown']);
  assert.deepEqual(verdict(results[1]), ['broker-lost', 'none']);
  assert.notEqual(results[2], pid);
});

test('INV-27: there are never more brokers than allowed', async (t) => {
  const brokers = pool(t, { pathBrokersMax: 2 });
  const answers = Array.from({ length: 6 }, () => answer(brokers, SLOW));
  let seen = 0;
  const look = setInterval(() => {
    seen = Math.max(seen, brokers.pids().length);
  }, 10);
  const pids = new Set(await Promise.all(answers));
  clearInterval(look);
  assert.equal(seen, 2);
  // On a busy machine the first one may have answered all before the second one listens.
  assert.ok(pids.size <= 2, `${pids.size} brokers answered`);
});

test('more brokers than a crowd needs are there only for calls that are slow', async (t) => {
  const brokers = pool(t);
  const hung = [HANG, HANG, HANG, HANG].map((path) => brokers.call('inspect', { path }));
  await answer(brokers, FINE);
  assert.equal(brokers.pids().length, 5);
  void hung;
});

test('calls share one broker for as long as waiting is patience, however many they are', async (t) => {
  const tick = standStill(t);
  const brokers = pool(t);
  await answer(brokers, FINE);
  const pids = new Set(await Promise.all(Array.from({ length: 200 }, () => answer(brokers, FINE))));
  assert.deepEqual([pids.size, brokers.pids().length], [1, 1]);
  const hung = brokers.call('inspect', { path: HANG });
  const waiting = answer(brokers, FINE);
  assert.equal(brokers.pids().length, 1);
  tick(1_000);
  assert.equal(brokers.pids().length, 2);
  assert.ok(!pids.has(await waiting));
  void hung;
});

for (const crowdBrokersMax of [1, 2]) {
  test(`for many quick calls there are ${crowdBrokersMax} brokers, where so many are a crowd`, async (t) => {
    const tick = standStill(t);
    // No call that runs seems slow.
    t.mock.method(performance, 'now', () => 0);
    const brokers = pool(t, { crowdBrokersMax });
    await answer(brokers, FINE);
    let most = 0;
    for (let round = 0; round < 8; round += 1) {
      const answers = Array.from({ length: 40 }, () => answer(brokers, FINE));
      tick(1_000);
      await Promise.all(answers);
      most = Math.max(most, brokers.pids().length);
    }
    assert.equal(most, crowdBrokersMax);
  });
}

test('one that is to stay does, however long there is nothing to do', async (t) => {
  const tick = standStill(t);
  const brokers = pool(t, { idleBrokersMin: 1 });
  const pid = await answer(brokers, FINE);
  for (let minute = 0; minute < 5; minute += 1) tick(60_000);
  assert.deepEqual([await answer(brokers, FINE), brokers.pids()], [pid, [pid]]);
});

test('those that need not stay end when there is nothing to do', async (t) => {
  const brokers = pool(t, { idleMsMax: 1, idleBrokersMin: 0 });
  const pid = await answer(brokers, FINE);
  while (brokers.pids().length > 0) await pause(5);
  assert.equal(isAlive(pid), false);
  assert.notEqual(await answer(brokers, FINE), pid);
});

test('brokers that cannot start are told to the caller, soon and with no effect', async (t) => {
  for (const command of [['/nonexistent/node'], [process.execPath, '/nonexistent/broker.js']]) {
    const brokers = pool(t, { command });
    assert.deepEqual(verdict(await brokers.call('removeFile', { path: FINE })), ['broker-lost', 'none']);
    assert.deepEqual(brokers.pids(), []);
  }
});

test('a broker that does not come to listen is replaced', { timeout: 300_000 }, async (t) => {
  const tick = standStill(t);
  const begun = below(scratchDirectory(t), 'begun');
  // Only the first one is stuck.
  const program = `const { existsSync, writeFileSync } = require('node:fs');
    if (existsSync('${begun}')) import('${SLOW_BROKER.at(-1)}');
    else { setInterval(() => {}, 60_000); writeFileSync('${begun}', ''); }`;
  const brokers = pool(t, { command: [process.execPath, '--eval', program], deadlineMs: 600_000 });
  const waiting = answer(brokers, FINE);
  const [stuck] = brokers.pids();
  while (!existsSync(begun)) await nextTurn();
  tick(120_000);
  while (isAlive(stuck)) await nextTurn();
  assert.notEqual(await waiting, stuck);
});

test('a broker knows nothing of the environment of the agent', async (t) => {
  process.env['MOORING_CANARY'] = 'secret';
  t.after(() => {
    delete process.env['MOORING_CANARY'];
  });
  const environment = readFileSync(`/proc/${await answer(pool(t), FINE)}/environ`, 'utf8');
  assert.deepEqual(
    environment
      .split('\0')
      .map((one) => one.split('=')[0])
      .sort(),
    [
      '',
      'LC_ALL',
      'MALLOC_ARENA_MAX',
      'MALLOC_MMAP_THRESHOLD_',
      'MALLOC_TRIM_THRESHOLD_',
      'NODE_CHANNEL_FD',
      'NODE_CHANNEL_SERIALIZATION_MODE',
      'PATH',
    ],
  );
});

test('closing ends every broker, a hung one too, and no call comes after', async (t) => {
  const brokers = pool(t);
  const hung = brokers.call('removeFile', { path: HANG });
  await answer(brokers, FINE);
  const pids = brokers.pids();
  await brokers.close();
  assert.deepEqual(verdict(await hung), ['broker-lost', 'unknown']);
  assert.deepEqual(verdict(await brokers.call('inspect', { path: FINE })), ['broker-lost', 'none']);
  while (pids.some(isAlive)) await pause(2);
});
