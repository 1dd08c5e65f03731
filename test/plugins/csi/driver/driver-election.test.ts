import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '../../../../mount/host.ts';
import { type Candidate, createDriverElection } from '../../../../plugins/csi/driver/driver-election.ts';
import type { DriverInstance } from '../../../../plugins/csi/driver/driver.ts';

function bench() {
  let now = 100_000;
  const timers: { at: number; fire: () => void }[] = [];
  const clock: Clock = {
    nowMs: () => now,
    wallMs: () => now,
    timer: (delayMs, fire) => {
      const timer = { at: now + delayMs, fire };
      timers.push(timer);
      return () => timers.splice(timers.indexOf(timer), timers.includes(timer) ? 1 : 0);
    },
  };
  const standing: Candidate[] = [];
  const election = createDriverElection(clock, () => standing);
  const changes: string[] = [];
  election.onChange(({ kind }) => changes.push(kind));
  let orders = 0;
  const stand = (vendorVersion: string): Candidate => {
    orders += 1;
    const candidate = { owner: {}, instance: { name: 'd', vendorVersion } as DriverInstance, order: orders };
    standing.push(candidate);
    election.settle('d');
    return candidate;
  };
  const withdraw = (candidate: Candidate) => {
    standing.splice(standing.indexOf(candidate), 1);
    election.settle('d');
  };
  const pass = (ms: number) => {
    now += ms;
    for (const timer of timers.filter(({ at }) => at <= now)) {
      timers.splice(timers.indexOf(timer), 1);
      timer.fire();
    }
  };
  return {
    election,
    changes,
    stand,
    withdraw,
    pass,
    timers,
    serving: () => election.get('d')?.vendorVersion,
  };
}

test('DR-15: the newest registration serves, and the older takes over again when it goes', () => {
  const { changes, stand, withdraw, serving, election } = bench();
  const old = stand('1');
  const young = stand('2');
  assert.equal(serving(), '2');
  assert.ok(election.serves('d', young.owner) && !election.serves('d', old.owner));
  withdraw(young);
  assert.equal(serving(), '1');
  withdraw(old);
  assert.equal(serving(), undefined);
  assert.deepEqual(changes, ['registered', 'replaced', 'replaced', 'gone']);
});

test('DR-15: between two living ones the name changes hands at most once in ten seconds, and then does', () => {
  const { changes, stand, pass, serving, timers } = bench();
  stand('1');
  stand('2');
  stand('3');
  stand('4');
  assert.equal(serving(), '2');
  assert.equal(timers.length, 1);
  pass(9_999);
  assert.equal(serving(), '2');
  pass(1);
  assert.equal(serving(), '4');
  assert.equal(timers.length, 0);
  assert.deepEqual(changes, ['registered', 'replaced', 'replaced']);
});

test('DR-15: when the one that serves goes, the next serves at once', () => {
  const { stand, withdraw, serving } = bench();
  stand('1');
  const two = stand('2');
  stand('3');
  withdraw(two);
  assert.equal(serving(), '3');
});
