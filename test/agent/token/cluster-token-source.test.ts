import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { createClusterTokenSource } from '../../../agent/token/cluster-token-source.ts';
import type { TokenRequest } from '../../../kubernetes/objects/objects.ts';
import type { PodReference } from '../../../plugins/volume.ts';
import { ApiStore, refusal } from '../../kubernetes/api/api-store.ts';
import { handClock } from '../../kubernetes/api/hand-clock.ts';
import { storeTransport } from '../../kubernetes/api/store-transport.ts';
import { podUid } from '../manifests.ts';

const WEB: PodReference = { uid: podUid('uid-web'), name: 'web', namespace: 'shop', serviceAccount: 'cart' };
const VAULT: TokenRequest = { audience: 'vault', expirationSeconds: 3_600 };
const MINUTE_MS = 60_000;

/** `readMs`: so long after each change the wish is read again, as by the agent, while it has the pod. */
function world(readMs = 0) {
  const clock = handClock();
  const store = new ApiStore();
  const source = createClusterTokenSource({ host: clock, transport: storeTransport(store, clock) });
  const wish = { hasPod: true };
  let changes = 0;
  const tokenOf = (): string | undefined => {
    const answer = source.tokenFor(WEB, VAULT);
    return answer.kind === 'token' ? answer.token.reveal() : undefined;
  };
  source.onChange(() => {
    changes += 1;
    clock.timer(readMs, () => {
      if (wish.hasPod) tokenOf();
    });
  });
  return { clock, store, source, wish, tokenOf, asked: () => store.asked.length, changes: () => changes };
}

test('a token is asked for once, told of, and then at hand', async () => {
  const { clock, source, store, tokenOf, asked, changes } = world();
  const first = source.tokenFor(WEB, VAULT);
  assert.equal(first.kind === 'none' && first.failure.code, 'token-missing');
  tokenOf();
  await clock.settle();
  assert.match(tokenOf() ?? '', /^head\./);
  assert.deepEqual([asked(), changes()], [1, 1]);
  assert.deepEqual(store.asked, ['POST /api/v1/namespaces/shop/serviceaccounts/cart/token']);
});

test('another one at 80 % of its life, while somebody wants it', async () => {
  const { clock, tokenOf, asked } = world();
  tokenOf();
  await clock.settle();
  const first = tokenOf();
  await clock.go(47 * MINUTE_MS);
  assert.deepEqual([tokenOf(), asked()], [first, 1]);
  await clock.go(2 * MINUTE_MS);
  assert.equal(asked(), 2);
});

for (const isIssued of [true, false])
  test(`a pod that is gone costs one more request at most, ${isIssued ? 'with a token' : 'without one'}`, async () => {
    const { clock, store, wish, tokenOf, asked, changes } = world();
    if (!isIssued) store.instead = () => refusal(404, 'serviceaccounts "cart" not found');
    tokenOf();
    await clock.go(10 * MINUTE_MS);
    assert.equal(tokenOf() !== undefined, isIssued);
    wish.hasPod = false;
    store.instead = () => refusal(404, 'pods "web" not found');
    const before = asked();
    await clock.go(50 * MINUTE_MS);
    assert.ok(asked() - before <= 1, `${asked() - before} requests after its end`);
    const [askedLast, changesLast] = [asked(), changes()];
    await clock.go(240 * MINUTE_MS);
    assert.deepEqual([asked(), changes()], [askedLast, changesLast]);
  });

test('a wish that takes long to be read still wants its token while none can be had', async () => {
  const { clock, store, tokenOf, asked } = world(20_000);
  tokenOf();
  await clock.go(MINUTE_MS);
  const first = tokenOf();
  store.instead = () => refusal(403, 'tokens are forbidden');
  await clock.go(50 * MINUTE_MS);
  assert.ok(asked() > 1 && asked() < 12, `${asked()} requests`);
  assert.equal(tokenOf(), first);
});

test('while no newer one can be had the old one is answered until it expires, and then none', async () => {
  const { clock, store, source, tokenOf, asked } = world();
  tokenOf();
  await clock.settle();
  const first = tokenOf();
  store.instead = () => refusal(403, 'tokens are forbidden');
  await clock.go(55 * MINUTE_MS);
  assert.equal(tokenOf(), first);
  assert.ok(asked() > 2 && asked() < 30, `${asked()} requests`);
  await clock.go(6 * MINUTE_MS);
  const answer = source.tokenFor(WEB, VAULT);
  assert.match(
    answer.kind === 'none' ? answer.failure.message : '',
    /shop\/cart .* tokens are forbidden \(403\)/,
  );
});

test('the clock of the machine set back: whoever wants a token has another one at once', async () => {
  const { clock, tokenOf, asked } = world();
  tokenOf();
  await clock.settle();
  const first = tokenOf();
  clock.setWall(-2 * MINUTE_MS);
  tokenOf();
  await clock.settle();
  assert.equal(asked(), 2);
  assert.ok(![undefined, first].includes(tokenOf()));
});

test('the clock of the machine is ahead by more than a life: tokens are had, and newer ones in time', async () => {
  const { clock, tokenOf, asked } = world();
  clock.setWall(120 * MINUTE_MS);
  tokenOf();
  await clock.settle();
  const first = tokenOf();
  assert.match(first ?? '', /^head\./);
  await clock.go(47 * MINUTE_MS);
  assert.deepEqual([tokenOf(), asked()], [first, 1]);
  await clock.go(2 * MINUTE_MS);
  assert.equal(asked(), 2);
});

test('the clock of the machine is days behind: none is shown for longer than the server says it lives', async () => {
  const { clock, tokenOf, asked } = world();
  clock.setWall(-3 * 24 * 60 * MINUTE_MS);
  tokenOf();
  await clock.go(49 * MINUTE_MS);
  assert.equal(asked(), 2);
});

test('the clock is set, or the machine slept: whoever has a token has another one within a minute', async () => {
  for (const byMs of [120 * MINUTE_MS, -120 * MINUTE_MS]) {
    const { clock, tokenOf, asked } = world();
    tokenOf();
    await clock.go(MINUTE_MS);
    const first = tokenOf();
    clock.setWall(byMs);
    await clock.go(MINUTE_MS);
    assert.equal(asked(), 2);
    assert.ok(![undefined, first].includes(tokenOf()));
  }
});

test('one that has died on its way is not shown', async () => {
  const { clock, store, source, tokenOf } = world();
  const status = { token: 'head.body.sign', expirationTimestamp: '2026-01-01T00:00:00Z' };
  store.instead = () => ({
    status: 201,
    body: { kind: 'TokenRequest', spec: { expirationSeconds: 0 }, status },
  });
  tokenOf();
  await clock.settle();
  const answer = source.tokenFor(WEB, VAULT);
  assert.match(answer.kind === 'none' ? answer.failure.message : '', /has expired/);
});

test('no token is shown by what holds it', async () => {
  const { clock, source, tokenOf } = world();
  tokenOf();
  await clock.settle();
  const token = tokenOf() ?? assert.fail();
  assert.ok(!inspect(source, { depth: 9, showHidden: true }).includes(token));
  assert.ok(!JSON.stringify(source.tokensFor(WEB, [VAULT])).includes(token));
});
