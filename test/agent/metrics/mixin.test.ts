/**
 * What others ask a kubelet about its volumes they find in the metrics of a real agent, with the labels that they need.
 * Only names are taken from kubernetes-mixin: those of metrics, of labels, and of who asks for them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CAPABILITY } from '../../plugins/csi/scripted-driver.ts';
import { agentWorld, DUTY_DRIVER, until, untilSettled } from '../duties-world.ts';
import { claimSource, claimYaml, podYaml, volumeYaml } from '../manifests.ts';
import { type Exposition, readExposition, type Sample } from './exposition.ts';

interface Asked {
  /** File of kubernetes-monitoring/kubernetes-mixin, and what in it asks. */
  readonly by: string;
  readonly metric: string;
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly labels: readonly string[];
  /** Series that are picked by value. */
  readonly where?: Readonly<Record<string, string>>;
}

const OF_CLAIM = ['namespace', 'persistentvolumeclaim'];
const ALERTS = 'alerts/storage_alerts.libsonnet';
const USAGE = 'dashboards/queries/persistentvolumesusage.libsonnet';
const KUBELET = 'dashboards/kubelet.libsonnet';
const OPERATION = ['operation_name', 'volume_plugin'];

const ofClaim = (by: string, what: string): Asked => {
  return { by, metric: `kubelet_volume_stats_${what}`, type: 'gauge', labels: OF_CLAIM };
};

/** All that it asks of volumes, but `storage_operation_errors_total`, which kubelets since 1.21 have not (D-110). */
const MIXIN: readonly Asked[] = [
  ofClaim(`${ALERTS} KubePersistentVolumeFillingUp`, 'available_bytes'),
  ofClaim(`${ALERTS} KubePersistentVolumeFillingUp`, 'capacity_bytes'),
  ofClaim(`${ALERTS} KubePersistentVolumeFillingUp`, 'used_bytes'),
  ofClaim(`${ALERTS} KubePersistentVolumeInodesFillingUp`, 'inodes_free'),
  ofClaim(`${ALERTS} KubePersistentVolumeInodesFillingUp`, 'inodes'),
  ofClaim(`${ALERTS} KubePersistentVolumeInodesFillingUp`, 'inodes_used'),
  ofClaim(`${USAGE} volumeSpaceUsageUsed`, 'capacity_bytes'),
  ofClaim(`${USAGE} volumeSpaceUsageFree`, 'available_bytes'),
  ofClaim(`${USAGE} volumeInodesUsageUsed`, 'inodes_used'),
  ofClaim(`${USAGE} volumeInodesUsageFree`, 'inodes'),
  ...['actual', 'desired'].map((state): Asked => {
    const metric = 'volume_manager_total_volumes';
    const where = { state: `${state}_state_of_world` };
    return { by: `${KUBELET} ${state} volume count`, metric, type: 'gauge', labels: ['plugin_name'], where };
  }),
  {
    by: `${KUBELET} storage operation rate`,
    metric: 'storage_operation_duration_seconds_count',
    type: 'histogram',
    labels: OPERATION,
  },
  {
    by: `${KUBELET} storage operation duration`,
    metric: 'storage_operation_duration_seconds_bucket',
    type: 'histogram',
    labels: [...OPERATION, 'le'],
  },
];

/** Names, types and labels of Kubernetes 1.36 ("Kubernetes Metrics Reference"), and the package that has each. */
const REFERENCE: readonly Asked[] = [
  {
    by: 'pkg/volume/util',
    metric: 'storage_operation_duration_seconds_sum',
    type: 'histogram',
    labels: ['migrated', 'operation_name', 'status', 'volume_plugin'],
    where: { operation_name: 'volume_mount', status: 'success', migrated: 'false' },
  },
  {
    by: 'pkg/volume/util',
    metric: 'volume_operation_total_seconds_bucket',
    type: 'histogram',
    labels: ['le', 'operation_name', 'plugin_name'],
    where: { operation_name: 'overall_volume_mount', plugin_name: `kubernetes.io/csi:${DUTY_DRIVER}` },
  },
  ...['Node/NodeGetInfo', 'Node/NodeStageVolume', 'Node/NodePublishVolume', 'Node/NodeGetVolumeStats'].map(
    (method): Asked => ({
      by: 'pkg/volume/csi',
      metric: 'csi_operations_seconds_count',
      type: 'histogram',
      labels: ['driver_name', 'grpc_status_code', 'method_name', 'migrated'],
      where: { method_name: `/csi.v1.${method}`, driver_name: DUTY_DRIVER, grpc_status_code: 'OK' },
    }),
  ),
  ...['reconstruct_volume_operations_total', 'reconstruct_volume_operations_errors_total'].map(
    (metric): Asked => ({ by: 'pkg/kubelet/volumemanager', metric, type: 'counter', labels: [] }),
  ),
  ...[
    'force_cleaned_failed_volume_operations_total',
    'force_cleaned_failed_volume_operation_errors_total',
  ].map((metric): Asked => ({ by: 'pkg/kubelet/volumemanager', metric, type: 'counter', labels: [] })),
  ...['kubelet_orphan_pod_cleaned_volumes', 'kubelet_orphan_pod_cleaned_volumes_errors'].map(
    (metric): Asked => ({ by: 'pkg/kubelet', metric, type: 'gauge', labels: [] }),
  ),
  {
    by: 'pkg/kubelet/server',
    metric: 'kubelet_volume_metric_collection_duration_seconds_count',
    type: 'histogram',
    labels: ['metric_source'],
    where: { metric_source: DUTY_DRIVER },
  },
  ...['actual', 'desired'].map((state): Asked => {
    const where = { state: `${state}_state_of_world` };
    const metric = 'plugin_manager_total_plugins';
    return { by: 'pkg/kubelet/pluginmanager', metric, type: 'gauge', labels: ['socket_path'], where };
  }),
  ofClaim('pkg/kubelet/metrics', 'health_status_abnormal'),
];

const FILES = {
  'pv.yaml': `${claimYaml('data')}---\n${volumeYaml('pv-data')}`,
  'app.yaml': podYaml('app', { data: claimSource('data') }),
};
const { node } = CAPABILITY;

const STATS = {
  usage: [1, 2].map((unit) => ({ unit, total: 100n, used: 40n, available: 60n })),
  volumeCondition: { abnormal: false, message: '' },
};

/** A node that has one volume of a driver that tells all there is. */
async function page(): Promise<string> {
  const nodeCapabilities = [node.STAGE_UNSTAGE_VOLUME, node.GET_VOLUME_STATS, node.VOLUME_CONDITION];
  const settings = { statistics_interval_ms: 1_000 };
  const world = await agentWorld(FILES, { nodeCapabilities }, settings, { NodeGetVolumeStats: STATS });
  await untilSettled(world);
  await until('it was asked how full it is', () =>
    world.metrics().includes('kubelet_volume_stats_used_bytes{'),
  );
  return world.metrics();
}

let read: Promise<Exposition> | undefined;

function seriesOf({ samples }: Exposition, { metric, where = {} }: Asked): readonly Sample[] {
  return samples.filter(({ name, labels }) => {
    return name === metric && Object.entries(where).every(([label, value]) => labels[label] === value);
  });
}

for (const [whose, all] of [
  ['kubernetes-mixin', MIXIN],
  ['the kubelet', REFERENCE],
] as const)
  test(`what ${whose} asks of volumes is there, with its labels and its type`, async () => {
    read ??= page().then(readExposition);
    const exposition = await read;
    for (const asked of all) {
      const [first] = seriesOf(exposition, asked);
      assert.ok(first !== undefined, `${asked.by}: no series of ${JSON.stringify(asked)}`);
      for (const label of asked.labels)
        assert.ok(label in first.labels, `${asked.by}: ${asked.metric} ${label}`);
      const base =
        asked.type === 'histogram' ? asked.metric.replace(/_(bucket|sum|count)$/, '') : asked.metric;
      assert.equal(exposition.types.get(base), asked.type, asked.metric);
    }
  });

test('no series names a pod, a handle, a path of a volume or a message but those that are said to', async () => {
  read ??= page().then(readExposition);
  const known = new Set([
    ...['access_mode', 'code', 'driver', 'driver_name', 'grpc_status_code', 'kind', 'le', 'method_name'],
    ...['metric_source', 'migrated', 'namespace', 'operation_name', 'persistentvolumeclaim', 'plugin_name'],
    ...['reason', 'socket_path', 'state', 'status', 'volume', 'volume_plugin'],
  ]);
  for (const { name, labels } of (await read).samples)
    for (const label of Object.keys(labels)) assert.ok(known.has(label), `${name} has a label ${label}`);
});
