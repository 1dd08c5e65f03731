import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Changes, createChanges } from '../../agent/api/api-changes.ts';

const FOR_EVER_MS = 20_000;

type Told = readonly [atMs: number, revision: string];

interface World {
  readonly changes: Changes<Told>;
  changesAt(...atMs: readonly number[]): void;
  /** Lets time pass until nothing more is due. */
  run(): Promise<void>;
  /** Makes an answer that takes so long, and says when it was begun and what it tells. */
  tell(costMs: number): Told;
}

/** Time that passes while an answer is made, and otherwise only when nothing else can happen. */
function world(): World {
  const timers = new Set<{ readonly atMs: number; readonly fire: () => void }>();
  let nowMs = 0;
  let change = (): void => {};
  const after = (delayMs: number, fire: () => void): (() => void) => {
    const timer = { atMs: nowMs + delayMs, fire };
    timers.add(timer);
    return () => timers.delete(timer);
  };
  const changes = createChanges<Told>({
    clock: { nowMs: () => nowMs, wallMs: () => nowMs, timer: after },
    instance: 'life',
    onChange: (listener) => {
      change = listener;
      return () => {};
    },
  });
  return {
    changes,
    changesAt: (...atMs) => {
      for (const one of atMs) after(one - nowMs, () => change());
    },
    async run() {
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        const [next] = [...timers].sort((a, b) => a.atMs - b.atMs);
        if (next === undefined) return;
        timers.delete(next);
        nowMs = Math.max(nowMs, next.atMs);
        next.fire();
      }
    },
    tell: (costMs) => {
      const atMs = nowMs;
      return changes.tell(() => {
        nowMs += costMs;
        return [atMs, changes.revision()];
      });
    },
  };
}

/** One who asks again with what it was told, until nothing new is told for long. */
async function follow({ changes, tell }: World, costMs: number): Promise<(readonly [number, string])[]> {
  const told = [];
  for (let revision = changes.revision(); ; ) {
    const wait = changes.wait(revision, FOR_EVER_MS);
    assert(wait !== undefined);
    await wait.ended;
    if (changes.revision() === revision) return told;
    const answer = tell(costMs);
    told.push(answer);
    [, revision] = answer;
  }
}

test('the first change is told at once, and changes of one turn are one answer', async () => {
  const one = world();
  one.changesAt(100, 100, 100, 900);
  const told = follow(one, 1);
  await one.run();
  assert.deepEqual(await told, [
    [100, 'life-3'],
    [900, 'life-4'],
  ]);
});

test('what follows is gathered for nine times as long as telling took', async () => {
  const one = world();
  one.changesAt(100, 101, 110, 119, 121, 400);
  const told = follow(one, 2);
  await one.run();
  assert.deepEqual(await told, [
    [100, 'life-1'],
    [120, 'life-4'],
    [140, 'life-5'],
    [400, 'life-6'],
  ]);
});

test('however costly an answer is, the next one comes 50 ms after it', async () => {
  const one = world();
  one.changesAt(100, 101, 149, 179);
  const told = follow(one, 30);
  await one.run();
  assert.deepEqual(await told, [
    [100, 'life-1'],
    [180, 'life-4'],
  ]);
});

test('several who waited are told by one answer, and one who comes late waits as well', async () => {
  const one = world();
  const [first, second] = [one.changes.wait('life-0', 50), one.changes.wait('life-0', 50)];
  one.changesAt(10, 11);
  let isTold = false;
  const late = first?.ended.then(async () => {
    assert.deepEqual(one.tell(1), [10, 'life-1']);
    assert.deepEqual(one.tell(2), [10, 'life-1']);
    await one.changes.wait('life-0', FOR_EVER_MS)?.ended;
    isTold = true;
    assert.deepEqual(one.tell(1), [20, 'life-2']);
  });
  await one.run();
  await Promise.all([late, second?.ended]);
  assert.equal(isTold, true);
});

test('one whose time ends without a change is told of that moment', async () => {
  const one = world();
  const wait = one.changes.wait('life-0', 50);
  assert.deepEqual(one.tell(1), [0, 'life-0']);
  await one.run();
  await wait?.ended;
  assert.deepEqual(one.tell(1), [50, 'life-0']);
});

test('no more than 256 wait', () => {
  const { changes } = world();
  const waits = Array.from({ length: 257 }, () => changes.wait('life-0', FOR_EVER_MS));
  assert.equal(waits.filter((wait) => wait === undefined).length, 1);
  waits[0]?.cancel();
  assert.notEqual(changes.wait('life-0', FOR_EVER_MS), undefined);
});
