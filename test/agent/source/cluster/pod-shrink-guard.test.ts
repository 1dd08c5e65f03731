import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPodShrinkGuard } from '../../../../agent/source/cluster/pod-shrink-guard.ts';
import type { PodUid } from '../../../../plugins/volume.ts';

const uids = (...names: readonly string[]): ReadonlySet<PodUid> => new Set(names as readonly PodUid[]);
const NOBODY = uids();
const listing = (said: ReadonlySet<PodUid>, listedMs = 0, droppedByList = NOBODY) => ({
  said,
  listedMs,
  droppedByList,
});

test('a pod that is deleted is gone after a second', () => {
  const guard = createPodShrinkGuard();
  guard.look(listing(uids('a')), 0);
  assert.deepEqual([...guard.look(listing(NOBODY), 100).pods], ['a']);
  assert.equal(guard.look(listing(NOBODY), 200).againMs, 1_100);
  assert.deepEqual([...guard.look(listing(NOBODY), 1_100).pods], []);
});

test('one that comes back within the second never left', () => {
  const guard = createPodShrinkGuard();
  guard.look(listing(uids('a', 'b')), 0);
  guard.look(listing(uids('b')), 100);
  guard.look(listing(uids('a', 'b')), 500);
  guard.look(listing(uids('b')), 1_200);
  assert.deepEqual([...guard.look(listing(uids('b')), 2_100).pods].sort(), ['a', 'b']);
});

test('most of four pods or more stay until a list that was asked for 10 s later says the same', () => {
  const guard = createPodShrinkGuard();
  guard.look(listing(uids('a', 'b', 'c', 'd', 'e')), 0);
  const held = guard.look(listing(uids('e')), 100);
  assert.equal(held.pods.size, 5);
  assert.deepEqual(held.massRemoval, { pods: uids('a', 'b', 'c', 'd'), sinceMs: 100, untilMs: 10_100 });
  assert.equal(guard.look(listing(uids('e'), 10_099), 60_000).pods.size, 5);
  assert.equal(guard.look(listing(uids('e'), 10_099), 60_000).isListNeeded, true);
  assert.deepEqual([...guard.look(listing(uids('e'), 10_100), 60_000).pods], ['e']);
});

test('the same pods, gone one after the other, are believed one after the other', () => {
  const guard = createPodShrinkGuard();
  guard.look(listing(uids('a', 'b', 'c', 'd', 'e')), 0);
  guard.look(listing(uids('b', 'c', 'd', 'e')), 1_000);
  assert.deepEqual([...guard.look(listing(uids('b', 'c', 'd', 'e')), 2_000).pods].sort(), [
    'b',
    'c',
    'd',
    'e',
  ]);
  guard.look(listing(uids('c', 'd', 'e')), 3_000);
  assert.equal(guard.look(listing(uids('c', 'd', 'e')), 4_000).pods.size, 3);
});

test('a list that has no pod at all is not believed at once, of one pod either', () => {
  const guard = createPodShrinkGuard();
  guard.look(listing(uids('a')), 0);
  assert.deepEqual([...guard.look(listing(NOBODY, 50, uids('a')), 100).pods], ['a']);
  assert.deepEqual([...guard.look(listing(NOBODY, 50, uids('a')), 30_000).pods], ['a']);
  assert.deepEqual([...guard.look(listing(NOBODY, 10_200), 30_100).pods], []);
});

test('what a list without pods has taken stays held, whoever is heard of before the second list', () => {
  const guard = createPodShrinkGuard();
  guard.look(listing(uids('a', 'b', 'c')), 0);
  guard.look(listing(NOBODY, 50, uids('a', 'b', 'c')), 100);
  // One of them changes, and one is new: events of the watch that follows the list.
  guard.look(listing(uids('a', 'd'), 50, uids('a', 'b', 'c')), 1_000);
  const held = guard.look(listing(uids('a', 'd'), 50, uids('a', 'b', 'c')), 9_000);
  assert.deepEqual([...held.pods].sort(), ['a', 'b', 'c', 'd']);
  assert.deepEqual(held.massRemoval?.pods, uids('b', 'c'));
  const again = guard.look(listing(uids('a', 'b', 'd'), 10_100), 10_200);
  assert.deepEqual([...again.pods].sort(), ['a', 'b', 'd']);
});

test('most of the pods stay held though as many others come', () => {
  const guard = createPodShrinkGuard();
  guard.look(listing(uids('a', 'b', 'c', 'd', 'e')), 0);
  guard.look(listing(uids('e')), 100);
  const others = uids('e', 'f', 'g', 'h', 'i', 'j');
  assert.equal(guard.look(listing(others), 5_000).pods.size, 10);
  assert.deepEqual([...guard.look(listing(others, 10_100), 10_200).pods].sort(), [...others]);
  // What has gone one by one afterwards is believed at once again.
  guard.look(listing(uids('e', 'f', 'g', 'h', 'i')), 11_000);
  assert.equal(guard.look(listing(uids('e', 'f', 'g', 'h', 'i')), 12_000).pods.size, 5);
});
