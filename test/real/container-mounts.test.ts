/** What containers are given, on the real kernel: waited for, printed, and bound as printed by Debian's podman. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ContainerMounts, MountsDocument } from '../../agent/mounts/mounts-document.ts';
import { loopDevicesBelow, mountsBelow } from '../demo/machine.ts';
import { beginMooring, mooring } from './mooring-command.ts';
import { inPrivateNamespace } from './namespace.ts';
import { createPodman, noPodman } from './podman.ts';
import { onRealNode, type RealNode } from './real-node.ts';

const skip = inPrivateNamespace();
/** What means something to a shell, to podman and to a unit. */
const ODD = `a b,c:d"e'f%n$g`;

const webYaml = (host: string): string => `apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: web-1 }
spec:
  initContainers:
    - { name: first, image: none, volumeMounts: [{ name: tmp, mountPath: /tmp }] }
  containers:
    - name: main
      image: none
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: data, mountPath: /data-ro, readOnly: true, mountPropagation: HostToContainer }
        - { name: keys, mountPath: /keys }
        - { name: tmp, mountPath: /tmp }
        - { name: host, mountPath: ${JSON.stringify(`/host/${ODD.replace(':', '')}`)} }
      volumeDevices: [{ name: raw, devicePath: /dev/raw }]
    - name: parts
      image: none
      env:
        - { name: POD, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
        - { name: WHERE, value: logs/$(POD) }
      volumeMounts:
        - { name: data, mountPath: /logs, subPathExpr: $(WHERE) }
        - { name: keys, mountPath: /key, subPath: key }
        - { name: tmp, mountPath: /tmp, subPath: tmp }
        - { name: host, mountPath: /file, subPath: file }
  volumes:
    - { name: data, persistentVolumeClaim: { claimName: files } }
    - { name: raw, persistentVolumeClaim: { claimName: raw } }
    - { name: keys, secret: { secretName: keys } }
    - { name: tmp, emptyDir: { medium: Memory } }
    - { name: host, hostPath: { path: ${JSON.stringify(host)} } }
---
apiVersion: v1
kind: Secret
metadata: { name: keys, namespace: default }
stringData: { key: opens }
`;

async function say(node: RealNode, ...given: readonly string[]): Promise<string> {
  const { status, stdout } = await mooring(node, ...given);
  assert.equal(status, 0, stdout);
  return stdout;
}

async function containerIn(node: RealNode, name: string): Promise<ContainerMounts> {
  const document = JSON.parse(await say(node, 'mounts', 'web', '-o', 'json')) as MountsDocument;
  return document.containers.find((one) => one.name === name) ?? assert.fail(name);
}

async function firstPath(node: RealNode): Promise<string> {
  const { mounts } = await containerIn(node, 'main');
  return mounts[0]?.hostPath ?? assert.fail('no path');
}

/** The pod with all its volumes; `mooring wait` is begun before the agent. */
async function onWeb(tell: (node: RealNode, host: string) => Promise<void>): Promise<void> {
  await onRealNode(async (node) => {
    const host = join(node.scratch, ODD);
    mkdirSync(host);
    writeFileSync(join(host, 'file'), 'of the host');
    node.put('files', (await node.driver.create('files', '16Mi')).yaml);
    node.put('raw', (await node.driver.create('raw', String(4 * 1024 * 1024), { mode: 'Block' })).yaml);
    const waiting = beginMooring(node, 'wait', 'default/web', '--timeout', '5m');
    await waiting.begun;
    assert.match(waiting.said(), /^waits: the agent is not running/);
    await node.startAgent();
    node.put('web', webYaml(host));
    assert.equal(await waiting.ended, 0, waiting.said());
    assert.match(waiting.said(), /pod default\/web: all 5 volumes are there\n$/);
    await tell(node, host);
    node.remove('web');
    // On a busy machine it is noticed late.
    await node.until('the pod is not wanted', ({ pods }) => pods.every(({ wanted }) => !wanted));
    const releasing = beginMooring(node, 'release', 'web', '--timeout', '5m');
    assert.equal(await releasing.ended, 0, releasing.said());
    assert.match(releasing.said(), /nothing is left of it\n$/);
    await node.untilEmpty();
    assert.deepEqual([...mountsBelow(node.root), ...loopDevicesBelow(node.scratch)], []);
    assert.equal(readFileSync(join(host, 'file'), 'utf8'), 'of the host');
    rmSync(host, { recursive: true });
  });
}

test('every path that is told is what stands there, and a device is one', { skip }, () =>
  onWeb(async (node, host) => {
    const { mounts, devices } = await containerIn(node, 'main');
    const mounted = new Set<string>(mountsBelow(node.root).map(({ target }) => target));
    for (const { volume, hostPath } of mounts) {
      assert.ok(hostPath !== null, volume);
      if (volume === 'host') assert.equal(hostPath, host);
      else assert.ok(mounted.has(hostPath), `${hostPath} is mounted`);
    }
    assert.ok(statSync(devices[0]?.hostPath ?? '').isBlockDevice());
    const { mounts: inParts } = await containerIn(node, 'parts');
    const parts = inParts.map(({ hostPath }) => hostPath ?? assert.fail('no path'));
    for (const part of parts) assert.ok(mounted.has(part), `${part} is mounted`);
    const [logs = '', key = '', tmp = '', file = ''] = parts;
    assert.deepEqual([readFileSync(key, 'utf8'), readFileSync(file, 'utf8')], ['opens', 'of the host']);
    const whole = (name: string): string => mounts.find(({ volume }) => volume === name)?.hostPath ?? '';
    for (const [part, path] of [
      [logs, join(whole('data'), 'logs/web')],
      [tmp, join(whole('tmp'), 'tmp')],
    ] as const) {
      writeFileSync(join(part, 'written'), 'through the bind');
      assert.equal(readFileSync(join(path, 'written'), 'utf8'), 'through the bind');
    }
    const ids = mountIdsOf(parts);
    // A volume that is there but not proven to be is no path: nobody starts a container on what may be empty.
    await node.killAgent();
    await node.startAgent();
    await node.untilMounted(5);
    assert.deepEqual((await containerIn(node, 'main')).mounts, mounts);
    assert.deepEqual(mountIdsOf(parts), ids);
  }),
);

/** That they are the same proves that nothing was bound again. */
function mountIdsOf(targets: readonly string[]): readonly (string | undefined)[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return targets.map((target) => lines.find((line) => line.split(' ')[4] === target)?.split(' ')[0]);
}

const oneYaml = (source: string): string => `apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: web-1 }
spec:
  containers: [{ name: main, image: none, volumeMounts: [{ name: data, mountPath: /data, subPath: part }] }]
  volumes: [{ name: data, ${source} }]
`;

const CHANGED = 'a volume of another kind under its name is bound in the place of the one before, which goes';

test(CHANGED, { skip }, () =>
  onRealNode(async (node) => {
    const host = join(node.scratch, 'host');
    mkdirSync(host);
    const sources = ['emptyDir: { medium: Memory }', `hostPath: { path: ${host} }`, 'emptyDir: {}'];
    await node.startAgent();
    for (const [turn, source] of sources.entries()) {
      node.put('web', oneYaml(source));
      // An agent that is killed in the middle of it has to find whose the bind is.
      if (turn > 0) await node.killAgent();
      if (turn > 0) await node.startAgent();
      const [kind = ''] = source.split(':');
      await node.until(`the ${kind} alone`, ({ volumes }) => {
        return volumes.length === 1 && volumes[0]?.id.includes(PLUGIN[kind] ?? '') === true;
      });
      await node.untilMounted(1);
      const bind = await firstPath(node);
      writeFileSync(join(bind, `turn-${turn}`), kind);
      assert.equal(mountsBelow(node.root).filter(({ target }) => target === bind).length, 1);
    }
    assert.deepEqual(readdirSync(join(host, 'part')), ['turn-1']);
    node.remove('web');
    await node.untilEmpty();
    assert.deepEqual(mountsBelow(node.root), []);
    assert.equal(readFileSync(join(host, 'part/turn-1'), 'utf8'), 'hostPath', 'what is in a volume stays');
    rmSync(host, { recursive: true });
  }),
);

const PLUGIN: Readonly<Record<string, string>> = { emptyDir: 'empty-dir', hostPath: 'host-path' };

test('podman binds what is printed for it, as it is wished', { skip: skip || noPodman() }, () =>
  onWeb(async (node) => {
    const podman = await createPodman(join(node.scratch, 'podman'));
    try {
      const file = join(node.scratch, 'arguments');
      writeFileSync(file, await say(node, 'mounts', 'web', '-c', 'main', '-o', 'podman'));
      const inside =
        'echo written > /data/file; cat /data-ro/file /keys/key /host/*/file; ls -l /dev/raw; ' +
        'for one in /data-ro /keys; do touch $one/new 2>/dev/null && echo wrote to $one; done; ' +
        'while read -r line; do case $line in *" /data-ro "*) echo "$line";; esac; done < /proc/self/mountinfo';
      const said = await podman.shell(
        `eval "podman run --rm $(tr '\\n' ' ' < "$file") ${podman.image} /bin/sh -c \\"\\$inside\\""`,
        { file, inside },
      );
      assert.match(said, /^written\nopens?\n?of the hostbrw/);
      assert.doesNotMatch(said, /wrote to/);
      assert.match(said, / \/data-ro ro\S* /);
      const place = await firstPath(node);
      assert.equal(readFileSync(join(place, 'file'), 'utf8'), 'written\n');
      assert.equal(existsSync(join(place, 'new')), false);
    } finally {
      await podman.close();
    }
  }),
);

const PLAY = 'podman kube play makes the pod that is rendered for it';

test(PLAY, { skip: skip || noPodman('catatonit') }, () =>
  onWeb(async (node) => {
    const podman = await createPodman(join(node.scratch, 'podman'));
    try {
      const inside =
        'echo played > /data/file; cat /keys/key; ls -l /dev/raw; touch /data-ro/new || echo read-only';
      const manifest = join(node.scratch, 'm/web.yaml');
      const rendered = JSON.parse(await say(node, 'render', manifest)) as {
        spec: {
          hostNetwork?: boolean;
          restartPolicy?: string;
          initContainers?: object[];
          containers: object[];
        };
      };
      // What a person would have written into the manifest, had it been for this image and a machine without a network.
      const { spec } = rendered;
      const runs = { image: podman.image, command: ['/bin/sh', '-c', inside] };
      Object.assign(spec, { hostNetwork: true, restartPolicy: 'Never', initContainers: [] });
      Object.assign(spec.containers[0] ?? {}, runs);
      const inParts = 'cat /key /file; echo logged > /logs/line; ls /logs /tmp';
      Object.assign(spec.containers[1] ?? {}, { ...runs, command: ['/bin/sh', '-c', inParts] });
      const file = join(node.scratch, 'rendered.json');
      writeFileSync(file, JSON.stringify(rendered));
      await podman.run('play', 'kube', file);
      await podman.run('wait', 'web-main');
      assert.match(await podman.run('logs', 'web-main'), /opens[\s\S]*brw[\s\S]*read-only/);
      await podman.run('wait', 'web-parts');
      assert.match(await podman.run('logs', 'web-parts'), /^opensof the host/);
      const place = await firstPath(node);
      assert.equal(readFileSync(join(place, 'file'), 'utf8'), 'played\n');
      assert.equal(readFileSync(join(place, 'logs/web/line'), 'utf8'), 'logged\n');
    } finally {
      await podman.close();
    }
  }),
);
