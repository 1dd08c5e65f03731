/** Volumes that grow: what the claim is told, by the rights of a node alone (KEP-1790). The test is the resizer. */
import assert from 'node:assert/strict';
import { statfsSync } from 'node:fs';
import { test } from 'node:test';
import type { AdminClient } from '../cluster/admin-client.ts';
import { runCommand } from '../demo/child-process.ts';
import { mountsBelow } from '../demo/machine.ts';
import { inWorld, LOOPFILE_COMMAND } from '../interop/world.ts';
import { until } from '../until.ts';
import {
  clusterObstacle,
  deletePod,
  makeCsiDriver,
  makeImage,
  makePod,
  makeVolume,
  placeOf,
  sharedCluster,
} from './cluster-world.ts';

const skip = clusterObstacle();
const cluster = sharedCluster();
const DRIVER = 'grows.example.com';
const CLAIM = '/api/v1/namespaces/default/persistentvolumeclaims/grows';
const MINUTE = { waitMsMax: 60_000, lookEveryMs: 20 };
const MIB = 1024 ** 2;

interface ClaimStatus {
  readonly capacity: { readonly storage: string };
  readonly allocatedResourceStatuses?: { readonly storage?: string };
  readonly conditions?: readonly { readonly type: string; readonly message?: string }[];
}

async function statusOf(admin: AdminClient): Promise<ClaimStatus> {
  const { status } = await admin.request('GET', CLAIM);
  return status as ClaimStatus;
}

/** As external-resizer, when the storage has grown and it is the node's turn. */
async function askForMore(admin: AdminClient, storage: string): Promise<void> {
  await admin.request('MERGE', '/api/v1/persistentvolumes/grows', { spec: { capacity: { storage } } });
  await admin.request('MERGE', `${CLAIM}/status`, {
    status: {
      allocatedResources: { storage },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
      conditions: [
        { type: 'FileSystemResizePending', status: 'True' },
        { type: 'example.com/Other', status: 'True' },
      ],
    },
  });
}

const volumes = { data: { persistentVolumeClaim: { claimName: 'grows' } } };

function sizeOf(place: string): number {
  const { blocks, bsize } = statfsSync(place);
  return (blocks * bsize) / MIB;
}

test('a claim is told when its volume has grown, by the next life if need be, and when it cannot', {
  skip,
}, async () => {
  const { admin, plane, refusals } = await cluster();
  await makeCsiDriver(admin, DRIVER, false);
  await inWorld(async (world) => {
    await world.startLoopfile(world.socketOf(DRIVER), '--name', DRIVER, '--registry', world.registry);
    const image = ['--pool', world.pool, '--name', 'grows', '--size'];
    await makeVolume(admin, 'grows', DRIVER, await makeImage(world, 'grows'));
    const first = await world.startAgent();
    await world.untilRegistered(DRIVER);
    await makePod(admin, 'small', volumes);
    assert.ok(sizeOf(placeOf(await world.untilReady('small'), 'small')) < 64);
    await deletePod(admin, 'small');
    await world.untilEmpty();

    // A driver may grow what is mounted only with rights that not every machine gives: so it grows when it is staged.
    const grown = await runCommand([...LOOPFILE_COMMAND, 'grow', ...image, '128Mi']);
    assert.equal(grown.code, 0, grown.output);
    await askForMore(admin, '128Mi');
    await makePod(admin, 'large', volumes);
    const place = placeOf(await world.untilReady('large'), 'large');
    const isTold = async (): Promise<boolean> => (await statusOf(admin)).capacity.storage === '128Mi';
    await until('the claim has the size', isTold, MINUTE);
    assert.ok(sizeOf(place) > 64);
    const told = await statusOf(admin);
    assert.equal(told.allocatedResourceStatuses?.storage, undefined);
    assert.deepEqual(
      told.conditions?.map(({ type }) => type),
      ['example.com/Other'],
    );

    // As if it had died between the growth and its report.
    await first.end('SIGKILL');
    const status = {
      capacity: { storage: '64Mi' },
      allocatedResourceStatuses: { storage: 'NodeResizeInProgress' },
    };
    await admin.request('MERGE', `${CLAIM}/status`, { status });
    await world.startAgent();
    await until('the claim has the size again', isTold, MINUTE);

    // The storage has not grown, which the driver says in words that are not the last.
    await askForMore(admin, '192Mi');
    await makePod(admin, 'reader', volumes);
    const stateOf = async () => (await statusOf(admin)).allocatedResourceStatuses?.storage;
    const isBegun = async (): Promise<boolean> => (await stateOf()) === 'NodeResizeInProgress';
    await until('the claim is told that it has begun', isBegun, MINUTE);
    const { conditions = [], capacity } = await statusOf(admin);
    assert.equal(capacity.storage, '128Mi');
    assert.ok(!conditions.some(({ type }) => type === 'NodeResizeError'));
    const more = await runCommand([...LOOPFILE_COMMAND, 'grow', ...image, '192Mi']);
    assert.equal(more.code, 0, more.output);
    await until(
      'it has grown while it is used, or the claim is told that it cannot',
      async () => {
        const now = await statusOf(admin);
        const [error] = (now.conditions ?? []).filter(({ type }) => type === 'NodeResizeError');
        return now.capacity.storage === '192Mi' || /FAILED_PRECONDITION/.test(error?.message ?? '');
      },
      MINUTE,
    );
    for (const pod of ['large', 'reader']) await deletePod(admin, pod);
    await world.untilEmpty();
    assert.deepEqual(mountsBelow(world.root), []);
    assert.deepEqual(
      refusals().filter((one) => /^patch .*persistentvolumeclaims/.test(one)),
      [],
    );
  }, `kubeconfig: ${plane.nodeKubeconfig}`);
});
