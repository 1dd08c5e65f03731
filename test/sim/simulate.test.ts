import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_ABSENCE } from './absence.ts';
import { compileSimply } from './compiler-flags.ts';
import { OPEN_SEEDS } from './open-seeds.ts';
import { NO_MORE_KINDS } from './more-kinds.ts';
import { NO_NODE_IDS } from './node-ids.ts';
import { NO_POD_FIELDS } from './pod-fields.ts';
import { type Regression, REGRESSIONS } from './regressions.ts';
import { ONE_SLICE } from './sim-slices.ts';
import { type Mutation, simulate } from './simulate.ts';
import {
  aboutChangedDisks,
  aboutClock,
  aboutCluster,
  aboutClusterClock,
  aboutHung,
  aboutLostHolds,
  aboutRecycledNumbers,
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

/** In the world of the day when they were found. */
function mutationOf({ plan, isOfAbsence, isOfToday }: Regression): Mutation {
  if (isOfToday === true) return plan === undefined ? {} : { plan };
  const absence = isOfAbsence === true ? {} : { absence: NO_ABSENCE };
  const asFound = { ...absence, slices: ONE_SLICE, podFields: NO_POD_FIELDS, moreKinds: NO_MORE_KINDS };
  return { plan: (drawn) => ({ ...(plan ?? asDrawn)({ ...drawn, nodeIds: NO_NODE_IDS }), ...asFound }) };
}

for (const regression of REGRESSIONS) {
  test(`seed ${regression.seed}: ${regression.sentence}`, async () => {
    const { violation } = await simulate(regression.seed, mutationOf(regression));
    assert.equal(violation && `${violation.invariant}: ${violation.text}`, undefined);
  });
}

/** Those that fail of the seeds from the first to the last, with each of the plans, and why. */
async function failuresOf(
  first: number,
  last: number,
  ...plans: readonly NonNullable<Mutation['plan']>[]
): Promise<readonly string[]> {
  const mutations: readonly Mutation[] = plans.length === 0 ? [{}] : plans.map((plan) => ({ plan }));
  const failed: string[] = [];
  for (let seed = first; seed <= last; seed += 1) {
    if (plans.length === 0 && OPEN_SEEDS.has(seed)) continue;
    for (const mutation of mutations) {
      const { violation } = await simulate(seed, mutation);
      if (violation !== undefined)
        failed.push(`${seed} ${violation.invariant}: ${violation.text.slice(0, 120)}`);
    }
  }
  return failed;
}

test('A-055, A-057, A-062: fifty seeds of disks wished otherwise while pods have them converge', async () => {
  assert.deepEqual(await failuresOf(1, 50, aboutChangedDisks), []);
});

test('issue 7, 12 and 14: where file systems hang nobody else waits, and all healthy ones are asked', async () => {
  assert.deepEqual(await failuresOf(1, 24, aboutHung), []);
});

test('k/k#34437: where what holds devices is lost, it is noticed, and they are held again', async () => {
  assert.deepEqual(await failuresOf(1, 25, aboutLostHolds), []);
});

test('k/k#34437: where disks go while they are published no pod gets another, nor waits for good', async () => {
  assert.deepEqual(await failuresOf(56, 90, aboutRecycledNumbers), []);
});

test('AP-12: where pods move from one manifest to another all the time, none is taken down', async () => {
  assert.deepEqual(await failuresOf(101, 112, aboutMovedPods), []);
});

test('INV-29: whatever is done to the clock of a machine, nothing is forgotten or missed', async () => {
  assert.deepEqual(await failuresOf(501, 520, aboutClock, aboutClusterClock), []);
});

test('DR-17: what is attached is detached under the name that it was attached under', async () => {
  assert.deepEqual(await failuresOf(1, 25, aboutNodeIds), []);
});

test('issue 11: forty nodes of clusters hold every invariant and become what their cluster wishes', async () => {
  assert.deepEqual(await failuresOf(1, 40, aboutCluster), []);
});

test('a hundred seeds hold every invariant and converge', async () => {
  assert.deepEqual(await failuresOf(1_000, 1_099), []);
});
