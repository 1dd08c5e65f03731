import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format, inspect } from 'node:util';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';

const CANARY = 'CANARY-51c0';
const secret = new Sensitive({ password: CANARY });

test('a sensitive value opens only when it is asked to', () => {
  assert.deepEqual(secret.reveal(), { password: CANARY });
});

test('however it is printed, logged, joined or inspected, a sensitive value does not show', () => {
  const wrapped = { deep: [{ secret }] };
  const printed = [
    String(secret),
    `${secret}`,
    JSON.stringify(secret),
    JSON.stringify(wrapped),
    inspect(secret),
    format('%o %O %j %s', wrapped, wrapped, wrapped, secret),
    inspect(wrapped, { depth: 9, showHidden: true, getters: true, customInspect: true }),
    inspect(wrapped, { depth: 9, showHidden: true, customInspect: false }),
    [secret].join(),
    Object.keys(secret).join(),
    JSON.stringify(Object.entries(secret)),
    JSON.stringify({ ...secret }),
    new Error(`failed: ${secret}`).stack ?? '',
  ];
  for (const text of printed) assert.ok(!text.includes(CANARY), text);
  assert.deepEqual([printed[0], printed[2]], ['[redacted]', '"[redacted]"']);
});

test('a failed assertion about a sensitive value does not show it', () => {
  const thrown = (() => {
    try {
      assert.deepEqual(secret, new Sensitive({ password: 'other' }));
      assert.equal(secret, undefined);
    } catch (error) {
      return inspect(error, { depth: 9 });
    }
    return '';
  })();
  assert.notEqual(thrown, '');
  assert.doesNotMatch(thrown, new RegExp(CANARY));
});

test('a structured clone, as for another thread, carries nothing', () => {
  assert.deepEqual(structuredClone({ ...secret }), {});
});
