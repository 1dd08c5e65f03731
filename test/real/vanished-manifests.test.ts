/**
 * RS-02, AP-12 on the real kernel: the manifests are gone, covered or replaced while the agent is dead or alive, and
 * what pods have written into their emptyDirs is there until somebody says that it may go.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { mountsBelow, runToEnd, unmountByHand } from '../demo/machine.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode, type RealNode } from './real-node.ts';

const skip = inPrivateNamespace();

const PODS = ['a', 'b', 'c', 'd', 'e', 'f'];

function manifestOf(pod: string): string {
  return `apiVersion: v1
kind: Pod
metadata: { name: ${pod}, namespace: default, uid: uid-${pod} }
spec:
  containers:
    - name: one
      image: none
      volumeMounts: [{ name: disk, mountPath: /disk }, { name: memory, mountPath: /memory }]
  volumes:
    - { name: disk, emptyDir: {} }
    - { name: memory, emptyDir: { medium: Memory } }
`;
}

function keepsakesOf({ root }: RealNode, pod: string): readonly string[] {
  const below = join(root, 'pods', `uid-${pod}`, 'volumes/kubernetes.io~empty-dir');
  return ['disk', 'memory'].map((name) => join(below, name, 'keepsake'));
}

function thereOf(node: RealNode): readonly string[] {
  return PODS.filter((pod) => keepsakesOf(node, pod).every((file) => existsSync(file)));
}

/** As a person would; what it says is answered. */
function mooring(node: RealNode, ...words: readonly string[]): string {
  const argv = [join(node.scratch, 'mooring.mjs'), ...words, '--socket', join(node.scratch, 'agent.sock')];
  return execFileSync(process.execPath, argv, { encoding: 'utf8' });
}

const manifests = ({ scratch }: RealNode): string => join(scratch, 'm');
const isVanished = (pods: number) => (status: StatusDocument) =>
  status.sources.vanished?.pods.length === pods;
const isReplaced = ({ sources }: StatusDocument): boolean => sources.replaced !== null;
const isKnown = ({ sources, agent }: StatusDocument): boolean => sources.replaced === null && agent.complete;

/** Six pods that have written, and an agent with the hold that is shipped. */
async function onUsedNode(tell: (node: RealNode) => Promise<void>): Promise<void> {
  await onRealNode(async (node) => {
    node.settings.vanished_hold_ms = 300_000;
    // No event tells of a mount.
    node.settings.resync_ms = 1_000;
    for (const pod of PODS) node.put(pod, manifestOf(pod));
    await node.startAgent();
    await node.untilMounted(PODS.length * 2);
    for (const pod of PODS) for (const file of keepsakesOf(node, pod)) writeFileSync(file, pod);
    await tell(node);
    for (const pod of PODS) rmSync(join(manifests(node), `${pod}.yaml`), { force: true });
    await node.until(
      'all to be gone or kept',
      ({ pods, sources }) => pods.length === 0 || sources.vanished !== null,
    );
    mooring(node, 'forget', '--all');
    await node.untilEmpty();
    assert.deepEqual(mountsBelow(node.root), []);
  });
}

test(
  'manifests that are gone when the agent starts take nothing down, and one word or the files end it',
  { skip },
  () =>
    onUsedNode(async (node) => {
      await node.killAgent();
      for (const pod of PODS) node.remove(pod);
      await node.startAgent();
      await node.until('all to be kept', isVanished(6));
      assert.match(mooring(node, 'status'), /manifests of 6 pods vanished while nobody looked: .* kept for/);
      assert.match(mooring(node, 'explain', 'uid-a'), /mooring forget/);
      assert.match(
        mooring(node, 'manifests', 'list'),
        /default\/a \(uid-a\): its manifest is gone; kept for/,
      );
      // Killed again it forgets nothing.
      await node.killAgent();
      await node.startAgent();
      await node.until('all to be kept', isVanished(6));
      for (const pod of ['b', 'c', 'd', 'e', 'f']) node.put(pod, manifestOf(pod));
      await node.until('five to be back', isVanished(1));
      assert.deepEqual(thereOf(node), PODS);
      assert.match(mooring(node, 'forget', 'default/a'), /Forgotten: default\/a/);
      await node.untilMounted(10);
      assert.deepEqual(thereOf(node), ['b', 'c', 'd', 'e', 'f']);
    }),
);

test(
  'a file system over the manifests is not read, dead or alive, and nothing comes down until it is gone',
  { skip },
  () =>
    onUsedNode(async (node) => {
      const cover = (): Promise<void> => runToEnd('mount', ['-t', 'tmpfs', '--', 'cover', manifests(node)]);
      await node.killAgent();
      await cover();
      writeFileSync(join(manifests(node), 'a.yaml'), manifestOf('a').replaceAll('uid-a', 'uid-strange'));
      await node.startAgent();
      const status = await node.until('it to be told', isReplaced);
      assert.match(status.sources.replaced?.is ?? '', /^tmpfs cover, mounted on it/);
      assert.deepEqual([status.agent.complete, thereOf(node)], [false, PODS]);
      assert.match(mooring(node, 'explain', 'uid-a'), /mooring manifests accept/);
      unmountByHand(manifests(node));
      await node.until('the old one to be back', isKnown);
      await cover();
      writeFileSync(join(manifests(node), 'a.yaml'), manifestOf('a').replaceAll('uid-a', 'uid-strange'));
      await node.until('it to be told in life', isReplaced);
      unmountByHand(manifests(node));
      const back = await node.until('the old one to be back', isKnown);
      assert.deepEqual(
        [back.pods.map(({ uid }) => uid).toSorted(), thereOf(node)],
        [PODS.map((pod) => `uid-${pod}`), PODS],
      );
    }),
);

test(
  'a directory in the place of the old one is read at an operator’s word, and what it lacks is kept',
  { skip },
  () =>
    onUsedNode(async (node) => {
      await node.killAgent();
      renameSync(manifests(node), `${manifests(node)}.old`);
      mkdirSync(manifests(node), { mode: 0o750 });
      for (const pod of ['d', 'e', 'f']) node.put(pod, manifestOf(pod));
      await node.startAgent();
      await node.until('it to be told', isReplaced);
      assert.match(mooring(node, 'manifests', 'accept'), /is accepted: .*inode/);
      await node.until('it to be read', isKnown);
      await node.until('the others to be kept', isVanished(3));
      assert.deepEqual(thereOf(node), PODS);
      await node.killAgent();
      await node.startAgent();
      await node.until(
        'it to be the right one for good',
        (status) => isKnown(status) && isVanished(3)(status),
      );
      rmSync(`${manifests(node)}.old`, { recursive: true });
    }),
);
