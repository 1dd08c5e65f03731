/**
 * Claims that are deleted around the moment when a pod comes: the real API server, and the real controller that holds
 * claims back while pods use them (S3-4, S3-5).
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AdminClient } from '../cluster/admin-client.ts';
import { mountsBelow } from '../demo/machine.ts';
import { inWorld, NODE, type World } from '../interop/world.ts';
import { until } from '../until.ts';
import {
  type Cluster,
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
const CORE = '/api/v1/namespaces/default';
const CLAIMS = `${CORE}/persistentvolumeclaims`;
const PROTECTION = 'kubernetes.io/pvc-protection';
const MINUTES = { waitMsMax: 300_000, lookEveryMs: 20 };

interface Claim {
  readonly metadata: {
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
  };
  readonly spec: { readonly volumeName?: string };
  readonly status: {
    readonly phase?: string;
    readonly conditions?: readonly { readonly type: string; readonly reason: string }[];
  };
}

async function claimIn(admin: AdminClient, name: string): Promise<Claim | undefined> {
  const { status, body } = await admin.tryRequest('GET', `${CLAIMS}/${name}`);
  return status === 200 ? (body as unknown as Claim) : undefined;
}

/** A bound claim that is being deleted and held back, as nobody had looked for pods yet. The answer: as it is then. */
async function makeDeletedClaim(admin: AdminClient, name: string, hold: () => void): Promise<Claim> {
  await until(
    'it is bound, and protected',
    async () => {
      const claim = await claimIn(admin, name);
      return claim?.status.phase === 'Bound' && claim.metadata.finalizers?.includes(PROTECTION) === true;
    },
    MINUTES,
  );
  hold();
  await admin.request('DELETE', `${CLAIMS}/${name}`);
  return (await claimIn(admin, name)) ?? assert.fail('it is held back');
}

/** What the controller does that has found no pod: its protection is taken away in the version that it has read. */
function takeProtection(admin: AdminClient, name: string, { metadata }: Claim) {
  const { resourceVersion } = metadata;
  return admin.tryRequest('MERGE', `${CLAIMS}/${name}`, { metadata: { resourceVersion, finalizers: [] } });
}

function withDriver(
  sentence: string,
  driver: string,
  tell: (world: World, shared: Cluster) => Promise<void>,
): void {
  test(sentence, { skip }, async () => {
    const shared = await cluster();
    await makeCsiDriver(shared.admin, driver, false);
    try {
      await inWorld(async (world) => {
        await world.startLoopfile(world.socketOf(driver), '--name', driver, '--registry', world.registry);
        await tell(world, shared);
      }, `kubeconfig: ${shared.plane.nodeKubeconfig}`);
    } finally {
      shared.stopControllers(false);
    }
  });
}

/** A volume with a claim of that name. */
async function makeDisk(world: World, admin: AdminClient, name: string, driver: string): Promise<void> {
  await makeVolume(admin, name, driver, await makeImage(world, name));
}

const claim = (claimName: string) => ({ data: { persistentVolumeClaim: { claimName } } });

withDriver(
  'by the rule of the kubelet a claim goes under a pod that is bound; with ours what was decided before it fails',
  'race.example.com',
  async (world, { admin, refusals, stopControllers }) => {
    // Nobody writes to it: the pod is bound, and the claim goes all the same.
    await makeDisk(world, admin, 'hole', 'race.example.com');
    const hole = await makeDeletedClaim(admin, 'hole', () => stopControllers(true));
    await makePod(admin, 'hole', claim('hole'));
    assert.equal((await takeProtection(admin, 'hole', hole)).status, 200);
    assert.equal(await claimIn(admin, 'hole'), undefined);
    await deletePod(admin, 'hole');
    stopControllers(false);

    await makeDisk(world, admin, 'closed', 'race.example.com');
    await world.startAgent();
    await world.untilRegistered('race.example.com');
    const read = await makeDeletedClaim(admin, 'closed', () => stopControllers(true));
    await makePod(admin, 'closed', claim('closed'));
    const ready = await world.untilReady('closed');
    writeFileSync(join(placeOf(ready, 'closed'), 'word'), 'kept');
    assert.equal((await takeProtection(admin, 'closed', read)).status, 409);
    const marked = await claimIn(admin, 'closed');
    assert.deepEqual(
      marked?.status.conditions?.map(({ type, reason }) => [type, reason]),
      [['mooring.dev/InUse', NODE]],
    );
    // The real one looks for pods anew, and holds it back until ours has gone.
    stopControllers(false);
    await makePod(admin, 'other', {});
    await world.until('another look', ({ pods }) => pods.some(({ name }) => name === 'other'));
    assert.deepEqual((await claimIn(admin, 'closed'))?.metadata.finalizers, [PROTECTION]);
    assert.equal(readFileSync(join(placeOf(ready, 'closed'), 'word'), 'utf8'), 'kept');
    await deletePod(admin, 'other');
    await deletePod(admin, 'closed');
    await world.untilEmpty();
    assert.deepEqual(mountsBelow(world.root), []);
    await until('the claim is gone', async () => (await claimIn(admin, 'closed')) === undefined, MINUTES);
    assert.deepEqual(refusals(), []);
  },
);

withDriver(
  'a claim that is being deleted and not protected any more takes no pod, and the pod is told so',
  'leaving.example.com',
  async (world, { admin, stopControllers }) => {
    await makeDisk(world, admin, 'leaving', 'leaving.example.com');
    await world.startAgent();
    await world.untilRegistered('leaving.example.com');
    const slow = 'example.com/slow';
    await admin.request('MERGE', `${CLAIMS}/leaving`, { metadata: { finalizers: [slow, PROTECTION] } });
    await makeDeletedClaim(admin, 'leaving', () => stopControllers(true));
    await admin.request('MERGE', `${CLAIMS}/leaving`, { metadata: { finalizers: [slow] } });
    await makePod(admin, 'late', claim('leaving'));
    await world.until('it waits', ({ pods }) =>
      pods.some(({ volumes }) =>
        volumes.some(({ reason }) =>
          /PersistentVolumeClaim default\/leaving is being/.test(reason?.message ?? ''),
        ),
      ),
    );
    const events = '/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dlate';
    await until(
      'an event of the pod',
      async () => /FailedMount.*is being deleted/.test(JSON.stringify(await admin.request('GET', events))),
      MINUTES,
    );
    assert.deepEqual(mountsBelow(world.root), []);
    await admin.request('MERGE', `${CLAIMS}/leaving`, { metadata: { finalizers: null } });
    await deletePod(admin, 'late');
    await world.untilEmpty();
  },
);

/** By a policy of an administrator. Settles when marks on this claim are refused; the answer ends that. */
async function denyMarks(admin: AdminClient, name: string): Promise<() => Promise<void>> {
  const group = 'admissionregistration.k8s.io';
  const [policies, bindings] = ['policies', 'policybindings'].map(
    (one) => `/apis/${group}/v1/validatingadmission${one}`,
  );
  const operations = ['UPDATE'];
  const resources = ['persistentvolumeclaims/status'];
  const resourceRules = [{ apiGroups: [''], apiVersions: ['v1'], operations, resources }];
  const conditions = [{ type: 'mooring.dev/InUse', status: 'True', reason: 'probe' }];
  const expression = '!has(object.status.conditions) || object.status.conditions.all(c, c.reason == "")';
  await admin.request('POST', `${policies}`, {
    metadata: { name: 'marks' },
    spec: { matchConstraints: { resourceRules }, validations: [{ expression, message: 'no marks' }] },
  });
  await admin.request('POST', `${bindings}`, {
    metadata: { name: 'marks' },
    spec: { policyName: 'marks', validationActions: ['Deny'] },
  });
  const path = `${CLAIMS}/${name}/status?dryRun=All`;
  await until('marks are refused', async () =>
    /no marks/.test(JSON.stringify(await admin.tryRequest('MERGE', path, { status: { conditions } }))),
  );
  return async () => {
    await admin.request('DELETE', `${bindings}/marks`);
    await admin.request('DELETE', `${policies}/marks`);
  };
}

withDriver(
  'a pod that waits because the API server does not take what makes its claim sure is told so by an event of its own',
  'denied.example.com',
  async (world, { admin, stopControllers }) => {
    await makeDisk(world, admin, 'denied', 'denied.example.com');
    await world.startAgent();
    await world.untilRegistered('denied.example.com');
    await makeDeletedClaim(admin, 'denied', () => stopControllers(true));
    const allowMarks = await denyMarks(admin, 'denied');
    try {
      await makePod(admin, 'kept-out', claim('denied'));
      const waiting = await world.until('it waits', ({ sources }) =>
        sources.rejected.some(({ message }) => message.includes('no marks')),
      );
      assert.deepEqual(waiting.pods, []);
      const { metadata } = (await admin.request('GET', `${CORE}/pods/kept-out`)) as {
        readonly metadata: { readonly uid: string };
      };
      // As `kubectl describe pod` asks for them.
      const selector = encodeURIComponent(`involvedObject.uid=${metadata.uid},involvedObject.name=kept-out`);
      await until(
        'an event of the pod',
        async () => {
          const events = await admin.request('GET', `${CORE}/events?fieldSelector=${selector}`);
          return /FailedMount.*Claim default\/denied.*no marks/.test(JSON.stringify(events));
        },
        { ...MINUTES, waitMsMax: 60_000 },
      );
    } finally {
      await allowMarks();
    }
    await world.untilReady('kept-out');
    await deletePod(admin, 'kept-out');
    await world.untilEmpty();
  },
);
