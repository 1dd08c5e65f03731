/** A pod is removed while somebody still has its volumes: a namespace that was given them, and a process in one. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { PodVolumeStatus, StatusDocument } from '../../agent/status/status-document.ts';
import { mountsBelow } from '../demo/machine.ts';
import { end, holder } from '../mount/holding-process.ts';
import { mooring } from './mooring-command.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode, type RealNode, targetOf } from './real-node.ts';

const skip = inPrivateNamespace();

const POD = `apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: web-1 }
spec:
  containers:
    - name: one
      image: none
      volumeMounts: [{ name: data, mountPath: /data }, { name: cache, mountPath: /c }, { name: tmp, mountPath: /t }]
  volumes:
    - { name: data, persistentVolumeClaim: { claimName: data } }
    - { name: cache, emptyDir: {} }
    - { name: tmp, emptyDir: { medium: Memory } }
`;

function volumesIn({ pods }: StatusDocument): readonly PodVolumeStatus[] {
  return pods.find(({ uid }) => uid === 'web-1')?.volumes ?? [];
}

function isHeldBy(status: StatusDocument, name: string, pid: number | undefined): boolean {
  const reason = volumesIn(status).find((one) => one.name === name)?.reason;
  return reason?.code === 'volume-held' && reason.blocker?.includes(`pid ${pid} (`) === true;
}

function release(node: RealNode, ...more: readonly string[]) {
  return mooring(node, 'release', 'web', ...more);
}

test(
  'what a namespace or a process still has of a pod stays, over kill -9 too, until both have gone',
  { skip },
  (t) =>
    onRealNode(async (node) => {
      node.put('data', (await node.driver.create('data', '16Mi')).yaml);
      node.put('web', POD);
      await node.startAgent();
      await node.untilMounted(3);
      const target = targetOf(node, 'data');
      const [cache, tmp] = ['cache', 'tmp'].map((name) =>
        join(node.root, 'pods/web-1/volumes/kubernetes.io~empty-dir', name),
      ) as [string, string];
      for (const place of [target, cache, tmp]) writeFileSync(join(place, 'file'), 'precious');
      const inside = join(node.scratch, 'inside');
      for (const name of ['data', 'tmp']) mkdirSync(join(inside, name), { recursive: true });
      // A runtime gives them so: bound elsewhere, in a mount namespace of its own, and nothing else of ours is there.
      const bind = `mount --bind ${target} ${inside}/data && mount --bind ${tmp} ${inside}/tmp`;
      const binds = `${bind} && umount ${target} ${tmp}`;
      const stay = 'echo && exec sleep 3600';
      const container = await holder(
        t,
        'unshare',
        '-m',
        '--propagation',
        'private',
        'sh',
        '-c',
        `${binds} && ${stay}`,
      );
      const worker = await holder(t, 'sh', '-c', `cd ${cache} && ${stay}`);
      node.remove('web');
      // An emptyDir is the last of its pod to go, and waits for the rest first.
      await node.until('both to be named', (status) => isHeldBy(status, 'data', container.pid));
      const told = await release(node, '--timeout', '3s');
      assert.equal(told.status, 124, told.stdout);
      assert.match(
        told.stdout,
        new RegExp(`volume data .*pid ${container.pid} \\(sleep\\) has it at ${inside}/data `),
      );
      assert.match(told.stdout, /mooring release web-1 --force/);
      await node.killAgent();
      await node.startAgent();
      await node.until('it to be named by the next agent', (status) =>
        isHeldBy(status, 'data', container.pid),
      );
      const calls = node.driver.calls.filter(({ method }) => method.startsWith('NodeUn'));
      assert.deepEqual(calls, [], 'the driver was asked to take something down');
      const mounted = mountsBelow(node.root).map((mount) => String(mount.target));
      assert.ok(mounted.includes(target) && mounted.includes(tmp), mounted.join('\n'));
      await end(container);
      await node.until('the emptyDir to wait for who works in it', (status) =>
        isHeldBy(status, 'cache', worker.pid),
      );
      assert.equal(readFileSync(join(cache, 'file'), 'utf8'), 'precious');
      await end(worker);
      assert.equal((await release(node, '--timeout', '5m')).status, 0);
      await node.untilEmpty();
      assert.ok(!existsSync(cache));
    }),
);

const EMPTY_DIRS = POD.replace(/ *- \{ name: data, persistentVolumeClaim.*\n/, '').replace(
  '{ name: data, mountPath: /data }, ',
  '',
);

test("an operator's word takes away what somebody has, of a pod that is not wanted", { skip }, (t) =>
  onRealNode(async (node) => {
    node.put('web', EMPTY_DIRS);
    await node.startAgent();
    await node.untilMounted(2);
    const cache = join(node.root, 'pods/web-1/volumes/kubernetes.io~empty-dir/cache');
    const stay = 'echo && exec sleep 3600';
    const copy = await holder(t, 'unshare', '-m', '--propagation', 'private', 'sh', '-c', stay);
    const worker = await holder(t, 'sh', '-c', `cd ${cache} && ${stay}`);
    assert.match(
      (await release(node, '--force', '--timeout', '20s')).stdout,
      /still wanted: its volumes stay/,
    );
    await node.untilMounted(2);
    node.remove('web');
    await node.until('both to be named', (status) => {
      return isHeldBy(status, 'tmp', copy.pid) && isHeldBy(status, 'cache', worker.pid);
    });
    assert.ok(existsSync(cache));
    const word = await release(node, '--force', '--timeout', '5m');
    assert.equal(word.status, 0, word.stdout);
    await node.untilEmpty();
    assert.ok(!existsSync(cache));
    await end(copy);
    await end(worker);
  }),
);
