/** Records that change their form at a start, on a real directory, with kill -9 at each change that shows in it. */
import assert from 'node:assert/strict';
import { readdirSync, watch } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { mountsBelow } from '../demo/machine.ts';
import { recordsIn } from '../demo/recorded.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode, podWith, type RealNode } from './real-node.ts';

const skip = inPrivateNamespace();
/** A takeover of five records shows so often that something was made, renamed or removed. */
const CHANGES_MAX = 24;
const STEP = 3;
const CACHES = ['one', 'two', 'three', 'four'];

/** Starts an agent and kills it when the directory of records has changed so often; false: it was healthy before. */
async function killAtChange(node: RealNode, count: number): Promise<boolean> {
  let changes = 0;
  let isKilled = false;
  const watcher = watch(join(node.root, 'mooring/records'), () => {
    changes += 1;
    if (changes < count || isKilled) return;
    isKilled = true;
    void node.killAgent();
  });
  const hasStarted = await node.startAgent().then(
    () => true,
    () => false,
  );
  watcher.close();
  await node.killAgent();
  return isKilled && !hasStarted;
}

test(
  'records taken over in both directions, with kill -9 on the way, are all there, and nothing is asked again',
  {
    skip,
  },
  () =>
    onRealNode(async (node) => {
      const directory = join(node.root, 'mooring/records');
      node.settings.record_store = 'files';
      const { yaml } = await node.driver.create('data', '33554432');
      node.put('volume', yaml);
      const caches = CACHES.map((name) => `    - { name: ${name}, emptyDir: {} }\n`).join('');
      const mounts = ['data', ...CACHES].map((name) => `{ name: ${name}, mountPath: /${name} }`).join(', ');
      node.put(
        'pod',
        `${podWith('data').trimEnd()}\n${caches}`.replace(/volumeMounts: .*/, `volumeMounts: [${mounts}]`),
      );
      await node.startAgent();
      await node.untilMounted(1 + CACHES.length);
      await node.untilRecorded();
      const before = { mounts: mountsBelow(node.root), records: [...recordsIn(directory).keys()].sort() };
      assert.deepEqual(
        [before.records.length, node.driver.newCalls()],
        [1 + CACHES.length, ['NodeStageVolume', 'NodePublishVolume']],
      );
      await node.killAgent();
      let killed = 0;
      for (let count = 1; count <= CHANGES_MAX; count += STEP) {
        for (const form of ['journal', 'files'] as const) {
          node.settings.record_store = form;
          if (await killAtChange(node, count)) killed += 1;
          assert.deepEqual(
            [...recordsIn(directory).keys()].sort(),
            before.records,
            `${form}, change ${count}`,
          );
          await node.startAgent();
          await node.untilMounted(1 + CACHES.length);
          await node.untilRecorded();
          const isJournal = (name: string): boolean => name.startsWith('journal-');
          const forms = new Set(readdirSync(directory).map(isJournal));
          assert.deepEqual([...forms], [form === 'journal'], `${form}, change ${count}`);
          await node.killAgent();
        }
      }
      assert.ok(killed > 2, `${killed} were killed before they were healthy`);
      assert.deepEqual(mountsBelow(node.root), before.mounts);
      assert.deepEqual(node.driver.newCalls(), [], 'nothing was asked of the driver');
      await node.startAgent();
      node.remove('pod');
      await node.untilEmpty();
    }),
);
