import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTrusted, kubeletInTheWay, type KubeletProcess } from '../../../agent/process/kubelet-process.ts';
import type { AbsolutePath } from '../../../mount/host.ts';

const root = '/var/lib/kubelet' as AbsolutePath;
const ours = { root, nodeName: undefined, hostname: 'worker' };
const kubelet = (...options: readonly string[]): KubeletProcess => ({
  ...{ pid: '17', options, sharesMounts: true, sharesRoot: false, sharesHostname: true },
});

test('a kubelet with our root is in the way, however it was told its root', () => {
  for (const one of [kubelet(), kubelet('--v=2', '--root-dir=/var/lib/kubelet'), kubelet('--root-dir', root)])
    assert.deepEqual(kubeletInTheWay([one], ours), {
      code: 'kubelet-running',
      message: 'a kubelet runs with the root /var/lib/kubelet',
      effect: 'none',
      blocker: 'pid 17',
    });
  assert.ok(kubeletInTheWay([kubelet()], { ...ours, root: `${root}/mooring` as AbsolutePath }));
});

test('a root is the same with a slash at its end, and an option with underscores, as the kubelet reads both', () => {
  for (const root of ['/data/kubelet/', '/data//kubelet', '/data/./kubelet', '/data/x/../kubelet'])
    for (const one of [kubelet(`--root-dir=${root}`), kubelet('--root_dir', root)])
      assert.match(
        kubeletInTheWay([one], { ...ours, root: '/data/kubelet' as AbsolutePath })?.message ?? root,
        /^a kubelet runs with the root \/data\/kubelet$/,
      );
  const named = kubelet('--root-dir=/elsewhere', '--hostname_override=Other');
  assert.match(kubeletInTheWay([named], { ...ours, nodeName: 'other' })?.message ?? '', /for Node other/);
});

test('one with another root, or in a mount namespace of its own, is not', () => {
  assert.equal(kubeletInTheWay([kubelet('--root-dir=/data/kubelet')], ours), undefined);
  assert.equal(kubeletInTheWay([kubelet('--root-dir', '/var/lib/kubelet-2')], ours), undefined);
  // kind has a whole node in a container.
  assert.equal(kubeletInTheWay([{ ...kubelet(), sharesMounts: false }], ours), undefined);
});

test('in a cluster one for the same Node is, whatever its root: both would write its volumes in use', () => {
  const elsewhere = '--root-dir=/data/kubelet';
  const node = { ...ours, nodeName: 'worker' };
  assert.match(kubeletInTheWay([kubelet(elsewhere)], node)?.message ?? '', /for Node worker/);
  const named = kubelet(elsewhere, '--hostname-override=Other');
  assert.equal(kubeletInTheWay([named], node), undefined);
  assert.match(kubeletInTheWay([named], { ...node, nodeName: 'other' })?.message ?? '', /for Node other/);
  const contained = { ...kubelet(), sharesMounts: false, sharesHostname: false };
  assert.equal(kubeletInTheWay([contained], node), undefined);
});

test('who has begun it and whom it works for is root, or who runs the agent', () => {
  const status = (...ids: readonly number[]): string => `Name:\tkubelet\nUid:\t${ids.join('\t')}\nGid:\t0\t0`;
  assert.equal(isTrusted(status(0, 0, 0, 0), 0), true);
  assert.equal(isTrusted(status(1_000, 1_000, 1_000, 1_000), 1_000), true);
  assert.equal(isTrusted(status(1_000, 1_000, 1_000, 1_000), 0), false);
  // As of su(1) that a user has called by a link of that name.
  assert.equal(isTrusted(status(1_000, 0, 0, 0), 0), false);
  assert.equal(isTrusted('Name:\tUid:\t0\n', 0), false);
});
