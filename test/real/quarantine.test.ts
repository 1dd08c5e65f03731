/**
 * A volume that may belong to another node now, on the real kernel: taken down, held up by processes in this mount
 * namespace and in another, proven clean, and set up again. In process namespace of its own, because all are searched.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { quarantineDocument } from '../../agent/status/quarantine-document.ts';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { loopDevicesBelow, mountsBelow } from '../demo/machine.ts';
import { DRIVER } from './judged-driver.ts';
import { inPrivateProcesses } from './namespace.ts';
import { NODE, onRealNode, podWith, type RealNode, targetOf, volumeOf } from './real-node.ts';

const skip = inPrivateProcesses();

const IN_ANOTHER_NAMESPACE = ['unshare', '--mount', '--propagation', 'private'];
const OPEN_A_FILE = 'exec 3<"$0"/note && echo && exec sleep 600';
/** As a runtime does for a container. */
const BIND_IT = 'mount --bind "$0" "$1" && echo && exec sleep 600';

/** A process that uses what is mounted at the target, and has said so. */
async function holder(around: readonly string[], how: string, ...given: string[]): Promise<ChildProcess> {
  const [command = '', ...argv] = [...around, 'sh', '-c', how, ...given];
  const child = spawn(command, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

async function endOf(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

async function mounted(node: RealNode): Promise<string> {
  const { yaml, handle } = await node.driver.create('data', '33554432');
  node.put('volume', yaml);
  node.put('pod', podWith('data'));
  await node.startAgent();
  await node.untilMounted(1);
  writeFileSync(join(targetOf(node, 'data'), 'note'), 'precious');
  return handle;
}

test(
  'INV-32, B-4: in quarantine it says who holds it, survives kill -9, and ends only when nobody can write any more',
  {
    skip,
  },
  () =>
    onRealNode(async (node) => {
      const handle = await mounted(node);
      const note = join(targetOf(node, 'data'), 'note');
      const target = targetOf(node, 'data');
      const inside = join(node.scratch, 'inside');
      mkdirSync(inside);
      const near = await holder([], OPEN_A_FILE, target);
      const far = await holder(IN_ANOTHER_NAMESPACE, OPEN_A_FILE, target);
      const container = await holder(IN_ANOTHER_NAMESPACE, BIND_IT, target, inside);
      const untilNamed = (one: ChildProcess, mounts = 0) =>
        node.until(`pid ${one.pid} to be named, with ${mounts} mounts`, (status) => {
          return saysWho(status, handle, one) && mountsBelow(node.root).length === mounts;
        });
      try {
        assert.equal((await node.quarantine('data')).change, 'added');
        await untilNamed(near, 2);
        assert.equal(readFileSync(note, 'utf8'), 'precious', 'nobody was cut off by force');
        await endOf(near);
        await untilNamed(container);
        await endOf(container);
        const before = volumeOf(await untilNamed(far), handle)?.quarantine;
        assert.deepEqual([before?.reason, before?.verified], ['operator', false]);
        node.driver.newCalls();
        await node.killAgent();
        await node.startAgent();
        const again = await untilNamed(far);
        assert.deepEqual(volumeOf(again, handle)?.quarantine, before, 'still the same quarantine');
        assert.ok(!node.driver.newCalls().some((method) => /^Node(Stage|Publish)/.test(method)));
        assert.deepEqual(mountsBelow(node.root), []);
        await endOf(far);
        const clean = await node.untilMounted(1);
        assert.equal(volumeOf(clean, handle)?.quarantine, null);
        assert.equal(readFileSync(note, 'utf8'), 'precious');
        node.remove('pod');
        await node.untilEmpty();
        assert.deepEqual(loopDevicesBelow(node.scratch), []);
      } finally {
        for (const one of [near, far, container]) await endOf(one);
      }
    }),
);

/** As `mooring quarantine list` would. */
function saysWho(status: StatusDocument, handle: string, { pid }: ChildProcess): boolean {
  const found = quarantineDocument(status).volumes.find(({ id }) => id.endsWith(`^${handle}`));
  const obstacles = found?.obstacles ?? [];
  return obstacles.some(({ reason }) => reason.blocker?.includes(`pid ${pid} (`) ?? false);
}

const TAINTED = `apiVersion: v1
kind: Node
metadata: { name: ${NODE} }
spec: { taints: [{ key: node.kubernetes.io/out-of-service, value: nodeshutdown, effect: NoExecute }] }
`;

test(
  'B-2: a node that is out of service gives up all its CSI volumes, and has them again when it is back',
  {
    skip,
  },
  () =>
    onRealNode(async (node) => {
      const handle = await mounted(node);
      const raw = await node.driver.create('raw', '4194304', { mode: 'Block' });
      node.put('raw', `${raw.yaml}---\n${podWith('raw', 'Block').replaceAll(/web-1|web/g, 'block')}`);
      await node.untilMounted(2);
      node.put('node', TAINTED);
      await node.until('both to be proven clean', (status) =>
        [handle, raw.handle].every((one) => {
          const quarantine = volumeOf(status, one)?.quarantine;
          return quarantine?.reason === 'node-out-of-service' && quarantine.verified;
        }),
      );
      const isNothingThere = () =>
        assert.deepEqual([...mountsBelow(node.root), ...loopDevicesBelow(node.scratch)], []);
      isNothingThere();
      node.driver.newCalls();
      await node.killAgent();
      await node.startAgent();
      await node.until('the driver to be back', ({ drivers, summary }) => {
        return drivers.length === 1 && summary.operationsRunning + summary.operationsQueued === 0;
      });
      isNothingThere();
      assert.deepEqual(node.driver.newCalls(), [], 'and it stays down');
      node.remove('node');
      await node.untilMounted(2);
      assert.equal(readFileSync(join(targetOf(node, 'data'), 'note'), 'utf8'), 'precious');
      node.remove('pod');
      node.remove('raw');
      await node.untilEmpty();
    }),
);

/** The word of an attach/detach controller. */
const attachment = (attached: boolean): string => `apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: { name: csi-data }
spec: { attacher: ${DRIVER}, nodeName: ${NODE}, source: { persistentVolumeName: data } }
status: { attached: ${attached} }
`;

test(
  'B-2: an attachment lost while a pod has the volume takes it down, and attached again the pod has it back',
  {
    skip,
  },
  () =>
    onRealNode(
      async (node) => {
        const handle = await mounted(node);
        assert.ok(node.driver.newCalls().includes('ControllerPublishVolume'), 'Mooring is the attacher');
        const container = await holder([], OPEN_A_FILE, targetOf(node, 'data'));
        const inQuarantine = (status: StatusDocument) => volumeOf(status, handle)?.quarantine;
        try {
          node.put('attachment', attachment(false));
          const entered = await node.until('the pod to be named', (one) => saysWho(one, handle, container));
          const { reason, verified, standing } = inQuarantine(entered) ?? assert.fail('no quarantine');
          assert.deepEqual([reason, verified, standing], ['attachment-lost', false, true]);
          assert.equal(readFileSync(join(targetOf(node, 'data'), 'note'), 'utf8'), 'precious');
        } finally {
          await endOf(container);
        }
        const isClean = (status: StatusDocument) => inQuarantine(status)?.verified === true;
        const before = inQuarantine(await node.until('it to be proven clean', isClean));
        const isNothingThere = () =>
          assert.deepEqual([...mountsBelow(node.root), ...loopDevicesBelow(node.scratch)], []);
        isNothingThere();
        const isSettingUp = (method: string) => /Stage|Publish/.test(method) && !method.includes('Un');
        assert.ok(!node.driver.newCalls().some(isSettingUp), 'not attached, staged or published meanwhile');
        await node.killAgent();
        await node.startAgent();
        const again = await node.until('the driver to be back, and it proven clean again', (status) => {
          const { drivers, summary } = status;
          const isQuiet = summary.operationsRunning + summary.operationsQueued === 0;
          return drivers.length === 1 && isQuiet && isClean(status);
        });
        assert.deepEqual(inQuarantine(again), before, 'still the same quarantine');
        isNothingThere();
        assert.deepEqual(node.driver.newCalls(), [], 'and it stays down');
        node.put('attachment', attachment(true));
        assert.equal(inQuarantine(await node.untilMounted(1)), null);
        assert.deepEqual(node.driver.newCalls(), [
          'ControllerPublishVolume',
          'NodeStageVolume',
          'NodePublishVolume',
        ]);
        assert.equal(readFileSync(join(targetOf(node, 'data'), 'note'), 'utf8'), 'precious');
        node.remove('pod');
        await node.untilEmpty();
      },
      { attach: true },
    ),
);
