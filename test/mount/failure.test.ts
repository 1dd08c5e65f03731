import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bounded, fail, type Failure } from '../../mount/failure.ts';

const about = (message: string): Failure => ({ code: 'mount-failed', message, effect: 'none', blocker: 'x' });

test('the message of a failure has at most 1 KiB, and no half of a character', () => {
  for (const letter of ['a', 'ü', '…', '\u{1F4BE}']) {
    for (let length = 200; length < 1_200; length += 1) {
      const message = `x${letter.repeat(length)}`;
      const told = bounded(about(message)).message;
      assert.ok(Buffer.byteLength(told) <= 1_024);
      if (Buffer.byteLength(message) <= 1_024) assert.equal(told, message);
      else {
        assert.ok(told.endsWith('…') && message.startsWith(told.slice(0, -1)));
        assert.ok(Buffer.byteLength(told) > 1_016, 'no more is cut than has to be');
      }
    }
  }
});

test('what is short is the same failure, and the rest of a long one stays', () => {
  const short = about('short');
  assert.equal(bounded(short), short);
  const { failure } = fail(about('x'.repeat(5_000)));
  assert.deepEqual({ ...failure, message: '' }, about(''));
});
