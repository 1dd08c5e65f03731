/** How much room a pod takes, on the real kernel: files mounted on files, one that hangs, and a node that tells. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { below } from '../../mount/host.ts';
import { mountFuse } from '../hostile/fuse-server.ts';
import { realHost, scratchDirectory } from '../mount/scratch.ts';
import { value } from '../value.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode } from './real-node.ts';

const skip = inPrivateNamespace();
const MIB = 1_024 * 1_024;

test('a file that is mounted on a file is not counted, and a tmpfs says its own size', {
  skip,
}, async (t) => {
  const root = scratchDirectory(t);
  const [tree, large] = [below(root, 'tree'), join(root, 'large')];
  const host = await realHost(t);
  mkdirSync(join(tree, 'memory'), { recursive: true });
  writeFileSync(large, Buffer.alloc(4 * MIB, 'x'));
  writeFileSync(join(tree, 'file'), '');
  execFileSync('mount', ['--bind', large, join(tree, 'file')]);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', join(tree, 'memory')]);
  writeFileSync(join(tree, 'memory/file'), Buffer.alloc(MIB / 2, 'x'));
  const { bytes, inodes } = value(await host.measureUsage({ path: tree, scope: 'tree' }));
  assert.ok(bytes.used < MIB / 2 && inodes.used === 1n, `${bytes.used} bytes in ${inodes.used}`);
  const memory = value(await host.measureUsage({ path: below(tree, 'memory'), scope: 'file-system' }));
  assert.deepEqual([memory.bytes.total, memory.bytes.used], [BigInt(MIB), BigInt(MIB / 2)]);
});

test('one that hangs is given up, and holds up neither other calls nor other measures', {
  skip,
}, async (t) => {
  const root = scratchDirectory(t);
  const target = below(root, 'volume');
  const host = await realHost(t, { deadlinesMs: { probe: 1_000 }, pathBrokersMax: 1 });
  mkdirSync(target);
  const fuse = await mountFuse(target);
  t.after(() => fuse.kill());
  await fuse.set({ kind: 'hang' });
  const hung = host.measureUsage({ path: target, scope: 'file-system' });
  assert.deepEqual(value(await host.listDirectory(root, 10)), ['volume']);
  assert.ok(value(await host.measureUsage({ path: root, scope: 'tree' })).isWhole);
  await fuse.set({ kind: 'serve' });
  const answer = await hung;
  assert.ok(answer.ok || answer.failure.code === 'deadline-passed');
});

const POD = `apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: web-1 }
spec:
  containers:
    - name: main
      image: none
      volumeMounts: [{ name: cache, mountPath: /cache }, { name: free, mountPath: /free }]
  volumes:
    - { name: cache, emptyDir: { sizeLimit: 1Mi } }
    - { name: free, emptyDir: {} }
`;

test('a pod that takes more than its sizeLimit is told of, and keeps all it has', { skip }, () =>
  onRealNode(async (node) => {
    node.settings.statistics_interval_ms = 1_000;
    node.put('web', POD);
    await node.startAgent();
    await node.untilMounted(2);
    const [cache, free] = ['cache', 'free'].map((name) =>
      join(node.root, 'pods/web-1/volumes/kubernetes.io~empty-dir', name),
    );
    assert.ok(cache !== undefined && free !== undefined);
    const health = (status: Awaited<ReturnType<typeof node.untilMounted>>, name: string) =>
      status.volumes.find((one) => one.name === name)?.health;
    await node.until('it was counted', (status) => health(status, 'cache')?.length === 0);
    for (const path of [cache, free]) writeFileSync(join(path, 'much'), Buffer.alloc(2 * MIB, 'x'));
    const over = await node.until('it is told', (status) => health(status, 'cache')?.length === 1);
    const [told] = health(over, 'cache') ?? [];
    assert.deepEqual([told?.saidBy, told?.status], ['agent', 'over-limit']);
    assert.match(told?.message ?? '', /^it takes 2 MiB, and its sizeLimit is 1 MiB/);
    assert.deepEqual([health(over, 'free'), over.summary.unhealthy, over.pods[0]?.ready], [null, 1, true]);
    assert.equal(readFileSync(join(cache, 'much')).length, 2 * MIB);
    rmSync(join(cache, 'much'));
    await node.until('all is well again', (status) => health(status, 'cache')?.length === 0);
    node.remove('web');
    await node.untilEmpty();
  }),
);
