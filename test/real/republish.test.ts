/** A pod's group and `requiresRepublish`, with the real agent, the real kernel and a driver that fails in between. */
import assert from 'node:assert/strict';
import { chownSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { mountsBelow } from '../demo/machine.ts';
import { DRIVER } from './judged-driver.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode, podWith, targetOf } from './real-node.ts';

const skip = inPrivateNamespace();
const GID = 2_000;
const INTERNAL = 13;
/** The shortest that the configuration allows. */
const INTERVAL_MS = 10_000;

const CSI_DRIVER = `apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: { name: ${DRIVER} }
spec: { attachRequired: false, requiresRepublish: true, fsGroupPolicy: File }
`;

test(
  'A-064: a republish that fails, before or in the driver, leaves mount, content and owners as they were',
  {
    skip,
  },
  () =>
    onRealNode(async (node) => {
      node.settings.republish_interval_ms = INTERVAL_MS;
      const { yaml } = await node.driver.create('data', '33554432');
      node.put('driver', CSI_DRIVER);
      node.put('volume', yaml);
      node.put('pod', podWith('data', 'Filesystem', `  securityContext: { fsGroup: ${GID} }\n`));
      await node.startAgent();
      await node.untilMounted(1);
      const target = targetOf(node, 'data');
      assert.equal(lstatSync(target).gid, GID);
      writeFileSync(join(target, 'note'), 'precious');
      chownSync(join(target, 'note'), 1_234, 1_234);
      const seen = () => {
        const { gid, ino } = lstatSync(join(target, 'note'));
        return { mounts: mountsBelow(node.root), gid, ino, text: readFileSync(join(target, 'note'), 'utf8') };
      };
      const before = seen();
      const answers: number[] = [];
      const settled = new Promise<void>((resolve) => {
        node.driver.inject = ({ method }) => {
          if (method !== 'NodePublishVolume') return undefined;
          return FAILURES[answers.length];
        };
        node.driver.answered = ({ method, code }) => {
          if (method !== 'NodePublishVolume') return;
          answers.push(code);
          assert.deepEqual(seen(), before, `after answer ${code}`);
          if (code === 0) resolve();
        };
      });
      const failed = await node.until('the failure to be said', ({ pods }) => {
        return pods[0]?.volumes[0]?.reason?.operation === 'publish';
      });
      assert.equal(failed.pods[0]?.ready, true, 'the pod has its volume all the time');
      await settled;
      await node.untilMounted(1);
      assert.deepEqual(answers, [INTERNAL, INTERNAL, 0]);
      assert.deepEqual(seen(), before, 'nor was the whole volume walked again');
      assert.ok(node.driver.calls.every(({ method }) => !/^NodeUn/.test(method)));
      node.remove('pod');
      await node.untilEmpty();
    }),
);

const FAILURES = [
  { kind: 'refuse', code: INTERNAL },
  { kind: 'lose', code: INTERNAL },
] as const;
