/** What the agent has on the real disk of a pod with a secret: nobody but root writes it, and no secret is in it. */
import assert from 'node:assert/strict';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode } from './real-node.ts';

const skip = inPrivateNamespace();
const CANARY = 'canary-19c4';
const WRITABLE_BY_OTHERS = 0o022;

const MANIFEST = `apiVersion: v1
kind: Secret
metadata: { name: keys, namespace: default }
stringData: { password: ${CANARY} }
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
        - { name: data, mountPath: /part, subPath: a/b }
        - { name: keys, mountPath: /keys }
        - { name: all, mountPath: /all }
        - { name: scratch, mountPath: /scratch }
  volumes:
    - { name: data, persistentVolumeClaim: { claimName: data } }
    - { name: keys, secret: { secretName: keys } }
    - { name: all, projected: { sources: [{ secret: { name: keys } }] } }
    - { name: scratch, emptyDir: {} }
`;

/** Everything below that is of the file system of the root: what volumes hold is not the agent's. */
function own(root: string): readonly string[] {
  const { dev } = lstatSync(root);
  const found: string[] = [];
  const walk = (path: string): void => {
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts === undefined || facts.dev !== dev) return;
    found.push(path);
    if (facts.isDirectory()) for (const name of readdirSync(path)) walk(join(path, name));
  };
  walk(root);
  return found;
}

test(
  'what is on disk can be written by root alone, an emptyDir excepted, and tells no secret',
  { skip },
  () =>
    onRealNode(async (node) => {
      node.put('data', (await node.driver.create('data', '16Mi')).yaml);
      node.put('web', MANIFEST);
      await node.startAgent();
      await node.untilMounted(4);
      await node.untilRecorded();
      const paths = own(node.root);
      const open = paths.filter((path) => {
        const facts = lstatSync(path);
        // The mode of a link is nothing to anybody, and a socket of a driver is the driver's.
        return !facts.isSymbolicLink() && !facts.isSocket() && (facts.mode & WRITABLE_BY_OTHERS) !== 0;
      });
      assert.deepEqual(open, [join(node.root, 'pods/web-1/volumes/kubernetes.io~empty-dir/scratch')]);
      assert.equal(
        lstatSync(join(node.root, 'pods/web-1')).mode & 0o777,
        0o750,
        'and that is below closed ones',
      );
      const files = paths.filter((path) => lstatSync(path).isFile());
      assert.ok(
        files.some((path) => path.includes('/mooring/records/')),
        'records are among them',
      );
      assert.deepEqual(
        files.filter((path) => readFileSync(path).includes(CANARY)),
        [],
        'a secret is in the memory of its tmpfs alone',
      );
      assert.ok(!node.log().includes(CANARY));
      node.remove('web');
      await node.untilEmpty();
    }),
);
