import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiTally } from '../../../agent/timing/api-tally.ts';
import type { ApiResult } from '../../../kubernetes/api/api-failure.ts';
import type { ApiRequest, WatchListener } from '../../../kubernetes/api/api-transport.ts';
import { readExposition } from '../metrics/exposition.ts';

function world() {
  let nowMs = 0;
  let next: ApiResult<unknown> = { ok: true, value: {} };
  const listeners: WatchListener[] = [];
  const tally = createApiTally({ nowMs: () => nowMs });
  const transport = tally.counted({
    server: 'https://a.test',
    async request() {
      nowMs += 200;
      return next;
    },
    watch(_, listener) {
      listeners.push(listener);
      return () => {};
    },
    close() {},
  });
  const limits = { answerBytesMax: 1, deadlineMs: 1 };
  return {
    ask: async (method: ApiRequest['method'], path: string, answer: ApiResult<unknown> = next) => {
      next = answer;
      await transport.request({ method, path, ...limits });
    },
    watch: (path: string, told: string[]) =>
      transport.watch(
        { path, lineBytesMax: 1, deadlineMs: 1 },
        {
          opened: () => void told.push('opened'),
          line: () => void told.push('line'),
          ended: () => void told.push('ended'),
        },
      ),
    listeners,
    later(ms: number): void {
      nowMs += ms;
    },
    seen: (of: string) =>
      readExposition(tally.text())
        .samples.filter(({ name }) => name === of)
        .map(({ labels, value }) => [...Object.values(labels), value]),
  };
}

const failed = (code: 'denied' | 'unreachable'): ApiResult<unknown> => {
  return { ok: false, failure: { code, message: 'no', effect: 'none' } };
};

test('requests are counted by verb, resource and what became of them, and no object’s name is told', async () => {
  const { ask, seen } = world();
  await ask('GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn&limit=500');
  await ask('GET', '/api/v1/namespaces/shop/persistentvolumeclaims/data');
  await ask('GET', '/apis/storage.k8s.io/v1/volumeattachments/csi-1', failed('denied'));
  await ask('POST', '/api/v1/namespaces/shop/serviceaccounts/s/token', failed('unreachable'));
  await ask('PATCH', '/api/v1/nodes/n/status', { ok: true, value: {} });
  await ask('PATCH', '/api/v1/nodes/n/status');
  assert.deepEqual(seen('mooring_api_requests_total'), [
    ['list', 'pods', 'ok', 1],
    ['get', 'persistentvolumeclaims', 'ok', 1],
    ['get', 'volumeattachments', 'denied', 1],
    ['create', 'serviceaccounts/token', 'unreachable', 1],
    ['patch', 'nodes/status', 'ok', 2],
  ]);
  assert.deepEqual(seen('mooring_in_use_report_seconds_count'), [[2]]);
  assert.deepEqual(seen('mooring_in_use_report_seconds_sum'), [[0.4]]);
});

test('of a resource the quietest watch is told, until it has ended or is not listened to any more', async () => {
  const { watch, listeners, later, seen } = world();
  const told: string[] = [];
  const cancel = watch('/api/v1/namespaces/shop/secrets?watch=1', told);
  watch('/api/v1/namespaces/shop/secrets?watch=1', told);
  later(4_000);
  listeners[1]?.opened();
  listeners[1]?.line({});
  later(1_000);
  assert.deepEqual(seen('mooring_api_watch_age_seconds'), [['secrets', 5]]);
  cancel();
  assert.deepEqual(seen('mooring_api_watch_age_seconds'), [['secrets', 1]]);
  listeners[1]?.ended(undefined);
  assert.deepEqual(seen('mooring_api_watch_age_seconds'), []);
  assert.deepEqual(told, ['opened', 'line', 'ended']);
  assert.deepEqual(seen('mooring_api_requests_total'), [['watch', 'secrets', 'ok', 2]]);
});
