import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

const MODULE = new URL('../../../mount/process/late-optimizer.ts', import.meta.url).href;

/** How many rounds of work a function runs until V8 has optimised it. */
function roundsUntilOptimised(act: string): number {
  const text = `import { optimiseLate } from ${JSON.stringify(MODULE)};
    ${act}
    const status = new Function('of', 'return %GetOptimizationStatus(of)');
    const work = new Function('sum', 'for (let index = 0; index < 100; index += 1) sum += index % 7; return sum;');
    const isOptimised = () => (status(work) & 16) !== 0;
    let rounds = 0;
    for (; rounds < 1_000_000 && !isOptimised(); rounds += 1) work(0);
    process.stdout.write(String(rounds));`;
  const flags = ['--allow-natives-syntax', '--no-concurrent-recompilation', '--no-use-osr'];
  const argv = [...flags, '--import', import.meta.resolve('tsx'), '--input-type=module', '--eval', text];
  return Number(execFileSync(process.execPath, argv, { encoding: 'utf8' }));
}

test('a function runs longer before it is optimised, and not for ever', () => {
  const usual = roundsUntilOptimised('');
  const late = roundsUntilOptimised('optimiseLate();');
  assert.ok(late > 4 * usual, `${usual} rounds without it, ${late} with it`);
  assert.ok(late < 1_000_000, 'what runs on is optimised');
});
