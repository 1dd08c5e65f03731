import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventBook } from '../../../agent/event/event-book.ts';
import type { VolumeEvent } from '../../../agent/event/volume-event.ts';

const MINUTE_MS = 60_000;

function trouble(more: Partial<VolumeEvent> = {}): VolumeEvent {
  const subject = { kind: 'Pod', namespace: 'default', name: 'web', uid: 'uid-1' } as const;
  const what = { code: 'driver-busy', volume: 'data', message: 'it failed 3 times' } as const;
  return { subject, reason: 'FailedMount', ...what, sayAfterMs: 2_000, ...more };
}

test('a trouble is said when it has stood for its time, and then every five minutes', () => {
  const book = new EventBook();
  assert.deepEqual(book.look([trouble()], 0), { due: [], nextMs: 2_000 });
  const first = book.look([trouble()], 2_000);
  assert.deepEqual(
    first.due.map(({ count, sinceMs }) => [count, sinceMs]),
    [[1, 0]],
  );
  assert.equal(first.nextMs, 2_000 + 5 * MINUTE_MS);
  assert.deepEqual(book.look([trouble({ message: 'it failed 9 times' })], 3 * MINUTE_MS).due, []);
  const again = book.look([trouble({ message: 'it failed 9 times' })], 6 * MINUTE_MS);
  assert.deepEqual(
    again.due.map(({ id, count, message }) => [id, count, message]),
    [[first.due[0]?.id, 2, 'it failed 9 times']],
  );
});

test('what ends before its time is never said, and what comes back is not said at once again', () => {
  const book = new EventBook();
  book.look([trouble()], 0);
  assert.deepEqual(book.look([], 1_000), { due: [], nextMs: undefined });
  assert.equal(book.look([trouble()], 3_000).due.length, 1);
  book.look([], 4_000);
  assert.deepEqual(book.look([trouble()], MINUTE_MS).due, []);
  // Forgotten after ten minutes: then it is a new one, with a time of its own.
  assert.deepEqual(book.look([trouble()], 30 * MINUTE_MS), { due: [], nextMs: 30 * MINUTE_MS + 2_000 });
});

test('volumes, reasons and pods are told apart, messages are not', () => {
  const book = new EventBook();
  const other = { ...trouble().subject, uid: 'uid-2' };
  const all = [
    trouble(),
    trouble({ volume: 'cache' }),
    trouble({ code: 'disk-full' }),
    trouble({ subject: other }),
  ];
  book.look(all, 0);
  const { due } = book.look(all, 2_000);
  assert.equal(new Set(due.map(({ id }) => id)).size, 4);
});

test('of one pod with a hundred volumes 25 are said, and another pod is not silenced by it', () => {
  const book = new EventBook();
  const many = Array.from({ length: 100 }, (_, index) => trouble({ volume: `data-${index}` }));
  const other = trouble({ subject: { ...trouble().subject, uid: 'uid-2' } });
  book.look([...many, other], 0);
  const { due } = book.look([...many, other], 2_000);
  assert.deepEqual([due.length, due.filter(({ subject }) => subject.uid === 'uid-2').length], [26, 1]);
});
