/** One entry of mountOptions may be several options; who refuses one of them names it, or its value, alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hiddenFrom } from '../../../../plugins/csi/call/hidden-words.ts';
import { sayable } from '../../../../plugins/csi/wire/status.ts';
import { NO_SECRETS } from '../../../../plugins/plugin.ts';
import { SPEC } from '../csi-world.ts';

function said(text: string, option: string): string {
  const spec = { ...SPEC, mountOptions: [option] };
  const memory = { of: () => [], knows: () => true };
  return sayable(text, hiddenFrom(memory, { spec, secrets: NO_SECRETS, facts: {} }));
}

const ENTRIES = [
  'allow_other,password=c4nary-w0rd,uid=1000',
  'password=c4nary-w0rd uid=1000',
  'uid=1000;password=c4nary-w0rd;ro',
  '--password c4nary-w0rd --uid 1000',
  '--uid 1000 --password c4nary-w0rd',
  '-o uid=1000,password=c4nary-w0rd,allow_other',
  '-o password=c4nary-w0rd --uid 1000',
  'password:c4nary-w0rd,uid:1000',
  'password: c4nary-w0rd, uid: 1000',
  'uid=1000,c=c4nary-w0rd,ro',
  'password="c4nary-w0rd",uid=1000',
];

for (const option of ENTRIES) {
  test(`A-021: a secret in the mount options ${option} is told neither alone nor by its name`, () => {
    assert.equal(said('login with c4nary-w0rd failed', option), 'login with [redacted] failed');
    assert.equal(said('mount: the uid is 1000', option), 'mount: the uid is 1000');
    for (const word of option.split(/[,;\s]+/)) assert.doesNotMatch(said(`'${word}' is bad`, option), /w0rd/);
    assert.doesNotMatch(said(`mount -o ${option}: failed`, option), /c4nary|w0rd/);
  });
}

const SPACED: readonly (readonly [option: string, value: string])[] = [
  ['password =hunter2', 'hunter2'],
  ['password = hunter2', 'hunter2'],
  ['password\thunter2', 'hunter2'],
  ['uid=1000 password :hunter2', 'hunter2'],
  ['--password == hunter2', 'hunter2'],
  ['--password ==hunter2', '=hunter2'],
  ['--password :abc=def', 'abc=def'],
  ['--password abc=d4nary', 'd4nary'],
  ['password = c:d4nary', 'd4nary'],
  ['password = -hunt', '-hunt'],
  ['password = s3cr:', 's3cr:'],
  ['password = pw:xray zulu', 'xray zulu'],
  ['password = pw:xray zulu', 'zulu'],
  ['password = user : hunter2', 'hunter2'],
  ['password = user :hunter2', 'hunter2'],
  ['password = user == hunter2', 'hunter2'],
];

for (const [option, value] of SPACED) {
  test(`A-021: ${value} in the mount options ${JSON.stringify(option)} is not told, wherever its sign is`, () => {
    assert.equal(said(`not ${value} here`, option), 'not [redacted] here');
    assert.equal(said('the uid is 1000', option), 'the uid is 1000');
    assert.equal(said('one = two', option), 'one = two');
  });
}

const PIECES: readonly (readonly [option: string, pieces: readonly string[]])[] = [
  ['-o a=b,password=one1,two2,uid=1000', ['one1', 'two2', 'one1,two2', 'one1,two2,uid=1000']],
  ['password=one;two,uid=1000', ['one;two', 'one;two,uid=1000']],
  ['ro,password=abc,de,uid=1000', ['abc,de']],
  ['--password one1 two2,uid=1000', ['one1', 'two2', 'one1 two2', 'one1 two2,uid=1000']],
  ['--key c4n= --uid 1000', ['c4n=', '--key c4n=']],
  ['uid=1000,password=p4s,ro', ['password=p4s']],
  ['--password p4s --uid 1000', ['--password p4s']],
];

for (const [option, pieces] of PIECES) {
  test(`A-021: a value with a comma or a space in the mount options ${option} is told neither in part`, () => {
    for (const piece of pieces) assert.equal(said(`not ${piece}: bad`, option), 'not [redacted]: bad');
    assert.equal(said('the uid is 1000', option), 'the uid is 1000');
  });
}

test('A-021: options that are several flags, or short and not secret by their names, are told', () => {
  assert.equal(said('allow_other is not allowed', 'ro,allow_other'), 'allow_other is not allowed');
  assert.equal(said('allow_other is not allowed', 'pass-through,allow_other'), 'allow_other is not allowed');
  assert.equal(said('--uid is not known', '--password c4nary --uid 1000'), '--uid is not known');
});
