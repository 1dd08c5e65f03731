/** What systemd is told of a start that takes long. */
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { done } from '../../../mount/failure.ts';
import { tellSlowStart } from '../../../mount/process/slow-start.ts';
import { LOST } from './lost-broker.ts';

function start() {
  const told: string[] = [];
  const logged: string[] = [];
  const timers = new Set<() => void>();
  const world: { answers: boolean; slow: Promise<void> | undefined } = { answers: true, slow: undefined };
  let nowMs = 0;
  const write = (event: string): void => {
    logged.push(event);
  };
  const { end } = tellSlowStart({
    host: {
      notify: async (state) => {
        told.push(`at ${nowMs / 1_000} s: ${state}`);
        await world.slow;
        return done;
      },
      answers: async () => (world.answers ? done : LOST),
      timer: (delayMs, fire) => {
        const due = (): void => {
          nowMs += delayMs;
          fire();
        };
        timers.add(due);
        return () => timers.delete(due);
      },
    },
    log: { debug: write, info: write, warn: write, error: write },
  });
  return {
    ...{ told, logged, world, end, timers },
    /** Lets the timer that is set fire, and what it starts settle. */
    async fire() {
      const [next] = timers;
      assert.ok(next !== undefined, 'no timer is set');
      timers.delete(next);
      next();
      await turn();
    },
  };
}

test('each 20 s of a start it is told that it goes on, for longer than until the next word but one', async () => {
  const { told, fire } = start();
  assert.deepEqual(told, []);
  await fire();
  await fire();
  assert.deepEqual(told, [
    'at 20 s: EXTEND_TIMEOUT_USEC=60000000\nSTATUS=starting for 20 s: records, mounts and manifests are read',
    'at 40 s: EXTEND_TIMEOUT_USEC=60000000\nSTATUS=starting for 40 s: records, mounts and manifests are read',
  ]);
});

test('nothing is told while no broker answers, and it is when one does again', async () => {
  const { told, logged, fire, world } = start();
  world.answers = false;
  await fire();
  assert.deepEqual([told, logged], [[], ['agent still starting']]);
  world.answers = true;
  await fire();
  assert.match(told[0] ?? '', /^at 40 s: EXTEND_TIMEOUT_USEC=60000000\n/);
});

test('a start that has ended is told no more, not even by a question that was open', async () => {
  const { told, fire, end, timers } = start();
  await fire();
  const [next] = timers;
  next?.();
  await end();
  assert.equal(told.length, 1);
});

test('the end waits for the word that is under way, and no other one comes', async () => {
  const { fire, end, timers, world } = start();
  let heard = (): void => {};
  world.slow = new Promise((resolve) => {
    heard = resolve;
  });
  await fire();
  let hasEnded = false;
  const ended = end().then(() => {
    hasEnded = true;
  });
  await turn();
  assert.equal(hasEnded, false);
  heard();
  await ended;
  assert.equal(timers.size, 0);
});

test('after half an hour it is left to its timeout', async () => {
  const { told, logged, fire, timers } = start();
  for (let word = 1; word <= 90; word++) await fire();
  assert.match(told.at(-1) ?? '', /^at 1800 s: /);
  await fire();
  assert.deepEqual([told.length, logged.at(-1), timers.size], [90, 'start takes too long', 0]);
});
