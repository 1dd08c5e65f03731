/** The executor with operations that are no volume's: what a controller does with claims. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createExecutor, type Outcome } from '../../../reconciler/run/executor.ts';
import type { OperationTraits } from '../../../reconciler/run/operation-traits.ts';
import { createBenchHost, settled } from '../bench-host.ts';

interface ClaimOperation {
  readonly verb: 'provision' | 'bind' | 'delete';
  readonly claim: string;
}

/** The handle of what was made. */
type Handle = string;

const CLAIM_TRAITS: OperationTraits<ClaimOperation, string> = {
  subject: ({ claim }) => claim,
  conflicts: (a, b) =>
    a.claim === b.claim && (a.verb === 'delete' || b.verb === 'delete' || a.verb === b.verb),
  setbackKey: ({ verb }) => verb,
  climbs: ({ verb }) => verb !== 'delete',
  ends: () => [],
};

const FAILED: Outcome<Handle> = {
  kind: 'failed',
  failure: { code: 'driver-failed', message: '', effect: 'unknown' },
};

function bench(perform: (operation: ClaimOperation) => Outcome<Handle> | Promise<Outcome<Handle>>) {
  const host = createBenchHost();
  const made: Handle[] = [];
  const retried: string[] = [];
  const executor = createExecutor<ClaimOperation, Handle, string>({
    traits: CLAIM_TRAITS,
    clock: host,
    backOff: { firstMs: 500, maxMs: 8_000 },
    laneOf: () => 'api',
    laneWidth: () => 4,
    isStillWanted: ({ claim }) => claim !== 'gone',
    perform: async (operation) => perform(operation),
    onFinished: ({ outcome }) => {
      if (outcome.kind === 'done') made.push(outcome.learnt);
    },
    onStep: () => {},
    onRetry: (claim) => retried.push(claim),
  });
  return { host, executor, made, retried };
}

test('what a foreign operation learnt reaches its owner, and what is not wanted any more is not done', async () => {
  const { executor, made } = bench(({ claim }) => ({ kind: 'done', learnt: `vol-${claim}` }));
  for (const claim of ['a', 'gone', 'b']) executor.submit({ verb: 'provision', claim });
  await settled();
  assert.deepEqual(made, ['vol-a', 'vol-b']);
  assert.deepEqual(executor.inFlight(), []);
});

test('foreign operations conflict by their own rule, and only within their subject', async () => {
  const { executor } = bench(() => new Promise(() => {}));
  const submit = (verb: ClaimOperation['verb'], claim: string) => executor.submit({ verb, claim }).kind;
  assert.equal(submit('provision', 'a'), 'started');
  assert.deepEqual(
    [submit('bind', 'a'), submit('delete', 'a'), submit('delete', 'b')],
    ['started', 'busy', 'started'],
  );
  assert.deepEqual(
    executor.inFlightOf('a').map(({ operation: { verb } }) => verb),
    ['provision', 'bind'],
  );
});

test('foreign failures back off by their own key, and that of the way up is reset alone', async () => {
  const { host, executor, retried } = bench(() => FAILED);
  const submit = (verb: ClaimOperation['verb']) => executor.submit({ verb, claim: 'a' }).kind;
  submit('provision');
  await settled();
  assert.deepEqual([submit('provision'), submit('delete')], ['backing-off', 'started']);
  await settled();
  executor.resetBackOff('a', 'climbs');
  assert.deepEqual([submit('delete'), submit('provision')], ['backing-off', 'started']);
  await settled();
  await host.advance(600);
  assert.deepEqual([...new Set(retried)], ['a']);
});
