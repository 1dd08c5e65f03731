/** Tokens that the API server does not renew: told while the pod still has a good one, not when it has none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinCluster } from '../../../agent/process/cluster.ts';
import type { NodeSight } from '../../../agent/source/objects-source.ts';
import type { TokenRequest } from '../../../kubernetes/objects/objects.ts';
import { done } from '../../../mount/failure.ts';
import type { PodReference } from '../../../plugins/volume.ts';
import { ApiStore, refusal, type StoredAnswer } from '../../kubernetes/api/api-store.ts';
import { handClock } from '../../kubernetes/api/hand-clock.ts';
import { storeTransport } from '../../kubernetes/api/store-transport.ts';
import { podUid } from '../manifests.ts';

const WEB: PodReference = { uid: podUid('uid-web'), name: 'web', namespace: 'shop', serviceAccount: 'cart' };
const VAULT: TokenRequest = { audience: 'vault', expirationSeconds: 3_600 };
const MINUTE_MS = 60_000;
const ENDS = '2026-01-01T01:00:00Z';

/** A node of a cluster on which a pod wants a token all the time. */
async function clusterNode() {
  const clock = handClock();
  const store = new ApiStore();
  store.put('/api/v1/nodes', { metadata: { name: 'n1' } });
  const quiet = { info: () => {}, warn: () => {}, error: () => {}, debug: () => {} };
  const transport = storeTransport(store, clock);
  const { source, tokens } = joinCluster({ host: clock, transport, nodeName: 'n1', log: quiet });
  const wish = { hasPod: true };
  tokens.onChange(() => {
    if (wish.hasPod) tokens.tokenFor(WEB, VAULT);
  });
  const sight: NodeSight = { stake: () => 'nothing', missing: () => 0, refuseStranger: async () => done };
  void source.start(sight);
  await clock.go(1_000);
  tokens.tokenFor(WEB, VAULT);
  await clock.go(MINUTE_MS);
  const rejected = () => source.current().parts.flatMap((part) => part.rejected);
  const answerTokens = (answer: StoredAnswer | undefined): void => {
    store.instead = (method) => (method === 'POST' ? answer : undefined);
  };
  return { clock, source, wish, rejected, answerTokens };
}

test('tokens that are not renewed are told while the pod still has one, and no more once they are', async () => {
  const { clock, source, rejected, answerTokens } = await clusterNode();
  const [part] = source.current().parts;
  answerTokens(refusal(403, 'tokens are forbidden'));
  await clock.go(46 * MINUTE_MS);
  assert.deepEqual(rejected(), []);
  await clock.go(3 * MINUTE_MS);
  const message = `its tokens are not renewed, and the first of them ends at ${ENDS}: tokens are forbidden (403)`;
  assert.deepEqual(rejected(), [{ origin: part?.name, subject: 'ServiceAccount shop/cart', message }]);
  answerTokens(undefined);
  await clock.go(2 * MINUTE_MS);
  assert.deepEqual(rejected(), []);
});

test('a server that fails once or twice is nothing to tell, and tokens of a pod that is gone are none', async () => {
  const { clock, wish, rejected, answerTokens } = await clusterNode();
  answerTokens({ ...refusal(503, 'busy'), retryAfter: '20' });
  let most = 0;
  for (let second = 0; second < 47 * 60 + 30; second += 10) {
    await clock.go(10_000);
    most = Math.max(most, rejected().length);
  }
  answerTokens(undefined);
  await clock.go(MINUTE_MS);
  assert.equal(most, 0);
  answerTokens(refusal(404, 'pods "web" not found'));
  wish.hasPod = false;
  await clock.go(120 * MINUTE_MS);
  assert.deepEqual(rejected(), []);
});
