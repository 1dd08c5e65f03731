/** Who is told of an emptyDir that takes more than it may, how often it is counted, and of which nobody asks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fail, ok, type Result } from '../../../mount/failure.ts';
import type { Usage, UsageRequest } from '../../../mount/usage.ts';
import { NO_SECRETS, type StatisticsCall } from '../../../plugins/plugin.ts';
import { createEmptyDirPlugin } from '../../../plugins/pod/empty-dir.ts';
import { emptyDir, callOf, freshHost, hugePages, layout, mounterOf, POD_DIRECTORY } from '../local-world.ts';
import type { VolumeSpec } from '../../../plugins/volume.ts';

const LIMIT = 10 << 20;
const PATH = `${POD_DIRECTORY}/volumes/kubernetes.io~empty-dir/cache`;

function usage(used: number, rest: Partial<Usage> = {}): Result<Usage> {
  const unbounded = { total: undefined, available: undefined };
  const bytes = { used: BigInt(used), ...unbounded };
  return ok({ bytes, inodes: { used: 7n, ...unbounded }, isWhole: true, ...rest });
}

function world(spec: VolumeSpec = emptyDir('disk', LIMIT)) {
  const host = freshHost();
  const asked: UsageRequest[] = [];
  const given = { answer: usage(0), tookMs: 0, isThere: true };
  let nowMs = 0;
  host.nowMs = () => nowMs;
  host.measureUsage = async (request) => {
    asked.push(request);
    nowMs += given.tookMs;
    return given.answer;
  };
  const plugin = createEmptyDirPlugin(host, layout, mounterOf(host));
  const { publication, facts } = callOf(spec);
  const stillThere = () => given.isThere;
  const call: StatisticsCall = {
    spec,
    facts,
    publication,
    mount: undefined,
    stillThere,
    secrets: NO_SECRETS,
  };
  return {
    asked,
    given,
    ask: () => plugin.statistics?.(call) ?? assert.fail(),
    isAsked: () => plugin.hasStatistics?.(spec),
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('within its limit all is well; what is left is up to the limit', async () => {
  const { ask, asked, given } = world();
  given.answer = usage(4 << 20);
  const bytes = { used: String(4 << 20), total: String(LIMIT), available: String(6 << 20) };
  const inodes = { used: '7', total: undefined, available: undefined };
  assert.deepEqual(await ask(), ok({ bytes, inodes, health: [] }));
  assert.deepEqual(asked, [{ path: PATH, scope: 'tree' }]);
  given.answer = usage(LIMIT);
  const full = await ask();
  assert.deepEqual(full.ok && full.value !== 'busy' && full.value.health, []);
});

test('over its limit it is told in our own name, with both numbers', async () => {
  const { ask, given } = world();
  given.answer = usage(LIMIT + 1);
  const told = await ask();
  assert.ok(told.ok && told.value !== 'busy');
  assert.deepEqual(told.value.health, [
    {
      saidBy: 'agent',
      status: 'over-limit',
      reason: 'SizeLimitExceeded',
      message: 'it takes 10 MiB, and its sizeLimit is 10 MiB; nothing is evicted',
    },
  ]);
  assert.equal(told.value.bytes?.available, '0');
});

test('what was not counted to its end is over its limit for certain, or not known', async () => {
  const { ask, given } = world();
  given.answer = usage(2 * LIMIT, { isWhole: false });
  const over = await ask();
  assert.ok(over.ok && over.value !== 'busy');
  assert.match(over.value.health?.[0]?.message ?? '', /it takes at least 20 MiB/);
  assert.equal(over.value.inodes, undefined);
  given.answer = usage(5, { isWhole: false });
  const unknown = await ask();
  assert.deepEqual(!unknown.ok && [unknown.failure.code, unknown.failure.effect], ['too-large', 'none']);
});

test('in memory the file system says it, and keeps to it', async () => {
  for (const spec of [emptyDir('memory', LIMIT), hugePages()]) {
    const { ask, asked, given } = world(spec);
    const room = { used: 1n, total: 3n, available: 2n };
    given.answer = usage(0, { bytes: room, inodes: room });
    const numbers = { used: '1', total: '3', available: '2' };
    assert.deepEqual(await ask(), ok({ bytes: numbers, inodes: numbers, health: [] }));
    assert.deepEqual(asked, [{ path: PATH, scope: 'file-system' }]);
  }
});

test('without a limit nobody is asked', async () => {
  const { ask, asked, isAsked } = world(emptyDir('disk'));
  assert.equal(isAsked(), false);
  assert.equal(world().isAsked(), true);
  assert.deepEqual(await ask(), ok({ bytes: undefined, inodes: undefined, health: undefined }));
  assert.deepEqual(asked, []);
});

test('what takes long to count rests twenty times as long, and never more than five minutes', async () => {
  const { ask, asked, given, pass } = world();
  given.tookMs = 1_000;
  await ask();
  pass(18_000);
  assert.deepEqual(await ask(), ok('busy'));
  pass(1_000);
  given.tookMs = 30_000;
  await ask();
  pass(269_000);
  assert.deepEqual(await ask(), ok('busy'));
  pass(1_000);
  await ask();
  assert.equal(asked.length, 3);
});

test('what was not counted, as nobody had a turn for it, does not rest', async () => {
  const { ask, asked, given } = world();
  given.tookMs = 30_000;
  given.answer = fail({ code: 'deadline-passed', message: 'no turn', effect: 'none', isUnasked: true });
  await ask();
  await ask();
  assert.equal(asked.length, 2);
});

test('what is being taken down, or is gone, is not asked about and not blamed', async () => {
  const { ask, asked, given } = world();
  given.answer = fail({ code: 'path-missing', message: PATH, effect: 'none' });
  assert.deepEqual(await ask(), ok('busy'));
  given.answer = fail({ code: 'input-output', message: PATH, effect: 'none' });
  const failed = await ask();
  assert.equal(!failed.ok && failed.failure.code, 'input-output');
  given.isThere = false;
  assert.deepEqual(await ask(), ok('busy'));
  assert.equal(asked.length, 2);
});
