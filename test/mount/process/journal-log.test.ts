import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog, type JournalLogParts } from '../../../mount/process/journal-log.ts';
import type { Log } from '../../../mount/process/log.ts';

function linesOf(parts: Partial<JournalLogParts>, act: (log: Log) => void): readonly string[] {
  const lines: string[] = [];
  act(
    createLog({
      format: 'json',
      priorities: false,
      level: 'debug',
      write: (line) => lines.push(line),
      wallMs: () => Date.UTC(2026, 10, 21, 12, 0, 0, 5),
      ...parts,
    }),
  );
  return lines;
}

function everyLevel(log: Log): void {
  log.debug('a');
  log.info('b');
  log.warn('c');
  log.error('d');
}

test('an event is one line of JSON with time, level and its fields', () => {
  const [line] = linesOf({}, (log) =>
    log.info('volume published', { volume: 'v^1', attempts: 2, ok: true, no: undefined }),
  );
  assert.equal(line?.endsWith('\n'), true);
  assert.deepEqual(JSON.parse(line ?? ''), {
    level: 'info',
    time: '2026-11-21T12:00:00.005Z',
    event: 'volume published',
    volume: 'v^1',
    attempts: 2,
    ok: true,
  });
});

test('for people a line is short, and values with blanks are in quotes', () => {
  assert.deepEqual(
    linesOf({ format: 'human' }, (log) => log.warn('operation failed', { code: 'x', message: 'a "b" c' })),
    ['12:00:00.005 warn  operation failed  code=x message="a \\"b\\" c"\n'],
  );
});

test('under systemd each line begins with its priority, and leaves the time to the journal', () => {
  const json = linesOf({ priorities: true }, everyLevel);
  assert.deepEqual(
    json.map((line) => line.slice(0, 3)),
    ['<7>', '<6>', '<4>', '<3>'],
  );
  for (const line of json) JSON.parse(line.slice(3));
  assert.deepEqual(linesOf({ priorities: true, format: 'human' }, everyLevel), [
    '<7>a\n',
    '<6>b\n',
    '<4>c\n',
    '<3>d\n',
  ]);
});

test('what is less important than the level is not written', () => {
  assert.equal(linesOf({ level: 'warn' }, everyLevel).length, 2);
});

test('no value can begin a new line, another priority or another field', () => {
  const evil = 'x\n<0>fake\r\u001b[2J\u202e" level="error';
  for (const format of ['json', 'human'] as const) {
    for (const priorities of [true, false]) {
      const lines = linesOf({ format, priorities }, (log) => log.info(evil, { message: evil, [evil]: 'y' }));
      assert.equal(lines.length, 1);
      assert.equal(lines[0]?.trimEnd().includes('\n'), false);
      assert.doesNotMatch(lines[0]?.trimEnd() ?? '', /[\u0000-\u001f\u202e]/);
    }
  }
});

test('a value is cut at 1 KiB', () => {
  const [line] = linesOf({}, (log) => log.info('e', { message: 'x'.repeat(100_000) }));
  assert.equal(Buffer.byteLength((JSON.parse(line ?? '') as { message: string }).message), 1_024);
});

test('a field cannot take the place of level, time or event', () => {
  const [line] = linesOf({}, (log) => log.info('real', { event: 'fake', level: 'error', time: 'never' }));
  const entry = JSON.parse(line ?? '') as Record<string, unknown>;
  assert.deepEqual([entry['event'], entry['level'], entry['event_']], ['real', 'info', 'fake']);
});

test('a field named like a secret is not shown', () => {
  const text = linesOf({}, (log) =>
    log.info('e', { token: 'canary', password: 'canary', secret: 'canary' }),
  ).join();
  assert.equal(text.includes('canary'), false);
});
