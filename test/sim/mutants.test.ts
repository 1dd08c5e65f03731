import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileSimply } from './compiler-flags.ts';
import { MUTANTS } from './mutants.ts';
import { simulate } from './simulate.ts';

compileSimply();

/** The gate runs ten times as many: a bug that needs more seeds than this may slip through it. */
const SEEDS_MAX = 1_000;

for (const mutant of MUTANTS) {
  test(`a product that ${mutant.name} is caught`, async (t) => {
    for (const seed of seedsFor(mutant.seed)) {
      const mutation = mutant.make();
      const { violation } = await simulate(seed, mutation);
      if (violation === undefined || !mutant.caughtBy.includes(violation.invariant)) continue;
      const healthy = await simulate(seed, mutation.plan === undefined ? {} : { plan: mutation.plan });
      if (healthy.violation !== undefined) continue;
      t.diagnostic(`caught by ${violation.invariant} at seed ${seed}: ${violation.text.slice(0, 120)}`);
      return;
    }
    assert.fail(`not caught in ${SEEDS_MAX} seeds`);
  });
}

function seedsFor(known: number | undefined): readonly number[] {
  const all = Array.from({ length: SEEDS_MAX }, (_, index) => index + 1);
  return known === undefined ? all : [known, ...all];
}
