/**
 * A node that goes from the kubelet's own volume manager to Mooring and back, with pods that run all the time: not one
 * unmount, and what `mooring plan` says is what comes.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import type { PlanDocument } from '../../agent/plan/plan-document.ts';
import { runCommand } from '../demo/child-process.ts';
import { loopDevicesBelow, mountsBelow } from '../demo/machine.ts';
import { goPrograms } from './go-program.ts';
import { csiDriver, documents } from './manifests.ts';
import { startRegistrar } from './mock.ts';
import type { Program } from './program.ts';
import { inWorld, LOOPFILE_COMMAND, type World } from './world.ts';

const { skip, files } = goPrograms('bench-kubelet', 'registrar');

const DRIVER = 'loopfile.mooring.dev';
const UIDS = ['33333333-3333-4333-8333-333333333333', '44444444-4444-4444-8444-444444444444'] as const;
const ALL = ['data', 'key', 'scratch', 'settings'];

interface Kubelet {
  readonly program: Program;
  up(objects: readonly unknown[]): Promise<void>;
  down(): Promise<void>;
}

/** The kubelet's volume manager with all that it finds below the root. It has no CSIDriver but its own. */
async function startKubelet(world: World): Promise<Kubelet> {
  const flags = ['--root', world.root, '--driver', DRIVER, '--log', world.logOf('klog')];
  const program = world.start('kubelet', [files['bench-kubelet'], ...flags]);
  await program.line('a registered driver', (line) => line.includes('"done":"registered"'));
  let asked = 0;
  const ask = async (command: object): Promise<void> => {
    asked += 1;
    const id = asked;
    program.write(JSON.stringify({ id, ...command }));
    const line = await program.line('an answer', (one) => one.startsWith(`{"id":${id},`));
    assert.equal((JSON.parse(line) as { error?: string }).error, undefined);
  };
  return {
    program,
    up: (objects) => ask({ do: 'up', objects }),
    down: () => ask({ do: 'down', pods: UIDS }),
  };
}

/** Two pods with a volume of loopfile and three of the machine each; the driver runs and is registered. */
async function preparePods(world: World): Promise<string> {
  const witness = world.witness(DRIVER);
  await world.startLoopfile(witness.behind);
  await witness.open();
  startRegistrar(world, files.registrar, witness);
  const storage = [];
  for (const index of UIDS.keys()) {
    const named = ['--pool', world.pool, '--name', `data-${index}`, '--size', '64Mi', '--yaml'];
    const made = await runCommand([...LOOPFILE_COMMAND, 'create', ...named]);
    assert.equal(made.code, 0, made.output);
    storage.push(made.output);
  }
  return documents(...storage, CONTENT, ...UIDS.map(podOf));
}

const CONTENT = `apiVersion: v1
kind: Secret
metadata: { name: key, namespace: default }
stringData: { key: from-the-secret }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: default }
data: { settings: from-the-map }
`;

function podOf(uid: string, index: number): string {
  const mounts = ALL.map((name) => `{ name: ${name}, mountPath: /${name} }`).join(', ');
  return `apiVersion: v1
kind: Pod
metadata: { name: pod-${index}, namespace: default, uid: ${uid} }
spec:
  containers: [{ name: main, image: one:1, volumeMounts: [${mounts}] }]
  volumes:
    - { name: data, persistentVolumeClaim: { claimName: data-${index} } }
    - { name: key, secret: { secretName: key } }
    - { name: scratch, emptyDir: { medium: Memory } }
    - { name: settings, configMap: { name: settings } }
`;
}

/** As an API server has them: a claim says how large its volume is, or a kubelet would grow it first. */
function objectsOf(manifests: string): readonly unknown[] {
  return parseAllDocuments(manifests).map((document) => {
    const object = document.toJS() as { readonly kind: string };
    const status = { capacity: { storage: '64Mi' } };
    return object.kind === 'PersistentVolumeClaim' ? { ...object, status } : object;
  });
}

const mountsOf = (world: World): readonly string[] =>
  mountsBelow(world.root)
    .map(({ mountId, target }) => `${mountId} ${target}`)
    .sort();

/** A kubelet writes a configMap on the disk, and Mooring into memory, mounted over what the kubelet wrote. */
const withoutConfigMaps = (mounts: readonly string[]): string[] =>
  mounts.filter((mount) => !mount.includes('kubernetes.io~configmap'));

/** Where a pod keeps what it wrote, and what it wrote there. */
const notesOf = (world: World): readonly (readonly [string, string])[] =>
  UIDS.flatMap((uid, index) => [
    [join(world.pods, uid, `volumes/kubernetes.io~csi/data-${index}/mount/note`), `data of ${index}`],
    [join(world.pods, uid, 'volumes/kubernetes.io~empty-dir/scratch/note'), `scratch of ${index}`],
  ]);

function checkNotes(world: World): void {
  for (const [path, text] of notesOf(world)) assert.equal(readFileSync(path, 'utf8'), text);
}

const actionsOf = (plan: PlanDocument): ReadonlySet<string> =>
  new Set(plan.volumes.flatMap(({ places }) => places.map(({ action }) => action)));

test(
  'from the kubelet to Mooring and back under running pods: no unmount, and the plan told it',
  { skip },
  () =>
    inWorld(async (world) => {
      const manifests = await preparePods(world);
      const objects = objectsOf(manifests);
      const kubelet = await startKubelet(world);
      await kubelet.up(objects);
      for (const [path, text] of notesOf(world)) writeFileSync(path, text);
      const mounts = mountsOf(world);
      assert.ok(mounts.length >= 6);
      await kubelet.program.end('SIGKILL');

      world.putManifest('pods.yaml', documents(csiDriver(DRIVER, 'attachRequired: false'), manifests));
      const { code, plan } = await world.plan('--adopt');
      assert.equal(code, 0);
      assert.deepEqual(actionsOf(plan), new Set(['repeat']));
      assert.deepEqual([plan.whole, plan.disturbed, plan.refusal], [true, 0, null]);
      assert.equal(plan.volumes.flatMap(({ places }) => places).length, UIDS.length * ALL.length);
      assert.deepEqual(mountsOf(world), mounts, 'a plan touches nothing');
      assert.ok(!existsSync(join(world.root, 'mooring')), 'a plan writes nothing');

      const agent = await world.startAgent('--adopt');
      for (const index of UIDS.keys()) await world.untilSettled(`pod-${index}`);
      const mine = mountsOf(world);
      assert.deepEqual(withoutConfigMaps(mine), mounts, 'the same mounts, not new ones');
      checkNotes(world);
      await agent.end('SIGTERM');
      const again = await world.plan('--adopt');
      assert.equal(again.code, 0);
      const left = again.plan.volumes.flatMap(({ places }) => places);
      // What an agent has proven needs no call, unless it ended before that was written down. Of files no record tells.
      for (const { name, action } of left) assert.ok(action === 'keep' || action === 'repeat', name);
      assert.ok(left.every(({ name, action }) => name !== 'scratch' || action === 'keep'));

      const back = await startKubelet(world);
      await back.up(objects);
      assert.deepEqual(mountsOf(world), mine, 'the same mounts under the kubelet');
      checkNotes(world);
      await back.down();
      assert.deepEqual(mountsBelow(world.root), []);
      assert.deepEqual(loopDevicesBelow(world.scratch), []);
    }),
);

test('a pod that nobody lists is to be taken down, and one that lost its volume ends with 3', { skip }, () =>
  inWorld(async (world) => {
    const manifests = await preparePods(world);
    const kubelet = await startKubelet(world);
    await kubelet.up(objectsOf(manifests));
    const mounts = mountsOf(world);
    await kubelet.program.end('SIGKILL');
    const [first = '', second = ''] = UIDS;

    // The first pod lost its volume of loopfile, the second one its manifest.
    const kept = documents(csiDriver(DRIVER, 'attachRequired: false'), manifests)
      .replace('    - { name: data, persistentVolumeClaim: { claimName: data-0 } }\n', '')
      .replace('{ name: data, mountPath: /data }, ', '')
      .replace(podOf(second, 1), '');
    world.putManifest('pods.yaml', kept);
    const { code, plan } = await world.plan('--adopt');
    assert.equal(code, 3);
    assert.equal(plan.disturbed, 1);
    const goes = plan.volumes.flatMap(({ places }) => places.filter(({ action }) => action === 'take-down'));
    assert.deepEqual(
      goes.map(({ pod, name, listed }) => `${pod.uid} ${name} ${listed}`).sort(),
      [
        `${first} data-0 true`,
        ...['data-1', 'key', 'scratch', 'settings'].map((name) => `${second} ${name} false`),
      ].sort(),
    );
    assert.deepEqual(mountsOf(world), mounts, 'a plan touches nothing');

    await world.startAgent('--adopt');
    await world.until('what was planned', ({ summary, pods }) => {
      const running = summary.operationsRunning + summary.operationsQueued;
      return running === 0 && pods.length === 1 && pods[0]?.volumes.length === ALL.length - 1;
    });
    const left = mountsBelow(world.pods).map(({ target }) => target.slice(world.pods.length + 1));
    assert.deepEqual(withoutConfigMaps(left).sort(), [
      `${first}/volumes/kubernetes.io~empty-dir/scratch`,
      `${first}/volumes/kubernetes.io~secret/key`,
    ]);
    world.removeManifest('pods.yaml');
    await world.untilEmpty();
  }),
);

test(
  'while a kubelet serves its sockets below the root an agent does not start, and a plan says so',
  { skip },
  () =>
    inWorld(async (world) => {
      const directory = join(world.root, 'pod-resources');
      for (const one of [directory, world.pods]) mkdirSync(one);
      const socket = join(directory, 'kubelet.sock');
      const server = createServer((one) => one.destroy());
      await new Promise<void>((resolve) => server.listen(socket, resolve));
      const { code, plan } = await world.plan('--adopt');
      assert.equal(code, 78);
      assert.deepEqual([plan.refusal?.code, plan.refusal?.blocker], ['kubelet-running', socket]);
      const agent = await world.startRefused();
      assert.equal(agent.code, 78);
      assert.match(agent.output, /kubelet-running/);
      await new Promise((resolve) => server.close(resolve));
      // The socket of one that has ended is in nobody's way.
      writeFileSync(socket, '');
      assert.equal((await world.plan('--adopt')).plan.refusal, null);
    }),
);
