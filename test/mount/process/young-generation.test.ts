import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

const MODULE = new URL('../../../mount/process/young-generation.ts', import.meta.url).href;

/** By how much V8 sets aside more after work that leaves much behind for a moment. */
function growthMb(act: string): number {
  const text = `import { getHeapSpaceStatistics } from 'node:v8';
    import { keepYoungGenerationSmall } from ${JSON.stringify(MODULE)};
    const setAside = () => getHeapSpaceStatistics().find((one) => one.space_name === 'new_space').space_size / 1e6;
    ${act}
    const before = setAside();
    const kept = [];
    for (let index = 0; index < 1_000_000; index += 1) kept[index % 100_000] = { index, more: { index } };
    process.stdout.write(String(setAside() - before));`;
  const argv = ['--import', import.meta.resolve('tsx'), '--input-type=module', '--eval', text];
  return Number(execFileSync(process.execPath, argv, { encoding: 'utf8' }));
}

test('the young generation keeps the size that it has', () => {
  assert.equal(growthMb('keepYoungGenerationSmall();'), 0);
  assert.ok(growthMb('') > 4, 'left alone it grows, or nothing is measured here');
});
