/** A pod of two containers that Debian's podman runs on volumes prepared here: from its start to nothing left of it. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loopDevicesBelow, mountsBelow } from '../demo/machine.ts';
import { until } from '../until.ts';
import { mooring } from './mooring-command.ts';
import { inPrivateNamespace } from './namespace.ts';
import { createPodman, noPodman, type Podman } from './podman.ts';
import { onRealNode, type RealNode, targetOf } from './real-node.ts';

const skip = inPrivateNamespace() || noPodman('catatonit');

const WEB = `apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: web-1, labels: { tier: front } }
spec:
  containers:
    - name: main
      image: none
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: data, mountPath: /part, subPath: part/deeper }
        - { name: settings, mountPath: /mode, subPath: mode }
        - { name: all, mountPath: /all, readOnly: true }
    - name: side
      image: none
      volumeMounts: [{ name: data, mountPath: /data, readOnly: true }, { name: settings, mountPath: /settings }]
  volumes:
    - { name: data, persistentVolumeClaim: { claimName: data } }
    - { name: settings, configMap: { name: settings } }
    - name: all
      projected:
        sources:
          - secret: { name: keys }
          - configMap: { name: settings }
          - downwardAPI: { items: [{ path: labels, fieldRef: { fieldPath: metadata.labels } }] }
---
apiVersion: v1
kind: Secret
metadata: { name: keys, namespace: default }
stringData: { key: opens }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: default }
data: { mode: fast }
`;

/** A line for each of its starts, and then it goes on writing. */
const MAIN =
  'echo start >> /data/starts; cat /mode >> /part/modes; while :; do echo x >> /data/beats; sleep 1; done';
const SIDE = 'while :; do sleep 1; done';

/** As a person does by hand, with what is printed for podman. */
async function start(node: RealNode, podman: Podman, name: string, inside: string): Promise<void> {
  const printed = await mooring(node, 'mounts', 'web', '-c', name, '-o', 'podman');
  assert.equal(printed.status, 0, printed.stdout);
  const file = join(node.scratch, `arguments-${name}`);
  writeFileSync(file, printed.stdout);
  await podman.shell(
    `eval "podman run -d --name web-${name} $(tr '\\n' ' ' < "$file") ${podman.image} /bin/sh -c \\"\\$inside\\""`,
    { file, inside },
  );
}

function linesOf(path: string): number {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0;
}

async function beats(place: string): Promise<void> {
  const before = linesOf(join(place, 'beats'));
  await until('the container to write', () => linesOf(join(place, 'beats')) > before);
}

test(
  'two containers write, are restarted, live on over kill -9 of the agent, and leave nothing',
  { skip },
  () =>
    onRealNode(async (node) => {
      const podman = await createPodman(join(node.scratch, 'podman'));
      try {
        node.put('data', (await node.driver.create('data', '16Mi')).yaml);
        node.put('web', WEB);
        await node.startAgent();
        const waited = await mooring(node, 'wait', 'web', '--timeout', '2m');
        assert.equal(waited.status, 0, waited.stdout);
        await start(node, podman, 'main', MAIN);
        await start(node, podman, 'side', SIDE);
        const place = targetOf(node, 'data');
        await beats(place);
        assert.match(
          await podman.run('exec', 'web-main', 'cat', '/all/key', '/all/mode', '/all/labels'),
          /opensfasttier="front"/,
        );
        assert.match(
          await podman.run('exec', 'web-side', 'cat', '/data/starts', '/settings/mode'),
          /^start\nfast/,
        );
        await podman.run('restart', '-t', '0', 'web-main');
        await until('the container to start again', () => linesOf(join(place, 'starts')) === 2);
        await beats(place);
        assert.equal(
          readFileSync(join(place, 'part/deeper/modes'), 'utf8'),
          'fastfast',
          'each start has its parts',
        );
        await node.killAgent();
        await beats(place);
        // Its pod is removed while nobody looks, and its containers run on.
        node.remove('web');
        await node.startAgent();
        await node.until('the container to be named', ({ pods }) =>
          pods.some(({ volumes }) => volumes.some(({ reason }) => reason?.code === 'volume-held')),
        );
        const early = await mooring(node, 'release', 'web', '--timeout', '3s');
        assert.equal(early.status, 124, early.stdout);
        assert.match(early.stdout, /pid \d+ \((sh|sleep)\) has it at \/data in its own mount namespace/);
        await beats(place);
        await podman.run('rm', '--force', '--time', '0', 'web-main', 'web-side');
        const ended = await mooring(node, 'release', 'web', '--timeout', '2m');
        assert.equal(ended.status, 0, ended.stdout);
        await node.untilEmpty();
        assert.deepEqual([...mountsBelow(node.root), ...loopDevicesBelow(node.scratch)], []);
      } finally {
        await podman.close();
      }
    }),
);
