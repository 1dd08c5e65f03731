/**
 * Somebody mounts a tmpfs over what the agent set up: over a published target, over the staging path, over both (they
 * are peers where `/` is shared), and over the pods; the agent, the kernel and the driver are real.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { StatusDocument, PodVolumeStatus } from '../../agent/status/status-document.ts';
import { mountsBelow, unmountByHand } from '../demo/machine.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode, podWith, type RealNode, targetOf } from './real-node.ts';

const skip = inPrivateNamespace();
const SOURCE = 'somebody-elses';

function cover(path: string): number {
  execFileSync('mount', ['-t', 'tmpfs', SOURCE, path]);
  const own = mountsBelow(path).filter(({ target, source }) => target === path && source === SOURCE);
  return own.at(-1)?.mountId ?? assert.fail(`nothing mounted at ${path}`);
}

function secondPod(): string {
  return podWith('data').replaceAll('web-1', 'web-2').replace('name: web,', 'name: web-b,');
}

function secondTarget(node: RealNode): string {
  return targetOf(node, 'data').replace('/web-1/', '/web-2/');
}

function stagingOf(node: RealNode): string {
  const found = mountsBelow(join(node.root, 'plugins')).find(({ target }) => target.endsWith('/globalmount'));
  return found?.target ?? assert.fail('nothing is staged');
}

function volumeIn({ pods }: StatusDocument, uid: string): PodVolumeStatus | undefined {
  return pods.find((pod) => pod.uid === uid)?.volumes[0];
}

/** One mounted volume of one pod, which wrote something. */
async function oneMounted(node: RealNode): Promise<void> {
  node.settings.resync_ms = 1_000;
  const { yaml } = await node.driver.create('data', '33554432');
  node.put('volume', yaml);
  node.put('pod', podWith('data'));
  await node.startAgent();
  await node.untilMounted(1);
  writeFileSync(join(targetOf(node, 'data'), 'note'), 'precious');
}

function told(volume: PodVolumeStatus | undefined, mountId: number): boolean {
  const { code, blocker } = volume?.reason ?? {};
  const isNamed = blocker?.includes(SOURCE) === true && blocker.includes(`mount ${mountId}`);
  return volume?.state !== 'mounted' && (code === 'mount-stacked' || code === 'mount-foreign') && isNamed;
}

async function coveredByIsTold(node: RealNode, uid: string, mountId: number): Promise<void> {
  await node.until(`${uid} to wait for mount ${mountId}`, (status) => told(volumeIn(status, uid), mountId));
}

async function allGoes(node: RealNode): Promise<void> {
  for (const pod of ['pod', 'pod-b']) node.remove(pod);
  await node.untilEmpty();
}

function isDataThere(node: RealNode, target: string): void {
  assert.equal(readFileSync(join(target, 'note'), 'utf8'), 'precious');
  assert.ok(
    node.driver.calls.every(({ method }) => !/^NodeUn/.test(method)),
    'nothing was taken down',
  );
}

test(
  'MT-15: what lies over the staging path is named, and no pod gets it; when it goes, the pod gets its volume',
  { skip },
  () =>
    onRealNode(async (node) => {
      await oneMounted(node);
      const staging = stagingOf(node);
      const mountId = cover(staging);
      node.put('pod-b', secondPod());
      await coveredByIsTold(node, 'web-2', mountId);
      assert.deepEqual(readdirSync(staging), [], 'nothing was written into it');
      assert.deepEqual(mountsBelow(secondTarget(node)), []);
      unmountByHand(staging);
      await node.untilMounted(2);
      isDataThere(node, secondTarget(node));
      isDataThere(node, targetOf(node, 'data'));
      await allGoes(node);
    }),
);

test(
  'MT-15: what lies over a target is never taken for the volume, over a restart neither, and never unmounted',
  { skip },
  () =>
    onRealNode(async (node) => {
      await oneMounted(node);
      const target = targetOf(node, 'data');
      const calls = node.driver.calls.length;
      const mountId = cover(target);
      await coveredByIsTold(node, 'web-1', mountId);
      await node.killAgent();
      await node.startAgent();
      await coveredByIsTold(node, 'web-1', mountId);
      node.remove('pod');
      await node.until('the teardown to wait', (status) => {
        const volume = volumeIn(status, 'web-1');
        return volume?.state === 'unmounting' && told(volume, mountId);
      });
      assert.deepEqual(readdirSync(target), [], 'nothing was written into it');
      const methods = node.driver.calls.slice(calls).map(({ method }) => method);
      assert.ok(
        methods.every((method) => !/^Node(Stage|Publish|Un)/.test(method)),
        methods.join(),
      );
      unmountByHand(target);
      await node.untilEmpty();
    }),
);

test('MT-15: so it is where a mount over the one shows over the other, too', { skip }, () =>
  onRealNode(async (node) => {
    execFileSync('mount', ['--make-rshared', '/']);
    await oneMounted(node);
    const [target, staging] = [targetOf(node, 'data'), stagingOf(node)];
    cover(target);
    const mounts = mountsBelow(node.root).filter(({ source }) => source === SOURCE);
    assert.deepEqual(mounts.map((one) => one.target).sort(), [staging, target].sort(), 'they are peers');
    const onStage = mounts.find((one) => one.target === staging)?.mountId ?? assert.fail();
    node.put('pod-b', secondPod());
    await coveredByIsTold(node, 'web-2', onStage);
    assert.deepEqual(mountsBelow(secondTarget(node)), []);
    unmountByHand(target);
    await node.untilMounted(2);
    isDataThere(node, secondTarget(node));
    await allGoes(node);
  }),
);

test('MT-15: what lies over all pods hides them, and nothing is made in it', { skip }, () =>
  onRealNode(async (node) => {
    await oneMounted(node);
    const pods = join(node.root, 'pods');
    const mountId = cover(pods);
    node.put('pod-b', secondPod());
    await coveredByIsTold(node, 'web-2', mountId);
    await coveredByIsTold(node, 'web-1', mountId);
    await node.killAgent();
    await node.startAgent();
    await coveredByIsTold(node, 'web-2', mountId);
    assert.deepEqual(readdirSync(pods), []);
    unmountByHand(pods);
    await node.untilMounted(2);
    isDataThere(node, secondTarget(node));
    assert.ok(existsSync(join(targetOf(node, 'data'), 'note')));
    await allGoes(node);
  }),
);
