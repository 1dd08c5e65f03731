/**
 * A volume from its claim to its end with nothing of ours but the node and the driver: the real scheduler, binder and
 * attach/detach controller, csi-provisioner, csi-attacher and csi-resizer. INV-4, INV-5, S3-7.
 */
import assert from 'node:assert/strict';
import { readFileSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AdminChange, AdminClient } from '../cluster/admin-client.ts';
import { runCommand } from '../demo/child-process.ts';
import { mountsBelow } from '../demo/machine.ts';
import { inWorld, LOOPFILE_COMMAND, NODE, type World } from '../interop/world.ts';
import { until } from '../until.ts';
import { claim, MINUTES } from './attached-world.ts';
import { clusterObstacle, deletePod, makeCsiDriver, placeOf, sharedCluster } from './cluster-world.ts';
import { type Moments, watchMoments } from './moments.ts';
import { sidecarObstacle, startSidecars } from './sidecars.ts';
import { type Attachment, ATTACHMENTS, attachmentsIn } from './test-attacher.ts';

const skip = clusterObstacle() || sidecarObstacle();
const cluster = sharedCluster();
const CORE = '/api/v1/namespaces/default';
const CLAIMS = `${CORE}/persistentvolumeclaims`;
const MIB = 1024 ** 2;

/** From the claim to its end, as the watches and the test itself tell it. */
const WHOLE_WAY = [
  'the claim is made',
  'the pod is made',
  'the volume is provisioned',
  'the claim is bound',
  'the pod is bound to the node',
  'on volumesInUse',
  'the VolumeAttachment is made',
  'attached',
  'on volumesAttached',
  'mounted',
  'the claim and the pod are told to go',
  'the pod is deleted',
  'the claim is gone',
  'unmounted',
  'off volumesInUse',
  'detached',
  'the volume is deleted',
];

interface Claim {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly volumeName?: string };
  readonly status?: {
    readonly phase?: string;
    readonly capacity?: { readonly storage: string };
    readonly allocatedResourceStatuses?: { readonly storage?: string };
    readonly conditions?: readonly { readonly type: string }[];
  };
}

interface NodeStatus {
  readonly metadata: { readonly name: string };
  readonly status: {
    readonly volumesInUse?: readonly string[];
    readonly volumesAttached?: readonly { readonly name: string }[];
  };
}

/** A class whose volumes are made on the node that the scheduler has chosen; the kernel grows xfs while it is used. */
async function makeClass(admin: AdminClient, name: string, driver: string): Promise<void> {
  await admin.request('POST', '/apis/storage.k8s.io/v1/storageclasses', {
    metadata: { name },
    provisioner: driver,
    volumeBindingMode: 'WaitForFirstConsumer',
    reclaimPolicy: 'Delete',
    allowVolumeExpansion: true,
    parameters: { 'csi.storage.k8s.io/fstype': 'xfs' },
  });
}

async function makeClaim(admin: AdminClient, name: string, storageClassName: string): Promise<void> {
  const resources = { requests: { storage: '320Mi' } };
  const spec = { accessModes: ['ReadWriteOnce'], storageClassName, resources };
  await admin.request('POST', CLAIMS, { metadata: { name }, spec });
}

/** It is bound to no node: the scheduler is asked. */
async function makePod(admin: AdminClient, name: string, claimName: string): Promise<void> {
  const volumeMounts = [{ name: 'data', mountPath: '/data' }];
  await admin.request('POST', `${CORE}/pods`, {
    metadata: { name },
    spec: {
      serviceAccountName: 'default',
      tolerations: [{ operator: 'Exists' }],
      containers: [{ name: 'c', image: 'none', volumeMounts }],
      volumes: [{ name: 'data', ...claim(claimName).data }],
    },
  });
}

async function claimIn(admin: AdminClient, name: string): Promise<Claim> {
  return (await admin.request('GET', `${CLAIMS}/${name}`)) as unknown as Claim;
}

async function hasEvent(admin: AdminClient, claimName: string, reason: string): Promise<boolean> {
  const selector = encodeURIComponent(`involvedObject.name=${claimName},reason=${reason}`);
  const { items } = await admin.request('GET', `${CORE}/events?fieldSelector=${selector}`);
  return (items as readonly unknown[]).length > 0;
}

/** What a pod's whole way is seen by, for one pod with one volume of this driver. */
function watchAll(admin: AdminClient, driver: string): Promise<Moments> {
  let wasInUse = false;
  const typed = <T>({ object }: AdminChange): T => object as unknown as T;
  return watchMoments(admin, {
    [`${CORE}/pods`]: (change) => {
      if (change.type === 'DELETED') return 'the pod is deleted';
      return typed<{ spec: { nodeName?: string } }>(change).spec.nodeName && 'the pod is bound to the node';
    },
    [CLAIMS]: (change) => {
      if (change.type === 'DELETED') return 'the claim is gone';
      return typed<Claim>(change).status?.phase === 'Bound' ? 'the claim is bound' : undefined;
    },
    '/api/v1/persistentvolumes': ({ type }) =>
      ({ ADDED: 'the volume is provisioned', DELETED: 'the volume is deleted' })[type],
    [ATTACHMENTS]: (change) => {
      const { spec, status } = typed<Attachment>(change);
      if (spec.attacher !== driver) return undefined;
      if (change.type !== 'MODIFIED')
        return change.type === 'ADDED' ? 'the VolumeAttachment is made' : 'detached';
      return status?.attached === true ? 'attached' : undefined;
    },
    '/api/v1/nodes': (change) => {
      const { metadata, status } = typed<NodeStatus>(change);
      if (metadata.name !== NODE) return undefined;
      const isInUse = (status.volumesInUse ?? []).length > 0;
      if (wasInUse && !isInUse) return 'off volumesInUse';
      wasInUse ||= isInUse;
      if ((status.volumesAttached ?? []).length > 0) return 'on volumesAttached';
      return isInUse ? 'on volumesInUse' : undefined;
    },
  });
}

interface Story {
  readonly world: World;
  readonly admin: AdminClient;
  readonly driver: string;
}

/** The node, the driver in its attach mode and the three sidecars; a class of the driver's name. */
function withSidecars(
  sentence: string,
  { driver, flags = [] }: { readonly driver: string; readonly flags?: readonly string[] },
  tell: (story: Story, told: (line: string) => void) => Promise<void>,
): void {
  test(sentence, { skip }, async (t) => {
    const shared = await cluster();
    const { admin, plane } = shared;
    await makeCsiDriver(admin, driver, true);
    await makeClass(admin, driver, driver);
    await inWorld(async (world) => {
      const own = ['--name', driver, '--registry', world.registry, '--attach', ...flags];
      await world.startLoopfile(world.socketOf(driver), ...own);
      await world.startAgent();
      await world.untilRegistered(driver);
      startSidecars(world, shared, world.socketOf(driver));
      await tell({ world, admin, driver }, (line) => t.diagnostic(line));
      assert.doesNotMatch(await volumesIn(world), /pvc-/, 'the driver has no volume any more');
      assert.deepEqual(shared.refusals(), []);
    }, `kubeconfig: ${plane.nodeKubeconfig}`);
  });
}

async function volumesIn({ pool }: World): Promise<string> {
  const { code, output } = await runCommand([...LOOPFILE_COMMAND, 'list', '--pool', pool]);
  assert.equal(code, 0, output);
  return output;
}

/** What is over once the volume is deleted, which nobody does before it is detached. */
async function untilGone({ world, admin, driver }: Story): Promise<void> {
  await world.untilEmpty();
  assert.deepEqual(mountsBelow(world.root), []);
  await until(
    'the volume is deleted',
    async () => {
      const { items } = (await admin.request('GET', '/api/v1/persistentvolumes')) as {
        readonly items: readonly { readonly spec: { readonly csi?: { readonly driver: string } } }[];
      };
      return !items.some(({ spec }) => spec.csi?.driver === driver);
    },
    MINUTES,
  );
  assert.deepEqual(
    (await attachmentsIn(admin)).filter(({ spec }) => spec.attacher === driver),
    [],
  );
}

withSidecars(
  'a claim is provisioned, attached, mounted and written, and all of it is undone, each by those whose part it is',
  { driver: 'whole-way.example.com' },
  async (story, told) => {
    const { world, admin, driver } = story;
    const moments = await watchAll(admin, driver);
    try {
      moments.note('the claim is made');
      await makeClaim(admin, 'way', driver);
      moments.note('the pod is made');
      await makePod(admin, 'way', 'way');
      const ready = await world.untilReady('way');
      moments.note('mounted');
      const file = join(placeOf(ready, 'way'), 'word');
      writeFileSync(file, 'kept');
      assert.equal(readFileSync(file, 'utf8'), 'kept');
      assert.equal(mountsBelow(world.root).filter(({ target }) => target.includes('/pods/')).length, 1);
      assert.match(await volumesIn(world), /pvc-/, 'the driver has it');

      // The claim first: it is held back while the pod uses it.
      moments.note('the claim and the pod are told to go');
      await admin.request('DELETE', `${CLAIMS}/way`);
      await deletePod(admin, 'way');
      await world.untilEmpty();
      moments.note('unmounted');
      await untilGone(story);
    } finally {
      moments.end();
    }
    for (const line of moments.lines()) told(line);
    // Each is told by another watch, so nothing is made of their order: the driver refuses what comes too early.
    assert.deepEqual(moments.seen().toSorted(), [...WHOLE_WAY].toSorted());
  },
);

withSidecars(
  'a claim that is grown under its pod has the size when the file system has it; one too large may be made less',
  { driver: 'grows-really.example.com', flags: ['--capacity-bytes', String(2_048 * MIB)] },
  async (story, told) => {
    const { world, admin, driver } = story;
    await makeClaim(admin, 'growing', driver);
    await makePod(admin, 'growing', 'growing');
    const place = placeOf(await world.untilReady('growing'), 'growing');
    const sizeOf = (): number => {
      const { blocks, bsize } = statfsSync(place);
      return blocks * bsize;
    };
    writeFileSync(join(place, 'word'), 'kept');
    const sizes = [sizeOf()];
    const now = async () => (await claimIn(admin, 'growing')).status;
    const stateOf = async () => (await now())?.allocatedResourceStatuses?.storage;
    const ask = (storage: string) =>
      admin.request('MERGE', `${CLAIMS}/growing`, { spec: { resources: { requests: { storage } } } });
    /** A plain node identity reads a claim again after a minute and a half, or when another pod comes that has it. */
    const grow = async (storage: string, reader: string): Promise<void> => {
      const beginMs = performance.now();
      const since = (): number => Math.round(performance.now() - beginMs);
      await ask(storage);
      await until(
        'it is the turn of the node',
        async () => (await stateOf()) === 'NodeResizePending',
        MINUTES,
      );
      told(`${storage} asked for, until csi-resizer has done its part: ${since()} ms`);
      await makePod(admin, reader, 'growing');
      const isTold = async () => (await now())?.capacity?.storage === storage;
      await until(`the claim has ${storage}`, isTold, MINUTES);
      told(`${storage} asked for, until the claim has it: ${since()} ms`);
      sizes.push(sizeOf());
    };
    await grow('640Mi', 'reader');
    // The pool has no room for it, which the driver says as one that will not have it later either.
    await ask('100Gi');
    await until('it is infeasible', async () => (await stateOf()) === 'ControllerResizeInfeasible', MINUTES);
    // Only then has csi-resizer put what it wrote into its own cache, over whatever the watch has told meanwhile: a
    // wish that comes in between is not seen before it tries again, five minutes later.
    await until('csi-resizer has said so', () => hasEvent(admin, 'growing', 'VolumeResizeFailed'), MINUTES);
    assert.equal((await now())?.capacity?.storage, '640Mi');
    await grow('704Mi', 'another');
    assert.deepEqual(
      sizes.toSorted((a, b) => a - b),
      sizes,
    );
    assert.equal(new Set(sizes).size, 3, `each larger than the one before: ${sizes.join(', ')}`);
    assert.equal(await stateOf(), undefined);
    assert.deepEqual((await now())?.conditions ?? [], []);
    assert.equal(readFileSync(join(place, 'word'), 'utf8'), 'kept');

    await admin.request('DELETE', `${CLAIMS}/growing`);
    for (const pod of ['growing', 'reader', 'another']) await deletePod(admin, pod);
    await untilGone(story);
  },
);
