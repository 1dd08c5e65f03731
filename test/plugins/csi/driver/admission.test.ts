import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { fail, ok, type Result } from '../../../../mount/failure.ts';
import { type AdmissionClock, createAdmission } from '../../../../plugins/csi/driver/admission.ts';
import type { Admitted } from '../../../../plugins/csi/driver/handshake.ts';

const ADMITTED = { life: 'of the endpoint' } as Admitted;
const REFUSED = fail({ code: 'driver-unreachable', message: 'nobody there', effect: 'none' });

/** Half-way between the longest and the shortest back-off; timers run when the test says so. */
function world() {
  const waits: { readonly ms: number; readonly run: () => void }[] = [];
  const clock: AdmissionClock = {
    nowMs: () => 0,
    random: () => 0.5,
    timer: (ms, run) => {
      const wait = { ms, run };
      waits.push(wait);
      return () => waits.splice(waits.indexOf(wait), 1);
    },
  };
  const told: string[] = [];
  const admission = createAdmission(clock, {
    admit: ({ life }) => told.push(`admit ${life}`),
    turnAway: ({ code }) => told.push(code),
  });
  const next = async (): Promise<void> => {
    waits.shift()?.run();
    await setImmediate();
  };
  return { admission, told, waits, next };
}

test('a driver that answers is admitted once', async () => {
  const { admission, told, waits } = world();
  admission.begin('life 1', async () => ok(ADMITTED));
  await setImmediate();
  assert.deepEqual([told, waits.length], [['admit of the endpoint'], 0]);
});

test('a failed try is repeated after a back-off that doubles, and a hint begins it anew', async () => {
  const { admission, told, waits, next } = world();
  admission.begin('life 1', async () => REFUSED);
  await setImmediate();
  const seen: (number | undefined)[] = [waits[0]?.ms];
  for (let tries = 0; tries < 8; tries += 1) {
    await next();
    seen.push(waits[0]?.ms);
  }
  assert.deepEqual(seen, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
  admission.hurry();
  assert.equal(waits[0]?.ms, 100);
  assert.equal(told.length, 9);
});

test('the same life is asked by one attempt; an answer about a life of before is dropped', async () => {
  const { admission, told } = world();
  let runs = 0;
  let answer: (result: Result<Admitted>) => void = () => {};
  const hanging = () => {
    runs += 1;
    return new Promise<Result<Admitted>>((resolve) => {
      answer = resolve;
    });
  };
  admission.begin('life 1', hanging);
  admission.begin('life 1', hanging);
  assert.equal(runs, 1);
  const late = answer;
  admission.begin('life 2', hanging);
  late(ok(ADMITTED));
  await setImmediate();
  assert.deepEqual(told, []);
});

test('no more than three handshakes of one socket run at once', async () => {
  const { admission, told, waits } = world();
  let runs = 0;
  const hanging = () => {
    runs += 1;
    return new Promise<Result<Admitted>>(() => {});
  };
  for (const life of ['1', '2', '3', '4']) admission.begin(life, hanging);
  await setImmediate();
  assert.deepEqual([runs, told.length, waits.length], [3, 0, 1], 'the fourth waits for its turn');
});

test('what is ended tries no more', async () => {
  const { admission, told, waits } = world();
  admission.begin('life 1', async () => REFUSED);
  await setImmediate();
  admission.end();
  assert.deepEqual([told.length, waits.length], [1, 0]);
});
