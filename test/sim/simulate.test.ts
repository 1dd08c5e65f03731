import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_ABSENCE } from './absence.ts';
import { compileSimply } from './compiler-flags.ts';
import { OPEN_SEEDS } from './open-seeds.ts';
import { NO_MORE_KINDS } from './more-kinds.ts';
import { NO_POD_FIELDS } from './pod-fields.ts';
import { REGRESSIONS } from './regressions.ts';
import { ONE_SLICE } from './sim-slices.ts';
import { simulate } from './simulate.ts';
import {
  aboutChangedDisks,
  aboutClock,
  aboutCluster,
  aboutClusterClock,
  aboutHung,
  aboutLostHolds,
  aboutMovedPods,
  aboutNodeIds,
} from './stories.ts';
import type { Plan } from './swarm.ts';

compileSimply();

test('INV-37: the same seed gives the same trace', async () => {
  for (let seed = 1; seed <= 25; seed += 1) {
    const first = await simulate(seed);
    const second = await simulate(seed);
    assert.equal(second.traceHash, first.traceHash, `seed ${seed}`);
    assert.equal(second.steps, first.steps);
  }
});

function asDrawn(plan: Plan): Plan {
  return plan;
}

for (const { seed, sentence, plan = asDrawn, isOfAbsence } of REGRESSIONS) {
  test(`seed ${seed}: ${sentence}`, async () => {
    const absence = isOfAbsence === true ? {} : { absence: NO_ABSENCE };
    const asFound = { ...absence, slices: ONE_SLICE, podFields: NO_POD_FIELDS, moreKinds: NO_MORE_KINDS };
    const { violation } = await simulate(seed, { plan: (drawn) => ({ ...plan(drawn), ...asFound }) });
    assert.equal(violation && `${violation.invariant}: ${violation.text}`, undefined);
  });
}

test('A-055, A-057, A-062: fifty seeds of disks wished otherwise while pods have them converge', async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= 50; seed += 1) {
    const { violation } = await simulate(seed, { plan: aboutChangedDisks });
    if (violation !== undefined)
      failed.push(`${seed} ${violation.invariant}: ${violation.text.slice(0, 120)}`);
  }
  assert.deepEqual(failed, []);
});

test('issue 7, 12 and 14: where file systems hang nobody else waits, and all healthy ones are asked', async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= 24; seed += 1) {
    const { violation } = await simulate(seed, { plan: aboutHung });
    if (violation !== undefined)
      failed.push(`${seed} ${violation.invariant}: ${violation.text.slice(0, 120)}`);
  }
  assert.deepEqual(failed, []);
});

test('k/k#34437: where what holds devices is lost, it is noticed, and they are held again', async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= 25; seed += 1) {
    const { violation } = await simulate(seed, { plan: aboutLostHolds });
    if (violation !== undefined)
      failed.push(`${seed} ${violation.invariant}: ${violation.text.slice(0, 120)}`);
  }
  assert.deepEqual(failed, []);
});

test('AP-12: where pods move from one manifest to another all the time, none is taken down', async () => {
  const failed: string[] = [];
  for (let seed = 101; seed <= 112; seed += 1) {
    const { violation } = await simulate(seed, { plan: aboutMovedPods });
    if (violation !== undefined)
      failed.push(`${seed} ${violation.invariant}: ${violation.text.slice(0, 120)}`);
  }
  assert.deepEqual(failed, []);
});

test('INV-29: whatever is done to the clock of a machine, nothing is forgotten or missed', async () => {
  const failed: string[] = [];
  for (let seed = 501; seed <= 520; seed += 1) {
    for (const plan of [aboutClock, aboutClusterClock]) {
      const { violation } = await simulate(seed, { plan });
      if (violation !== undefined)
        failed.push(`${seed} ${violation.invariant}: ${violation.text.slice(0, 120)}`);
    }
  }
  assert.deepEqual(failed, []);
});

test('DR-17: what is attached is detached under the name that it was attached under', async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= 25; seed += 1) {
    const { violation } = await simulate(seed, { plan: aboutNodeIds });
    if (violation !== undefined)
      failed.push(`${seed} ${violation.invariant}: ${violation.text.slice(0, 120)}`);
  }
  assert.deepEqual(failed, []);
});

test('issue 11: forty nodes of clusters hold every invariant and become what their cluster wishes', async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= 40; seed += 1) {
    const { violation } = await simulate(seed, { plan: aboutCluster });
    if (violation !== undefined)
      failed.push(`${seed} ${violation.invariant}: ${violation.text.slice(0, 120)}`);
  }
  assert.deepEqual(failed, []);
});

test('a hundred seeds hold every invariant and converge', async () => {
  const failed: string[] = [];
  for (let seed = 1_000; seed < 1_100; seed += 1) {
    if (OPEN_SEEDS.has(seed)) continue;
    const { violation } = await simulate(seed);
    if (violation !== undefined)
      failed.push(`${seed} ${violation.invariant}: ${violation.text.slice(0, 120)}`);
  }
  assert.deepEqual(failed, []);
});
