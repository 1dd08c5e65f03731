import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCallLanes, type Sharing } from '../../../../plugins/csi/call/volume-call-queue.ts';

/** Calls that end when told; what runs is in `running`. */
function bench() {
  const lanes = createCallLanes();
  const running: string[] = [];
  const end = new Map<string, () => void>();
  const call = (key: string, name: string, sharing: Sharing, atEnd = () => {}) =>
    lanes.run(key, sharing, async () => {
      running.push(name);
      await new Promise<void>((resolve) => end.set(name, resolve));
      running.splice(running.indexOf(name), 1);
      atEnd();
      return name;
    });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const finish = async (name: string) => {
    end.get(name)?.();
    await settled();
  };
  return { lanes, running, call, finish, settled };
}

test('A-030: calls of one volume run one at a time, in the order they came; other volumes do not wait', async () => {
  const { lanes, running, call, finish, settled } = bench();
  void call('v', '1', 'alone');
  void call('v', '2', 'alone');
  void call('w', '3', 'alone');
  await settled();
  assert.deepEqual(running, ['1', '3']);
  await finish('1');
  assert.deepEqual(running, ['3', '2']);
  await finish('2');
  await finish('3');
  assert.equal(lanes.size(), 0);
});

test('shared calls overlap, never with one that is alone, and none overtakes', async () => {
  const { lanes, running, call, finish, settled } = bench();
  void call('v', 'a', 'shared');
  void call('v', 'b', 'shared');
  void call('v', 'X', 'alone');
  void call('v', 'c', 'shared');
  await settled();
  assert.deepEqual(running, ['a', 'b']);
  await finish('a');
  assert.deepEqual(running, ['b']);
  await finish('b');
  assert.deepEqual(running, ['X']);
  await finish('X');
  assert.deepEqual(running, ['c']);
  await finish('c');
  assert.equal(lanes.size(), 0);
});

test('a lane made serial stays so until it is empty', async () => {
  const { lanes, running, call, finish, settled } = bench();
  void call('v', 'a', 'shared', () => lanes.serialise('v'));
  void call('v', 'X', 'alone');
  void call('v', 'b', 'shared');
  void call('v', 'c', 'shared');
  await settled();
  await finish('a');
  await finish('X');
  assert.deepEqual(running, ['b']);
  await finish('b');
  assert.deepEqual(running, ['c']);
  await finish('c');
  void call('v', 'd', 'shared');
  void call('v', 'e', 'shared');
  await settled();
  assert.deepEqual(running, ['d', 'e']);
  await finish('d');
  await finish('e');
  assert.equal(lanes.size(), 0);
});

test('a call that throws frees its lane', async () => {
  const { lanes } = bench();
  await assert.rejects(lanes.run('v', 'alone', () => Promise.reject(new Error('broken'))));
  assert.equal(await lanes.run('v', 'alone', async () => 'next'), 'next');
  assert.equal(lanes.size(), 0);
});

test('A-076: a question is not asked while a call of its volume runs or waits, and does not wait for it', async () => {
  const { lanes, running, call, finish, settled } = bench();
  void call('v', 'stage', 'alone');
  void call('v', 'publish', 'shared');
  await settled();
  assert.equal(await lanes.tryRun('v', async () => 'asked'), 'busy');
  assert.deepEqual(running, ['stage']);
  await finish('stage');
  assert.equal(await lanes.tryRun('v', async () => 'asked'), 'busy');
  await finish('publish');
  assert.equal(await lanes.tryRun('v', async () => 'asked'), 'asked');
  assert.equal(lanes.size(), 0);
});

test('A-030, A-076: nothing of the volume goes beside a question, not even a second question', async () => {
  const { lanes, running, call, finish, settled } = bench();
  let end = () => {};
  const asked = lanes.tryRun('v', () => new Promise<string>((resolve) => (end = () => resolve('fine'))));
  void call('v', 'unpublish', 'shared');
  void call('w', 'other', 'alone');
  await settled();
  assert.deepEqual(running, ['other']);
  assert.equal(await lanes.tryRun('v', async () => 'second'), 'busy');
  end();
  assert.equal(await asked, 'fine');
  await settled();
  assert.deepEqual(running, ['other', 'unpublish']);
  await finish('unpublish');
  await finish('other');
  assert.equal(lanes.size(), 0);
});

test('a call is told whether another ran beside it at any time', async () => {
  const lanes = createCallLanes();
  const company: Record<string, boolean> = {};
  const ends = new Map<string, () => void>();
  const call = (name: string) =>
    lanes.run('v', 'shared', async (own) => {
      await new Promise<void>((resolve) => ends.set(name, resolve));
      company[name] = own.hadCompany;
    });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const all = [call('long')];
  await settled();
  all.push(call('short'));
  await settled();
  ends.get('short')?.();
  await settled();
  ends.get('long')?.();
  await settled();
  all.push(call('late'));
  await settled();
  ends.get('late')?.();
  await Promise.all(all);
  assert.deepEqual(company, { short: true, long: true, late: false });
});
