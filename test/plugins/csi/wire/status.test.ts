import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FailureCode } from '../../../../mount/failure.ts';
import { failureOf, type NotOk } from '../../../../plugins/csi/wire/status.ts';
import { Sensitive } from '../../../../plugins/secret/sensitive.ts';

const said = (status: number, message = 'no'): NotOk => ({ kind: 'status', status, message });
const climbing = { driver: 'd', method: 'NodeStageVolume', direction: 'climbing', secrets: [] } as const;
const teardown = { ...climbing, method: 'NodeUnstageVolume', direction: 'teardown' } as const;

/** Code by status; those whose climbing failure proves that nothing happened are marked. */
const TABLE: readonly (readonly [status: number, code: FailureCode, climbing: 'none' | 'unknown'])[] = [
  [0, 'driver-failed', 'unknown'],
  [1, 'driver-deadline', 'unknown'],
  [2, 'driver-failed', 'unknown'],
  [3, 'driver-refused', 'none'],
  [4, 'driver-deadline', 'unknown'],
  [5, 'driver-not-found', 'none'],
  [6, 'driver-conflict', 'unknown'],
  [7, 'driver-refused', 'none'],
  [8, 'driver-exhausted', 'unknown'],
  [9, 'driver-precondition', 'none'],
  [10, 'driver-busy', 'unknown'],
  [11, 'driver-refused', 'none'],
  [12, 'driver-unimplemented', 'none'],
  [13, 'driver-failed', 'unknown'],
  [14, 'driver-unreachable', 'unknown'],
  [15, 'driver-failed', 'unknown'],
  [16, 'driver-refused', 'none'],
  [17, 'driver-failed', 'unknown'],
];

for (const [status, code, effect] of TABLE) {
  test(`GR-02, GR-03, GR-04, GR-07: status ${status} is ${code}, effect ${effect}, unknown in teardown`, () => {
    const up = failureOf(said(status), climbing);
    assert.deepEqual([up.code, up.effect], [code, effect]);
    const down = failureOf(said(status), teardown);
    assert.deepEqual([down.code, down.effect], [code, 'unknown']);
  });
}

test('GR-02: what broke on our side proves nothing in either direction', () => {
  const codes = {
    unreachable: 'driver-unreachable',
    deadline: 'driver-deadline',
    undecodable: 'driver-answer-invalid',
  } as const;
  for (const because of ['unreachable', 'deadline', 'undecodable'] as const) {
    for (const context of [climbing, teardown]) {
      const failure = failureOf({ kind: 'broken', because, message: '' }, context);
      assert.deepEqual([failure.code, failure.effect], [codes[because], 'unknown']);
    }
  }
});

test('the message says who, what and which status', () => {
  assert.equal(
    failureOf(said(9, 'not staged'), climbing).message,
    'd NodeStageVolume: FAILED_PRECONDITION: not staged',
  );
});

test('GR-08: a message of a mebibyte, cut in the middle of a character, is at most a kibibyte of good text', () => {
  for (const text of [
    'x'.repeat(1_048_576),
    'ä'.repeat(524_288),
    '😀'.repeat(300_000),
    '\u{1}'.repeat(10_000),
  ]) {
    const { message } = failureOf(said(2, text), climbing);
    assert.ok(Buffer.byteLength(message) <= 1_024, `${Buffer.byteLength(message)} bytes`);
    assert.ok(!message.includes('\uFFFD'));
  }
});

test('GR-08: control bytes and what turns text around are shown, not sent to the terminal', () => {
  const { message } = failureOf(said(2, 'a\x1b[2Jb\r\nc\u202ed\x7f'), climbing);
  assert.equal(message, 'd NodeStageVolume: UNKNOWN: a\\u001b[2Jb\\u000d\\u000ac\\u202ed\\u007f');
});

test('INV-25: no form of a secret value survives in the message', () => {
  const canary = 'c4nary/"pass\\word"+=';
  const pem = '-----BEGIN-----\nQUJDREVGR0hJSktM\n-----END-----\n';
  const secrets = [new Sensitive({ password: canary, key: pem }), undefined];
  const bytes = Buffer.from(canary);
  const shown = [
    canary,
    JSON.stringify(canary),
    bytes.toString('base64'),
    bytes.toString('base64url'),
    bytes.toString('hex'),
    encodeURIComponent(canary),
    Buffer.from(pem).toString('base64'),
    'QUJDREVGR0hJSktM',
    pem.trim(),
  ];
  for (const form of shown) {
    const { message } = failureOf(said(13, `mount -o x=${form} failed`), { ...climbing, secrets });
    assert.ok(message.includes('[redacted]'), message);
    for (const one of [...shown, 'c4nary']) assert.ok(!message.includes(one), message);
  }
});

test('what broke is told in our own words, whatever is secret', () => {
  const broken: NotOk = { kind: 'broken', because: 'unreachable', message: 'connect ECONNREFUSED' };
  const secrets = [new Sensitive({ password: 'connect' })];
  for (const mayHoldOthers of [false, true]) {
    const { message } = failureOf(broken, { ...climbing, secrets, mayHoldOthers });
    assert.equal(message, 'd NodeStageVolume: unreachable: connect ECONNREFUSED');
  }
});

test('INV-25: a secret at the cut is taken out before the message is cut', () => {
  const secrets = [new Sensitive({ password: 'canary-canary' })];
  const { message } = failureOf(said(13, `${'x'.repeat(985)}canary-canary`), { ...climbing, secrets });
  assert.ok(!message.includes('can'), message.slice(-40));
});

test('a secret of three characters is left alone, because it would garble ordinary words', () => {
  const secrets = [new Sensitive({ pin: 'the' })];
  assert.match(failureOf(said(13, 'the other'), { ...climbing, secrets }).message, /the other$/);
});
