import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNotifier, type Notifier, type NotifierParts } from '../../../mount/process/notify.ts';
import { done } from '../../../mount/failure.ts';
import type { Log } from '../../../mount/process/log.ts';
import { LOST } from './lost-broker.ts';

interface Stage {
  readonly notifier: Notifier;
  readonly told: string[];
  readonly logged: string[];
  readonly delays: number[];
  /** Lets the timer that is set fire, and what it starts settle. */
  fire(): Promise<void>;
  timers(): number;
  world: { turned: boolean; answers: boolean; notifies: boolean; slow: Promise<void> | undefined };
}

function stage(rest: Partial<NotifierParts> = {}): Stage {
  const told: string[] = [];
  const logged: string[] = [];
  const delays: number[] = [];
  const timers = new Set<() => void>();
  const world: Stage['world'] = { turned: true, answers: true, notifies: true, slow: undefined };
  const write = (event: string): void => {
    logged.push(event);
  };
  const log: Log = { debug: write, info: write, warn: write, error: write };
  const notifier = createNotifier({
    host: {
      notify: async (state) => {
        told.push(state);
        await world.slow;
        return world.notifies ? done : LOST;
      },
      answers: async () => (world.answers ? done : LOST),
      timer: (delayMs, fire) => {
        delays.push(delayMs);
        timers.add(fire);
        return () => timers.delete(fire);
      },
    },
    log,
    watchdogMs: 30_000,
    turned: () => world.turned,
    ...rest,
  });
  return {
    notifier,
    told,
    logged,
    delays,
    world,
    timers: () => timers.size,
    async fire() {
      const [next] = timers;
      assert(next !== undefined, 'no timer is set');
      timers.delete(next);
      next();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test('ready is told with a status, and from then on the watchdog is fed three times in its period', async () => {
  const { notifier, told, delays, fire } = stage();
  assert.deepEqual(delays, []);
  await notifier.ready('2 of 2 pods ready');
  await fire();
  await fire();
  assert.deepEqual(told, ['READY=1\nSTATUS=2 of 2 pods ready', 'WATCHDOG=1', 'WATCHDOG=1']);
  assert.deepEqual(delays, [10_000, 10_000, 10_000]);
});

test('nobody who does not watch is pinged', async () => {
  const { notifier, timers } = stage({ watchdogMs: undefined });
  await notifier.ready('up');
  assert.equal(timers(), 0);
});

test('one that is not to be watched says so with the first word that arrives, and pings nobody', async () => {
  const { notifier, told, timers, fire, world } = stage({ watchdogMs: 'off' });
  world.notifies = false;
  await notifier.ready('up');
  world.notifies = true;
  await fire();
  notifier.status('well');
  const ready = 'READY=1\nWATCHDOG_USEC=0\nSTATUS=up';
  assert.deepEqual(told, [ready, ready, 'STATUS=well']);
  assert.equal(timers(), 0);
});

test('no ping while the reconciler does not turn or no broker answers; again when both do', async () => {
  const { notifier, told, logged, fire, world } = stage();
  await notifier.ready('up');
  world.turned = false;
  await fire();
  world.turned = true;
  world.answers = false;
  await fire();
  assert.deepEqual(told.slice(1), []);
  assert.deepEqual(logged, ['watchdog not fed']);
  world.answers = true;
  await fire();
  assert.deepEqual(told.slice(1), ['WATCHDOG=1']);
});

test('a broker that hangs stops the pings, and no second question is asked behind it', async () => {
  const never = new Promise<never>(() => {});
  const { told, delays, ...rest } = stage();
  const hung = createNotifier({
    host: {
      notify: async (state) => {
        told.push(state);
        return done;
      },
      answers: () => never,
      timer: (delayMs, fire) => {
        delays.push(delayMs);
        setImmediate(fire);
        return () => {};
      },
    },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    watchdogMs: 3_000,
    turned: () => true,
  });
  await hung.ready('up');
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([told, delays, rest.timers()], [['READY=1\nSTATUS=up'], [1_000], 0]);
});

test('a status is told when it is another one, in one line', async () => {
  const { notifier, told } = stage();
  await notifier.ready('up');
  notifier.status('up');
  notifier.status('1 waits\nREADY=0');
  notifier.status('1 waits\nREADY=0');
  assert.deepEqual(told.slice(1), ['STATUS=1 waits\\u000aREADY=0']);
});

test('ready is told again until it was: nobody else would, and the start would be given up', async () => {
  const { notifier, told, logged, fire, world, timers } = stage({ watchdogMs: undefined });
  world.notifies = false;
  await notifier.ready('up');
  notifier.status('1 waits');
  await fire();
  assert.deepEqual(told, ['READY=1\nSTATUS=up', 'READY=1\nSTATUS=1 waits']);
  assert.deepEqual(logged, ['service manager not told'], 'once');
  world.notifies = true;
  await fire();
  assert.deepEqual(told.slice(2), ['READY=1\nSTATUS=1 waits']);
  assert.deepEqual(logged.slice(1), ['service manager told']);
  assert.equal(timers(), 0);
});

test('of statuses that come while one is being told, the last one is told after it', async () => {
  const { notifier, told, world } = stage();
  await notifier.ready('up');
  let end = (): void => {};
  world.slow = new Promise((resolve) => {
    end = resolve;
  });
  for (const text of ['1 waits', '2 wait', '3 wait']) notifier.status(text);
  assert.deepEqual(told.slice(1), ['STATUS=1 waits']);
  end();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(told.slice(1), ['STATUS=1 waits', 'STATUS=3 wait']);
});

test('stopping is told, and then nothing more', async () => {
  const { notifier, told, timers } = stage();
  await notifier.ready('up');
  await notifier.stopping();
  notifier.status('late');
  assert.deepEqual(told.slice(1), ['STOPPING=1\nSTATUS=stopping; volumes stay mounted']);
  assert.equal(timers(), 0);
});

test('a service manager that cannot be told is logged and stops nothing', async () => {
  const { notifier, logged, world, timers } = stage();
  world.notifies = false;
  await notifier.ready('up');
  assert.deepEqual(logged, ['service manager not told']);
  assert.equal(timers(), 2, 'the next try, and the watchdog');
});
