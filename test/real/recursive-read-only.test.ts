/**
 * Recursive read-only on the real kernel: what is told of a container's mounts is enough for a runtime that nobody here
 * wrote to refuse what it has to refuse, also of what somebody has mounted below the volume.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ContainerMount, MountsDocument } from '../../agent/mounts/mounts-document.ts';
import { mooring } from './mooring-command.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode } from './real-node.ts';
import { makeSmallRoot } from './small-root.ts';

const skip =
  inPrivateNamespace() || (spawnSync('runc', ['--version']).status !== 0 && 'runc is not installed');

const podYaml = (directory: string): string => `apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: web-1 }
spec:
  containers:
    - name: main
      image: none
      volumeMounts:
        - { name: data, mountPath: /rw }
        - { name: data, mountPath: /ro, readOnly: true }
        - { name: data, mountPath: /if, readOnly: true, recursiveReadOnly: IfPossible }
        - { name: data, mountPath: /all, readOnly: true, recursiveReadOnly: Enabled }
  volumes: [{ name: data, hostPath: { path: ${directory}, type: Directory } }]
`;

/** The words of the OCI runtime specification for what a mount is told to be. */
function ociMount({ containerPath, hostPath, readOnly, recursiveReadOnly }: ContainerMount): object {
  const access = readOnly ? [recursiveReadOnly === 'no' ? 'ro' : 'rro'] : ['rw'];
  return {
    destination: containerPath,
    type: 'bind',
    source: hostPath,
    options: ['rbind', 'rprivate', ...access],
  };
}

/** A bundle with the least that runc wants on a test machine. */
function makeBundle(directory: string, mounts: readonly ContainerMount[], script: string): void {
  mkdirSync(directory);
  makeSmallRoot(join(directory, 'rootfs'));
  execFileSync('runc', ['spec'], { cwd: directory });
  const file = join(directory, 'config.json');
  const config = JSON.parse(readFileSync(file, 'utf8'));
  const namespaces = [{ type: 'mount' }, { type: 'pid' }];
  const own = (config.mounts as { type: string; destination: string }[]).filter(
    ({ type, destination }) => type !== 'cgroup' && destination !== '/sys',
  );
  const changed = {
    ...config,
    hostname: '',
    process: { ...config.process, terminal: false, rlimits: [], args: ['/bin/sh', '-c', script] },
    root: { path: 'rootfs', readonly: false },
    mounts: [...own, ...mounts.map(ociMount)],
    linux: { namespaces },
  };
  writeFileSync(file, JSON.stringify(changed));
}

const PLACES = ['/rw', '/ro', '/if', '/all'].flatMap((place) => [place, `${place}/below`]);
const SCRIPT = `for place in ${PLACES.join(' ')}; do
  if (echo > $place/file) 2> /dev/null; then echo "$place written"; else echo "$place refused"; fi
done`;

test('what is mounted below a volume is read-only for a container exactly where the pod asks', { skip }, () =>
  onRealNode(async (node) => {
    const directory = join(node.scratch, 'data');
    mkdirSync(join(directory, 'below'), { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', 'below', join(directory, 'below')]);
    try {
      node.put('web', podYaml(directory));
      await node.startAgent();
      await node.untilMounted(1);
      const told = await mooring(node, 'mounts', 'web', '-o', 'json');
      assert.equal(told.status, 0, told.stdout);
      const [container] = (JSON.parse(told.stdout) as MountsDocument).containers;
      assert.ok(container);
      const bundle = join(node.scratch, 'bundle');
      makeBundle(bundle, container.mounts, SCRIPT);
      const run = spawnSync('runc', ['--root', join(node.scratch, 'runc'), 'run', `mooring-${process.pid}`], {
        cwd: bundle,
        encoding: 'utf8',
      });
      assert.equal(run.status, 0, run.stderr);
      const refused = new Set(['/ro', '/if', '/if/below', '/all', '/all/below']);
      assert.deepEqual(
        run.stdout.trimEnd().split('\n'),
        PLACES.map((place) => `${place} ${refused.has(place) ? 'refused' : 'written'}`),
      );
      // Podman has no word for it, so it is told nothing at all.
      const podman = await mooring(node, 'mounts', 'web', '-o', 'podman');
      assert.deepEqual([podman.status, podman.stdout], [1, '']);
    } finally {
      execFileSync('umount', [join(directory, 'below')]);
    }
  }),
);
