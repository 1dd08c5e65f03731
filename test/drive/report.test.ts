import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DriveReport } from '../../agent/drive/drive.ts';
import type { DriverClient } from '../../agent/drive/rig/driver-client.ts';
import { attempt } from '../../agent/drive/rig/machine.ts';
import { type DriveFlags, readOptions } from '../../agent/drive/read-options.ts';
import { withoutSecrets } from '../../agent/drive/oracle/recorded-call.ts';
import { announcedEndpoint } from '../../agent/drive/rig/registration.ts';
import { driverWords, reportDocument, sumLine, verdictLines } from '../../agent/drive/report.ts';
import { isGood, Notes, type Verdict } from '../../agent/drive/oracle/verdict.ts';
import { ok } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';

const PLAIN = { widthMax: 60, colour: false, unicode: true };
const FLAGS = { endpoint: 'unix:///run/csi.sock', size: '64Mi', deadline: '60', output: 'table' } as const;

function verdict(duty: string, write: (notes: Notes) => void, strict = false): Verdict {
  const notes = new Notes();
  write(notes);
  return { duty, title: 'title', source: 'A-001', durationMs: 1_234, ...notes.verdict(strict) };
}

const passed = verdict('stage', () => {});
const failed = verdict('stats', (notes) =>
  notes.fail('bytes: negative: \u001b[31m-1 and quite a long sentence about it'),
);
const remarked = verdict('publish', (notes) => notes.remark('unusual'));

function report(...verdicts: readonly Verdict[]): DriveReport {
  const none: ReadonlySet<number> = new Set();
  const facts = {
    services: none,
    expansion: none,
    node: new Set([1]),
    servesController: false,
    controller: none,
    topology: undefined,
  };
  const driver = { name: 'a.example', vendorVersion: '1', nodeId: 'n', ...facts };
  return { driver, verdicts, good: isGood(verdicts) };
}

test('a failure outranks what blocks, and what blocks outranks what is skipped', () => {
  const kinds = [
    verdict('x', (notes) => notes.skip('not claimed')),
    verdict('x', (notes) => [notes.skip('not claimed'), notes.blocked('no volume')]),
    verdict('x', (notes) => [notes.blocked('no volume'), notes.fail('broken')]),
  ].map(({ kind }) => kind);
  assert.deepEqual(kinds, ['skipped', 'blocked', 'fail']);
  assert.equal(isGood([verdict('x', (notes) => notes.skip('not claimed'))]), true);
  assert.equal(isGood([verdict('x', (notes) => notes.blocked('no volume'))]), false);
});

test('remarks are failures only for who wants it strict', () => {
  assert.equal(remarked.kind, 'pass');
  assert.equal(verdict('publish', (notes) => notes.remark('unusual'), true).kind, 'fail');
});

test('what a driver says is shown below its verdict, within the width and without control characters', () => {
  const [row = '', ...below] = verdictLines(failed, PLAIN);
  assert.match(row, /^stats +FAIL +1s {2}title \(A-001\)$/);
  assert.ok(below.length > 1 && below.every((line) => line.length <= 62), below.join('\n'));
  assert.ok(below.join('').includes('\\u001b[31m-1'));
  assert.match(verdictLines(remarked, PLAIN)[1] ?? '', /~ unusual/);
});

test('SE-21: what a driver calls itself is shown without control characters', () => {
  const { driver, ...rest } = report(passed);
  const evil = { ...rest, driver: { ...driver, vendorVersion: '1\u001b]0;x\u0007\n' } };
  assert.equal(driverWords(evil, 7, PLAIN), 'a.example 1\\u001b]0;x\\u0007\\u000a, seed 7');
});

test('the sum says how many, and JSON says the same', () => {
  const all = report(passed, failed, remarked);
  assert.equal(sumLine(all, PLAIN), '2 passed, 1 failed, 0 skipped, 1 remarks');
  const document = JSON.parse(JSON.stringify(reportDocument(all, 7)));
  assert.deepEqual(document.counts, { pass: 2, fail: 1, blocked: 0, skipped: 0 });
  assert.equal(document.good, false);
  assert.deepEqual(document.driver.nodeCapabilities, [1]);
  assert.equal(document.verdicts[1].verdict, 'fail');
});

test('options are read as they are meant', () => {
  const reading = readOptions(
    {
      ...FLAGS,
      accessMode: 'single-node-multi-writer',
      attribute: ['a=b=c'],
      only: ['stage,stats', 'publish'],
    },
    ['driver', '--flag'],
    ok('stage: {password: "1234"}\n'),
    5,
  );
  assert.ok(reading.ok);
  const { accessMode, attributes, only, secrets, seed, sizeBytes, deadlineMs, endpoint } = reading.value;
  assert.deepEqual(
    [accessMode, seed, sizeBytes, deadlineMs, endpoint],
    [7, 5, 2n ** 26n, 60_000, '/run/csi.sock'],
  );
  assert.deepEqual([attributes, only], [{ a: 'b=c' }, ['stage', 'stats', 'publish']]);
  assert.deepEqual({ ...secrets.stage }, { password: '1234' });
});

test('what is out of its bounds is refused by flag, value and what would be right', () => {
  const refused = (flags: Partial<DriveFlags>): string => {
    const reading = readOptions({ ...FLAGS, ...flags }, [], undefined, 1);
    assert.ok(!reading.ok, JSON.stringify(flags));
    return reading.problems.join('; ');
  };
  assert.equal(refused({ deadline: '0' }), '--deadline 0 must be a whole number from 1 to 3600');
  assert.equal(refused({ deadline: '3601' }), '--deadline 3601 must be a whole number from 1 to 3600');
  assert.equal(refused({ deadline: '1.5' }), '--deadline 1.5 must be a whole number from 1 to 3600');
  assert.equal(refused({ seed: '-1' }), '--seed -1 must be a whole number from 0 to 4294967295');
  assert.equal(refused({ size: '0' }), '--size 0 must be a size above 0 such as 64Mi');
  const long = `/run/${'x'.repeat(110)}`;
  assert.match(refused({ endpoint: long }), /^--endpoint \/run\/x+… must have at most 107 bytes/);
});

test('a secret is found in every form in which the agent looks for it', () => {
  const secret = 'pass/word+1';
  const bytes = Buffer.from(secret);
  const forms = [secret, bytes.toString('hex'), bytes.toString('base64url'), encodeURIComponent(secret)];
  for (const form of forms) {
    const { message, found } = withoutSecrets(`mount: bad option ${form}`, [secret]);
    assert.deepEqual({ message, found }, { message: 'mount: bad option [redacted]', found: true }, form);
  }
  assert.equal(withoutSecrets('mount: bad option', [secret]).found, false);
});

test('a registration with an endpoint that is no absolute path is refused, and said so', async () => {
  const reply = {
    type: 'CSIPlugin',
    name: 'a.example',
    endpoint: 'run/csi.sock',
    supportedVersions: ['1.0.0'],
  };
  const client = { call: async () => ({ ok: true, reply }), leaks: new Set(), count: () => 1 };
  const notes = new Notes();
  const socket = '/run/reg.sock' as AbsolutePath;
  assert.equal(await announcedEndpoint(client as unknown as DriverClient, socket, notes), undefined);
  assert.deepEqual(notes.failures, ['GetInfo: endpoint "run/csi.sock" must be a plain absolute path']);
});

test('work that was too late is told so, and does not go on to its next step', async () => {
  const done: string[] = [];
  let letGo: () => void = () => {};
  let ended: Promise<void> = Promise.resolve();
  const answer = await attempt((late) => {
    const work = async (): Promise<void> => {
      await new Promise<void>((resolve) => {
        letGo = resolve;
      });
      late.throwIfAborted();
      done.push('written');
    };
    ended = work();
    return ended;
  }, 1);
  assert.deepEqual(answer, { ok: false, errno: 'ETIMEDOUT' });
  letGo();
  await assert.rejects(ended);
  assert.deepEqual(done, []);
});

test('a secrets file is refused without a word of it', () => {
  for (const text of [
    'stage: [hunter2]',
    'staging: {a: hunter2}',
    'stage: {a: 12}',
    '- hunter2',
    '{"a": hunter2',
  ]) {
    const reading = readOptions(FLAGS, [], ok(text), 1);
    assert.ok(!reading.ok, text);
    assert.ok(!reading.problems.join().includes('hunter2'), reading.problems.join());
  }
});
