import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DetachClock } from '../../../../agent/source/cluster/detach-clock.ts';
import type { PodUid } from '../../../../plugins/volume.ts';
import type { Json } from '../../../kubernetes/api/api-store.ts';

const SINCE = '2026-01-01T00:00:00Z';
const UNREACHABLE = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute', timeAdded: SINCE };
const OUT_OF_SERVICE = { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute', timeAdded: SINCE };
const DELETED = { deletionTimestamp: SINCE };
const UID = 'uid-a' as PodUid;

const heard = (uid: string, value: Json) => ({ uid, resourceVersion: '1', value });

function node(status: string | undefined, taints: readonly object[] = []) {
  const other = { type: 'MemoryPressure', status: 'False' };
  const ready = { type: 'Ready', status, lastTransitionTime: SINCE };
  return heard('n', {
    spec: { taints },
    status: { conditions: status === undefined ? [other] : [other, ready] },
  });
}

function pod(status: Json = {}, metadata: Json = {}, spec: Json = {}) {
  return heard(UID, { metadata, spec: { containers: [{}], ...spec }, status });
}

const runs = { containerStatuses: [{ state: { running: {} } }] };

test('D-126: there is no clock for a Node that is Ready, nor for one that nobody has seen', () => {
  const clock = new DetachClock();
  assert.equal(clock.look({ node: undefined, pods: [] }, 0), undefined);
  assert.equal(clock.look({ node: node('True'), pods: [pod()] }, 0), undefined);
});

test('D-126: the clock says what Ready says and since when, and whether the node is out of service', () => {
  const look = (...given: Parameters<typeof node>) =>
    new DetachClock().look({ node: node(...given), pods: [] }, 7);
  const told = { sinceWallMs: Date.parse(SINCE), seenMs: 7, outOfService: false, pods: new Map() };
  assert.deepEqual(look('Unknown'), { ...told, ready: 'Unknown' });
  assert.deepEqual(look('False', [UNREACHABLE]), { ...told, ready: 'False' });
  assert.deepEqual(look('Unknown', [OUT_OF_SERVICE]), { ...told, ready: 'Unknown', outOfService: true });
  assert.deepEqual(look(undefined), { ...told, ready: 'missing', sinceWallMs: undefined });
});

test('D-126: since when it is seen begins anew once it was Ready', () => {
  const clock = new DetachClock();
  const seenMs = (status: string, nowMs: number) =>
    clock.look({ node: node(status), pods: [] }, nowMs)?.seenMs;
  assert.deepEqual(
    [seenMs('Unknown', 1), seenMs('False', 5), seenMs('True', 6), seenMs('False', 9)],
    [1, 1, undefined, 9],
  );
});

test('D-126: a pod counts until it is over, and why it still counts is told', () => {
  const demand = (one: ReturnType<typeof pod>, ...taints: readonly object[]) =>
    new DetachClock().look({ node: node('Unknown', taints), pods: [one] }, 0)?.pods.get(UID);
  const markedFromMs = Date.parse(SINCE);
  assert.deepEqual(demand(pod(runs)), { kind: 'there', markedFromMs: undefined });
  assert.deepEqual(demand(pod(runs), UNREACHABLE), { kind: 'there', markedFromMs });
  assert.deepEqual(demand(pod(runs, {}, { tolerations: [{ operator: 'Exists' }] }), UNREACHABLE), {
    kind: 'staying',
  });
  assert.deepEqual(demand(pod(runs, DELETED), UNREACHABLE), { kind: 'leaving' });
  assert.equal(demand(pod({ phase: 'Succeeded' })), undefined);
  assert.equal(demand(pod(runs, { annotations: { 'kubernetes.io/config.mirror': 'x' } })), undefined);
  // The controller takes these for ended, though their containers may run.
  assert.equal(demand(pod({ containerStatuses: [{ state: { waiting: {} } }] }, DELETED)), undefined);
  assert.equal(demand(pod({}, DELETED)), undefined);
});

test('D-126: a taint that is tolerated for longer than the controller can reckon is tolerated for good', () => {
  const demand = (seconds: string) => {
    const toleration = { operator: 'Exists', tolerationSeconds: JSON.parse(seconds) as number };
    const tolerating = pod(runs, {}, { tolerations: [toleration] });
    return new DetachClock()
      .look({ node: node('Unknown', [UNREACHABLE]), pods: [tolerating] }, 0)
      ?.pods.get(UID);
  };
  const markedFromMs = Date.parse(SINCE);
  assert.deepEqual(demand('9223372036854775807'), { kind: 'staying' });
  assert.deepEqual(demand('9223372037'), { kind: 'staying' });
  assert.deepEqual(demand('86400'), { kind: 'there', markedFromMs: markedFromMs + 86_400_000 });
  for (const none of ['0', '-1', '-9223372036854775808'])
    assert.deepEqual(demand(none), { kind: 'there', markedFromMs });
});

test('D-126: since when a pod counts no more is known for as long as the controller waits, Ready or not', () => {
  const clock = new DetachClock();
  clock.look({ node: node('True'), pods: [pod(runs)] }, 1_000);
  clock.look({ node: node('True'), pods: [] }, 2_000);
  const at = (nowMs: number, ...pods: readonly ReturnType<typeof pod>[]) =>
    clock.look({ node: node('Unknown'), pods }, nowMs)?.pods.get(UID);
  assert.deepEqual(at(3_000), { kind: 'ended', sinceMs: 2_000 });
  assert.deepEqual(at(362_000), { kind: 'ended', sinceMs: 2_000 });
  assert.equal(at(362_001), undefined);
  assert.equal(at(370_000, pod(runs))?.kind, 'there');
  assert.deepEqual(at(371_000, pod({ phase: 'Failed' })), { kind: 'ended', sinceMs: 371_000 });
  assert.equal(at(372_000, pod(runs))?.kind, 'there');
});
