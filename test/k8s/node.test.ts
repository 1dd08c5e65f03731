/** The agent as a node of a real cluster: a plain node identity, Node authorizer and NodeRestriction, no kubelet. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { mountsBelow } from '../demo/machine.ts';
import { inWorld, NODE, type World } from '../interop/world.ts';
import { until } from '../until.ts';
import {
  type Cluster,
  clusterObstacle,
  deletePod,
  makeContent,
  makeCsiDriver,
  makeImage,
  makePod,
  makeVolume,
  placeOf,
  sharedCluster,
} from './cluster-world.ts';

const skip = clusterObstacle();
const cluster = sharedCluster();
const LOOPFILE = 'loopfile.mooring.dev';
const CANARY = 'canary-7f3a';

interface Told {
  readonly reason: string;
  readonly type: string;
  readonly count: number;
  readonly message: string;
  readonly source: { readonly component: string };
  readonly involvedObject: { readonly kind: string };
}

/** One after the other: they share a control plane, and a node's name. */
function inCluster(sentence: string, tell: (world: World, shared: Cluster) => Promise<void>): void {
  test(sentence, { skip }, async () => {
    const shared = await cluster();
    await inWorld((world) => tell(world, shared), `kubeconfig: ${shared.plane.nodeKubeconfig}`);
  });
}

const read = (status: StatusDocument, pod: string, volume: string, file: string): string =>
  readFileSync(join(placeOf(status, pod, volume), file), 'utf8');

inCluster(
  'a pod that is bound here gets its volumes, by the rights of a node alone',
  async (world, { admin, refusals }) => {
    const site = join(world.scratch, 'site');
    mkdirSync(site);
    writeFileSync(join(site, 'index.html'), 'hello');
    await makeContent(admin, 'Secret', 'key', CANARY);
    await makeContent(admin, 'ConfigMap', 'settings', 'blue');
    await world.startAgent();
    const rootCertificate = { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] };
    const sources = [
      { serviceAccountToken: { path: 'token', expirationSeconds: 3_600 } },
      { configMap: rootCertificate },
    ];
    await makePod(admin, 'web', {
      scratch: { emptyDir: {} },
      memory: { emptyDir: { medium: 'Memory' } },
      site: { hostPath: { path: site, type: 'Directory' } },
      key: { secret: { secretName: 'key' } },
      settings: { configMap: { name: 'settings' } },
      access: { projected: { sources } },
    });
    const status = await world.untilReady('web');
    assert.equal(read(status, 'web', 'site', 'index.html'), 'hello');
    assert.equal(read(status, 'web', 'key', 'word'), CANARY);
    assert.equal(read(status, 'web', 'settings', 'word'), 'blue');
    assert.match(read(status, 'web', 'access', 'token'), /^[\w-]+\.[\w-]+\.[\w-]+$/);
    assert.match(read(status, 'web', 'access', 'ca.crt'), /BEGIN CERTIFICATE/);
    const { cluster: report } = status.sources;
    assert.deepEqual([report?.state, report?.pods, report?.message], ['following', 1, null]);

    await makeContent(admin, 'Secret', 'key', 'another');
    await until('the file is another one', () => read(status, 'web', 'key', 'word') === 'another');

    await deletePod(admin, 'web');
    await world.untilEmpty();
    assert.equal(existsSync(placeOf(status, 'web', 'scratch')), false);
    assert.deepEqual(mountsBelow(world.root), []);
    assert.equal(readFileSync(join(site, 'index.html'), 'utf8'), 'hello');
    assert.doesNotMatch(readFileSync(world.logOf('agent'), 'utf8'), new RegExp(CANARY));
    assert.deepEqual(refusals(), []);
  },
);

inCluster('what keeps a pod waiting is told by an event of it, once', async (world, { admin }) => {
  await world.startAgent();
  await makePod(admin, 'waits', { late: { configMap: { name: 'comes-later' } } });
  const path = '/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dwaits';
  let events: readonly Told[] = [];
  await until('an event of the pod', async () => {
    const { body } = await admin.tryRequest('GET', path);
    events = (body as { items: readonly Told[] }).items.filter(
      ({ source }) => source.component === 'mooring',
    );
    return events.length > 0;
  });
  assert.deepEqual(
    events.map(({ reason, type, count, involvedObject }) => [reason, type, count, involvedObject.kind]),
    [['FailedMount', 'Warning', 1, 'Pod']],
  );
  assert.match(events[0]?.message ?? '', /^volume "late": .*comes-later/);
  await makeContent(admin, 'ConfigMap', 'comes-later', 'blue');
  const status = await world.untilReady('waits');
  assert.equal(read(status, 'waits', 'late', 'word'), 'blue');
  await deletePod(admin, 'waits');
  await world.untilEmpty();
  assert.doesNotMatch(readFileSync(world.logOf('agent'), 'utf8'), /events not written/);
});

inCluster(
  'a claim that the real binder has bound is staged, published, and taken down; its data stay',
  async (world, { admin }) => {
    await makeCsiDriver(admin, LOOPFILE, false);
    await makeVolume(admin, 'data', LOOPFILE, await makeImage(world, 'disk'));
    await world.startLoopfile(world.socketOf(LOOPFILE), '--registry', world.registry);
    await world.startAgent();
    await world.untilRegistered(LOOPFILE);
    const volumes = { data: { persistentVolumeClaim: { claimName: 'data' } } };
    await makePod(admin, 'first', volumes);
    const first = await world.untilReady('first');
    writeFileSync(join(placeOf(first, 'first', 'data'), 'word'), 'kept');
    await deletePod(admin, 'first');
    await world.untilEmpty();
    assert.deepEqual(mountsBelow(world.root), []);
    await makePod(admin, 'second', volumes);
    const second = await world.untilReady('second');
    assert.equal(read(second, 'second', 'data', 'word'), 'kept');
    await deletePod(admin, 'second');
    await world.untilEmpty();
  },
);

inCluster(
  'while the API server is silent nothing is taken down, not by another agent either',
  async (world, shared) => {
    const { admin, silence } = shared;
    const agent = await world.startAgent();
    await makePod(admin, 'stays', { memory: { emptyDir: { medium: 'Memory' } } });
    const status = await world.untilReady('stays');
    writeFileSync(join(placeOf(status, 'stays', 'memory'), 'word'), 'kept');
    silence(true);
    try {
      await world.until('it is told', ({ sources }) => sources.cluster?.state === 'broken');
      await agent.end('SIGKILL');
      await world.startAgent();
      const blind = await world.until('it has looked', ({ volumes, summary }) => {
        return volumes.length === 1 && summary.operationsRunning + summary.operationsQueued === 0;
      });
      assert.equal(blind.agent.complete, false);
      assert.equal(readFileSync(join(placeOf(status, 'stays', 'memory'), 'word'), 'utf8'), 'kept');
    } finally {
      silence(false);
    }
    const again = await world.untilReady('stays');
    assert.equal(read(again, 'stays', 'memory', 'word'), 'kept');
    await deletePod(admin, 'stays');
    await world.untilEmpty();
  },
);

inCluster(
  'the scheduler is told of a driver, and of another id that it comes back with',
  async (world, { admin }) => {
    const name = 'told.example.com';
    const path = `/apis/storage.k8s.io/v1/csinodes/${NODE}`;
    const entry = async () => {
      const { spec } = (await admin.tryRequest('GET', path)).body as {
        readonly spec?: { readonly drivers?: readonly { readonly name: string; readonly nodeID: string }[] };
      };
      return spec?.drivers?.find((one) => one.name === name);
    };
    const flags = ['--name', name, '--registry', world.registry];
    const driver = await world.startLoopfile(world.socketOf(name), ...flags);
    await world.startAgent();
    await until('it is announced', async () => (await entry())?.nodeID === NODE);
    const node = (await admin.request('GET', `/api/v1/nodes/${NODE}`)) as {
      readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
    };
    const ids = node.metadata.annotations['csi.volume.kubernetes.io/nodeid'] ?? '{}';
    assert.equal((JSON.parse(ids) as Record<string, string>)[name], NODE);
    await driver.end('SIGTERM');
    await world.startLoopfile(world.socketOf(name), ...flags, '--node-id', 'another');
    await until('it is announced by its other id', async () => (await entry())?.nodeID === 'another');
  },
);
