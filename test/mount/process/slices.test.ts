import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createRounds } from '../../../mount/process/rounds.ts';
import { createSlices, type Sliced, sorted, wholly } from '../../../mount/process/slices.ts';

/** A clock that goes on only when it is told to, and timers that fire one by one. */
function handClock() {
  const timers: (() => void)[] = [];
  const clock = {
    ms: 0,
    nowMs: () => clock.ms,
    timer: (_delayMs: number, fire: () => void) => {
      timers.push(fire);
      return () => {
        const at = timers.indexOf(fire);
        if (at >= 0) timers.splice(at, 1);
      };
    },
    /** False when there was none. */
    fire: () => {
      const next = timers.shift();
      next?.();
      return next !== undefined;
    },
  };
  return clock;
}

function* countTo(pieces: number, each: (piece: number) => void): Sliced<string> {
  for (let piece = 1; piece <= pieces; piece += 1) {
    each(piece);
    yield;
  }
  return `${pieces} pieces`;
}

test('a slice ends when its time is over, and the loop has a turn before the next one', () => {
  const clock = handClock();
  const told: string[] = [];
  const slices = createSlices({ clock, msMax: 10 });
  const work = countTo(5, (piece) => {
    clock.ms += 4;
    told.push(`piece ${piece}`);
  });
  clock.timer(0, () => told.push('somebody else'));
  slices.run(work, (value) => told.push(value));
  assert.deepEqual(told, ['piece 1', 'piece 2', 'piece 3']);
  while (clock.fire());
  assert.deepEqual(told.slice(3), ['somebody else', 'piece 4', 'piece 5', '5 pieces']);
});

test('what is small is done at once', () => {
  const clock = handClock();
  const told: string[] = [];
  createSlices({ clock }).run(
    countTo(1_000, () => {}),
    (value) => told.push(value),
  );
  assert.deepEqual([told, clock.fire()], [['1000 pieces'], false]);
});

test('what was cancelled goes no further, in a piece or between two slices', () => {
  const clock = handClock();
  const slices = createSlices({ clock, piecesMax: 2 });
  let reached = 0;
  const cancel = slices.run(
    countTo(10, (piece) => {
      reached = piece;
      if (piece === 3) cancel();
    }),
    () => assert.fail('it has ended'),
  );
  while (clock.fire());
  assert.equal(reached, 3);
  const between = slices.run(
    countTo(10, (piece) => (reached = piece)),
    () => assert.fail('it has ended'),
  );
  between();
  assert.deepEqual([reached, clock.fire()], [2, false]);
});

test('sorted in pieces is what the language sorts, with equals in their order', () => {
  const items = fc.array(fc.tuple(fc.integer({ min: 0, max: 20 }), fc.nat()), { maxLength: 1_500 });
  const byFirst = ([a]: [number, number], [b]: [number, number]): number => a - b;
  fc.assert(
    fc.property(items, (all) => assert.deepEqual(wholly(sorted(all, byFirst)), all.toSorted(byFirst))),
    { numRuns: 50 },
  );
});

test('rounds are about one moment each, one at a time, and the last one has seen the last change', async () => {
  const clock = handClock();
  let newest = 1;
  const done: string[] = [];
  const rounds = createRounds({
    slices: createSlices({ clock, piecesMax: 2 }),
    *begin(): Sliced<string> {
      const begun = newest;
      yield* countTo(5, () => {});
      return `${begun}, ended at ${newest}`;
    },
    onDone: (value) => done.push(value),
  });
  rounds.ask();
  for (const next of [2, 3, 4]) {
    newest = next;
    rounds.ask();
  }
  let isSettled = false;
  const settled = rounds.settled().then(() => (isSettled = true));
  await Promise.resolve();
  assert.deepEqual([done, isSettled], [[], false]);
  while (clock.fire());
  await settled;
  assert.deepEqual(done, ['1, ended at 4', '4, ended at 4']);
});

test('after a stop no round ends, and nobody waits for one', async () => {
  const clock = handClock();
  const rounds = createRounds({
    slices: createSlices({ clock, piecesMax: 1 }),
    begin: () => countTo(5, () => {}),
    onDone: () => assert.fail('it was stopped'),
  });
  rounds.ask();
  rounds.ask();
  const settled = rounds.settled();
  rounds.stop();
  while (clock.fire());
  rounds.ask();
  while (clock.fire());
  await settled;
});

test('a round that is asked for soon after another rests as its pace says, unless it is to be at once', () => {
  const clock = handClock();
  const noted: number[] = [];
  let waitMs = 0;
  const done: number[] = [];
  const rounds = createRounds({
    slices: createSlices({ clock, piecesMax: 1 }),
    begin: () => countTo(2, () => {}),
    onDone: () => done.push(clock.nowMs()),
    pace: { clock, noteLook: (beganMs) => noted.push(beganMs), waitMs: () => waitMs },
  });
  const untilRest = (): void => {
    while (clock.fire());
  };
  rounds.ask();
  untilRest();
  assert.deepEqual([done.length, noted], [1, [0]]);
  waitMs = 300;
  rounds.ask();
  rounds.ask();
  assert.equal(done.length, 1, 'it rests');
  rounds.ask(true);
  waitMs = 0;
  untilRest();
  assert.equal(done.length, 2, 'one round for all three');
  waitMs = 300;
  rounds.ask();
  untilRest();
  assert.equal(done.length, 3, 'the rest has an end');
  rounds.ask();
  rounds.stop();
  untilRest();
  assert.equal(done.length, 3, 'nothing begins after a stop');
});
