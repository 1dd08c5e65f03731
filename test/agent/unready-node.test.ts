/** A whole agent on a node of a cluster that is not Ready: what has to happen before its volumes are taken is told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClaimDesk } from '../../agent/claim/claim-desk.ts';
import { createClusterSource } from '../../agent/source/cluster/cluster-source.ts';
import { createNodeObject } from '../../agent/source/cluster/node-object.ts';
import { explain } from '../../agent/status/explain.ts';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import type { Clock } from '../../mount/host.ts';
import { csiVolumeId } from '../../plugins/volume.ts';
import { ApiStore, type Json } from '../kubernetes/api/api-store.ts';
import { storeTransport } from '../kubernetes/api/store-transport.ts';
import { createGrants } from '../plugins/csi/attach/granted.ts';
import { type AgentWorld, agentWorld, DUTY_DRIVER, until, untilSettled } from './duties-world.ts';

const NODES = '/api/v1/nodes';
const PODS = '/api/v1/namespaces/default/pods';
const NODE = 'node-a';
const SINCE = '2020-01-01T00:00:00.000Z';
const TAINT = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute', timeAdded: SINCE };
const OUT_OF_SERVICE = { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' };
const BEGIN = `this node has not been Ready since ${SINCE} (Unknown)`;
const FORCE = '6 minutes (at once, if the node is marked node.kubernetes.io/out-of-service)';

const clock: Pick<Clock, 'nowMs' | 'wallMs' | 'timer'> & { random(): number } = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  random: () => 0.5,
  timer(delayMs, fire) {
    const timer = setTimeout(fire, delayMs).unref();
    return () => clearTimeout(timer);
  },
};

const POD: Json = {
  metadata: { name: 'app', namespace: 'default' },
  spec: {
    nodeName: NODE,
    containers: [{ name: 'c', volumeMounts: [{ name: 'v', mountPath: '/v' }] }],
    tolerations: [{ key: TAINT.key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }],
    volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }],
  },
  status: { containerStatuses: [{ state: { running: {} } }] },
};

function nodeWith(status: 'True' | 'Unknown', taints: readonly Json[] = []): Json {
  const ready = { type: 'Ready', status, lastTransitionTime: SINCE };
  return { metadata: { name: NODE, uid: 'the-node' }, spec: { taints }, status: { conditions: [ready] } };
}

/** A pod of a cluster that has its volume, on a node that is Ready. */
async function clusterNode() {
  const store = new ApiStore();
  store.put(NODES, nodeWith('True'));
  const claim = store.put('/api/v1/namespaces/default/persistentvolumeclaims', {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'data',
      namespace: 'default',
      annotations: { 'pv.kubernetes.io/bind-completed': 'yes' },
      finalizers: ['kubernetes.io/pvc-protection'],
    },
    spec: { volumeName: 'pv', accessModes: ['ReadWriteOnce'] },
  });
  const { uid } = claim['metadata'] as { readonly uid: string };
  store.put('/api/v1/persistentvolumes', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      csi: { driver: DUTY_DRIVER, volumeHandle: 'h' },
      claimRef: { namespace: 'default', name: 'data', uid },
    },
  });
  store.put(PODS, POD);
  const transport = storeTransport(store, clock);
  const shared = { transport, clock, nodeName: NODE, random: () => 0.5 };
  const node = createNodeObject(shared);
  const claims = createClaimDesk({ ...shared, log: { warn: () => {} } });
  const source = createClusterSource({ host: clock, transport, nodeName: NODE, node, claims });
  const grants = createGrants();
  grants.give(csiVolumeId(DUTY_DRIVER, 'h'));
  const world = await agentWorld({}, {}, {}, {}, { sources: [source], attachment: grants });
  await until('it is published', () => world.asked().includes('NodePublishVolume'));
  await untilSettled(world);
  return { store, world };
}

function clockOf(world: AgentWorld) {
  return world.status().sources.cluster?.detachClock ?? null;
}

function notesOn(subject: string, status: StatusDocument): readonly string[] {
  const explanation = explain(subject, status);
  return explanation.kind === 'found' ? explanation.document.notes : [explanation.message];
}

const series = (world: AgentWorld): readonly string[] =>
  world.metrics().match(/^mooring_detach_clock_seconds .*$/gm) ?? [];

test('D-126: a node that is not Ready tells what has to happen before its volumes are taken', async () => {
  const { store, world } = await clusterNode();
  assert.deepEqual([clockOf(world), notesOn('pv', world.status()), series(world)], [null, [], []]);

  const asked = store.asked.length;
  store.put(NODES, nodeWith('Unknown', [TAINT]));
  await until('it is known', () => clockOf(world) !== null);
  const then = '2020-01-01T00:05:00.000Z';
  const told = [
    `${BEGIN}: volume pv is detached by force ${FORCE} after pod default/app (to be marked for deletion ` +
      `from ${then} on) is gone from the cluster`,
  ];
  assert.deepEqual(notesOn('pv', world.status()), told);
  assert.deepEqual(notesOn('app', world.status()), told);
  assert.match(series(world).join(), /^mooring_detach_clock_seconds [1-9]/);
  assert.deepEqual(store.asked.slice(asked), [], 'what the watches tell is all that is needed');

  store.put(PODS, {
    ...POD,
    metadata: { ...(POD['metadata'] as Json), ...uidIn(store), deletionTimestamp: SINCE },
  });
  await until('it is marked', () => clockOf(world)?.pods[0]?.state === 'leaving');
  assert.match(
    notesOn('pv', world.status()).join(),
    /after pod default\/app \(it is marked for deletion\) is gone/,
  );

  store.put(NODES, nodeWith('True'));
  await until('it is Ready', () => clockOf(world) === null);
  assert.deepEqual([notesOn('pv', world.status()), series(world)], [[], []]);
});

test('D-126: once the pod is gone, and its volume cannot come down, it is told when the volume is taken', async () => {
  const { store, world } = await clusterNode();
  world.plan.before = (method) => {
    if (method === 'NodeUnpublishVolume') throw new Error('it does not let go');
  };
  store.put(NODES, nodeWith('Unknown', [TAINT]));
  store.remove(PODS, 'app');
  await until('it is being taken down', () => world.status().pods[0]?.wanted === false);
  // One document tells both: the clocks of two looks are a millisecond apart.
  const document = world.status();
  const ended = document.sources.cluster?.detachClock?.pods[0]?.endedSince ?? '';
  const due = new Date(Date.parse(ended) + 360_000).toISOString();
  assert.deepEqual(notesOn('pv', document), [
    `${BEGIN}: volume pv is detached by force from ${due} on, as no pod has had it since ${ended}`,
  ]);
  store.put(NODES, nodeWith('Unknown', [OUT_OF_SERVICE]));
  await until('it is out of service', () => clockOf(world)?.outOfService === true);
  assert.deepEqual(notesOn('pv', world.status()), [
    `${BEGIN}, and it is marked ${OUT_OF_SERVICE.key}: volume pv is detached by force now, as no pod has it`,
  ]);
});

function uidIn(store: ApiStore): Json {
  const { uid } = (store.get(PODS, 'app')?.['metadata'] ?? {}) as Json;
  return { uid };
}
