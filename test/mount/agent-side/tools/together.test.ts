import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTogether } from '../../../../mount/agent-side/tools/together.ts';
import { type AbsolutePath, below } from '../../../../mount/host.ts';
import { inPrivateNamespace } from '../../../real/namespace.ts';
import { value } from '../../../value.ts';
import { end, holder } from '../../holding-process.ts';
import { realHost, scratchDirectory } from '../../scratch.ts';

const skip = inPrivateNamespace();

test('what is to be unmounted while an umount is under way goes in one process, sixteen at most', async () => {
  const runs: (readonly AbsolutePath[])[] = [];
  const unmount = createTogether(async (targets: readonly AbsolutePath[]) => {
    runs.push(targets);
    await new Promise((resolve) => setImmediate(resolve));
    return targets.map(() => runs.length);
  });
  const targets = Array.from({ length: 20 }, (_, n) => `/m/${n}` as AbsolutePath);
  const reports = await Promise.all(targets.map(unmount));
  assert.deepEqual(
    runs.map((run) => run.length),
    [1, 16, 3],
  );
  assert.deepEqual(runs.flat(), targets);
  assert.deepEqual([...new Set(reports)], [1, 2, 3]);
  assert.equal(await unmount('/m/later' as AbsolutePath), 4);
});

test('of several that go together one that is busy stays, and the others go', { skip }, async (t) => {
  const host = await realHost(t);
  const root = scratchDirectory(t);
  const targets = Array.from({ length: 6 }, (_, n) => below(root, `m${n}`));
  for (const target of targets) {
    value(await host.makeDirectory(target, 0o750));
    value(await host.mount({ fsType: 'tmpfs', source: 'together', target, options: [] }));
  }
  const [, , busy = root] = targets;
  const child = await holder(t, 'sh', '-c', `cd ${busy} && echo && exec sleep 60`);
  const outcomes = await Promise.all(
    targets.map((target) => host.unmount(target, { isWalked: true, isMemory: true })),
  );
  const left: AbsolutePath[] = [];
  for (const target of targets) if (value(await host.lookUpMount(target)).mounted) left.push(target);
  assert.deepEqual(left, [busy]);
  const said = outcomes[2];
  assert.ok(said !== undefined && !said.ok);
  assert.equal(said.failure.code, 'unmount-failed');
  assert.match(said.failure.message, /m2: target is busy/);
  assert.doesNotMatch(said.failure.message, /m[013-5]/);
  await end(child);
  value(await host.unmount(busy, { isWalked: true, isMemory: true }));
});
