/**
 * The real agent, the real kernel and a real driver process: kill -9 at effect n, for every n until a run completes,
 * start again, and compare with the end state of a run that was never killed. INV-17, RS-01, RS-06, RS-07, RS-10.
 *
 * `npm run sweep` kills at every effect; `npm test` at every SWEEP_STRIDE-th one.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CrashPoint } from './crashing-host.ts';
import { inPrivateNamespace } from './namespace.ts';
import { createSweepBench, type SweepBench } from './sweep-bench.ts';
import { snapshot } from './world-snapshot.ts';

const STRIDE = Number(process.env['SWEEP_STRIDE'] ?? '11');
const POINTS: readonly CrashPoint[] = ['before', 'during', 'after'];
const skip = inPrivateNamespace();

const POD = `
apiVersion: v1
kind: Secret
metadata: { name: keys, namespace: default }
stringData: { user: anna, password: canary-7f3a }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: default }
data: { color: blue, nested: deep }
---
apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: web-1 }
spec:
  containers:
    - name: main
      image: none
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: keys, mountPath: /keys }
        - { name: settings, mountPath: /settings }
        - { name: scratch, mountPath: /scratch }
        - { name: memory, mountPath: /memory }
        - { name: host, mountPath: /host }
  volumes:
    - { name: data, persistentVolumeClaim: { claimName: data } }
    - { name: keys, secret: { secretName: keys } }
    - name: settings
      configMap: { name: settings, items: [{ key: color, path: a/color }, { key: nested, path: b }] }
    - { name: scratch, emptyDir: {} }
    - { name: memory, emptyDir: { medium: Memory, sizeLimit: 1Mi } }
    - { name: host, hostPath: { path: /etc, type: Directory } }
`;

/** What stays of an empty root: directories that belong to no volume. */
const SKELETON = /^directory \/(pods|plugins\/kubernetes\.io(\/csi(\/[a-z.]+)?)?) 750$/;

function difference(now: readonly string[], expected: readonly string[]): string[] {
  return [
    ...now.filter((line) => !expected.includes(line)).map((line) => `+ ${line}`),
    ...expected.filter((line) => !now.includes(line)).map((line) => `- ${line}`),
  ];
}

async function settle(bench: SweepBench, expected: readonly string[], after: string): Promise<void> {
  const run = await bench.run('before', 0);
  assert.equal(run.ended, 'settled', `${after}: the next agent did not settle`);
  assert.deepEqual(difference(snapshot(bench.root, bench.pool), expected), [], after);
}

describe('kill -9 at every effect', { concurrency: 2, skip }, () => {
  for (const point of POINTS) {
    test(`killed ${point} any effect, the next agent reaches the same world (INV-17)`, async (context) => {
      const bench = await createSweepBench(point);
      try {
        bench.wish(POD);
        assert.equal((await bench.run('before', 0)).ended, 'settled', 'the run that nobody kills settles');
        const up = snapshot(bench.root, bench.pool);
        assert.ok(up.filter((line) => line.startsWith('mount ')).length === 5, 'all five mounts are there');
        bench.wish(undefined);
        assert.equal(
          (await bench.run('before', 0)).ended,
          'settled',
          'the run down that nobody kills settles',
        );
        const down = snapshot(bench.root, bench.pool);
        assert.ok(
          down.every((line) => SKELETON.test(line)),
          `left behind: ${down.join('\n')}`,
        );
        const kills = await sweep(bench, point, { up, down });
        context.diagnostic(`${kills} kills ${point} an effect, 0 differences`);
      } finally {
        bench.wish(undefined);
        await bench.run('before', 0);
        await bench.close();
      }
    });
  }
});

/** Up and down in turns, each time killed at effect n, until a run on either way is over before its n-th effect. */
async function sweep(
  bench: SweepBench,
  point: CrashPoint,
  world: { readonly up: readonly string[]; readonly down: readonly string[] },
): Promise<number> {
  let kills = 0;
  for (let effect = 1, over = 0; over < 2; effect += STRIDE) {
    over = 0;
    for (const way of ['up', 'down'] as const) {
      bench.wish(way === 'up' ? POD : undefined);
      const run = await bench.run(point, effect);
      await settle(
        bench,
        world[way],
        `killed ${point} effect ${effect} (${run.effects.at(-1)}) on the way ${way}`,
      );
      if (run.ended === 'settled') over += 1;
      else kills += 1;
    }
  }
  return kills;
}
