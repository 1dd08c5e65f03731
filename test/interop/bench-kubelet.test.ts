/** The kubelet's side of the bench (`--beside-kubelet`): it does what it tells, and who tells too early is caught. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startKubelet } from '../bench/beside/kubelet-subject.ts';
import { checkMounted, checkUnmounted, podName, type Subject } from '../bench/beside/subject.ts';
import { benchPod } from '../bench/pods.ts';
import { NOOP } from '../bench/world.ts';
import { mountsBelow } from '../demo/machine.ts';
import { goPrograms } from './go-program.ts';

const { skip, files } = goPrograms('bench-kubelet', 'bench-driver');

const pods = ['a', 'b', 'c'].map((name) =>
  benchPod({ name, driver: NOOP, csiVolumes: 1, others: ['secret', 'configMap', 'emptyDir'] }),
);

async function withKubelet(story: (subject: Subject) => Promise<void>): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'mooring-bench-kubelet-'));
  const subject = await startKubelet(scratch, files);
  try {
    await story(subject);
  } finally {
    await subject.close();
    rmSync(scratch, { recursive: true });
  }
}

test('it mounts four volumes per pod, finds them after a restart, and takes all down', { skip }, () =>
  withKubelet(async (subject) => {
    const { book, gate } = await subject.up(pods, true);
    for (const told of [book, gate]) assert.deepEqual([...told.keys()].sort(), pods.map(podName));
    checkMounted(subject, pods);
    const secret = join(subject.root, 'pods/b/volumes/kubernetes.io~secret/secret/b');
    assert.equal(readFileSync(secret, 'utf8'), 'b');
    const before = mountsBelow(subject.root).map(({ mountId, target }) => `${mountId} ${target}`);
    await subject.restart(pods);
    const after = mountsBelow(subject.root).map(({ mountId, target }) => `${mountId} ${target}`);
    assert.deepEqual(after, before, 'the same mounts, not new ones');
    await subject.down(pods);
    checkUnmounted(subject);
  }),
);

test('who tells of mounts that are not there, or of none that are, ends the bench', { skip }, () =>
  withKubelet(async (subject) => {
    assert.throws(() => checkMounted(subject, pods), /kubelet says that .* is there, and it is not/);
    await subject.up(pods.slice(0, 2), true);
    assert.throws(() => checkMounted(subject, pods), /pods\/c\/volumes.* is there, and it is not/);
    assert.throws(() => checkUnmounted(subject), /kubelet says that nothing is mounted/);
  }),
);
