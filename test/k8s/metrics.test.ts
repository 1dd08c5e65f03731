/**
 * The numbers of a node of a real cluster, read once as a scraper does, after one pod has come and gone and while
 * another one has its volume: what a kubelet says by these names, with its types and labels, and values that can be
 * true.
 */
import assert from 'node:assert/strict';
import { readExposition, type Sample } from '../agent/metrics/exposition.ts';
import { mountsBelow } from '../demo/machine.ts';
import { readMetrics } from '../interop/metrics.ts';
import { until } from '../until.ts';
import { claim, MINUTES, startManagedAgent, untilDetached, withAttacher } from './attached-world.ts';
import { clusterObstacle, deletePod, makePod, sharedCluster } from './cluster-world.ts';

const skip = clusterObstacle();
const here = { cluster: sharedCluster(), skip };
const DRIVER = 'numbers.example.com';
const PLUGIN = `kubernetes.io/csi:${DRIVER}`;
const DISK_BYTES = 64 * 1_024 * 1_024;
/** Nothing here has taken longer: an operation, or all of them together. */
const SECONDS_MAX = 600;
const OF_CLAIM = { namespace: 'default', persistentvolumeclaim: 'stays' };

type Labels = Readonly<Record<string, string>>;

/** The name in the text; its labels, all of them; the least that one pod that came and one that came and went leave. */
interface Counted {
  readonly metric: string;
  readonly labels: Labels;
  readonly countMin: number;
}

const operation = (name: string, countMin: number): Counted => ({
  metric: 'storage_operation_duration_seconds',
  labels: { volume_plugin: PLUGIN, operation_name: name, status: 'success', migrated: 'false' },
  countMin,
});

const call = (method: string, countMin: number): Counted => ({
  metric: 'csi_operations_seconds',
  labels: {
    driver_name: DRIVER,
    method_name: `/csi.v1.Node/${method}`,
    grpc_status_code: 'OK',
    migrated: 'false',
  },
  countMin,
});

const HISTOGRAMS: readonly Counted[] = [
  operation('verify_controller_attached_volume', 2),
  operation('volume_mount', 2),
  operation('volume_unmount', 1),
  operation('unmount_device', 1),
  call('NodeGetInfo', 1),
  call('NodeStageVolume', 2),
  call('NodePublishVolume', 2),
  call('NodeUnpublishVolume', 1),
  call('NodeUnstageVolume', 1),
  call('NodeGetVolumeStats', 1),
  {
    metric: 'volume_operation_total_seconds',
    labels: { plugin_name: PLUGIN, operation_name: 'overall_volume_mount' },
    countMin: 2,
  },
  {
    metric: 'kubelet_volume_metric_collection_duration_seconds',
    labels: { metric_source: DRIVER },
    countMin: 1,
  },
];

/** With what is between these, as of one volume that stays. */
const GAUGES: readonly (readonly [metric: string, labels: Labels, min: number, max: number])[] = [
  ['kubelet_volume_stats_capacity_bytes', OF_CLAIM, DISK_BYTES / 2, DISK_BYTES],
  ['kubelet_volume_stats_available_bytes', OF_CLAIM, DISK_BYTES / 4, DISK_BYTES],
  ['kubelet_volume_stats_used_bytes', OF_CLAIM, 1, DISK_BYTES / 2],
  ['kubelet_volume_stats_inodes', OF_CLAIM, 1_000, DISK_BYTES / 1_024],
  ['kubelet_volume_stats_inodes_free', OF_CLAIM, 1_000, DISK_BYTES / 1_024],
  // The root of an ext4, lost+found, and those that it keeps for itself.
  ['kubelet_volume_stats_inodes_used', OF_CLAIM, 2, 100],
  ...(['desired', 'actual'] as const).map(
    (state) =>
      [
        'volume_manager_total_volumes',
        { plugin_name: PLUGIN, state: `${state}_state_of_world` },
        1,
        1,
      ] as const,
  ),
  ['kubelet_orphan_pod_cleaned_volumes', {}, 0, 0],
  ['kubelet_orphan_pod_cleaned_volumes_errors', {}, 0, 0],
];

const COUNTERS: readonly string[] = [
  'reconstruct_volume_operations_total',
  'reconstruct_volume_operations_errors_total',
  'force_cleaned_failed_volume_operations_total',
  'force_cleaned_failed_volume_operation_errors_total',
];

/** The one series with these labels and no others but `le`. */
function only(samples: readonly Sample[], metric: string, labels: Labels): Sample {
  const found = samples.filter(({ name, labels: { le: _, ...said } }) => {
    const isSame = Object.entries(labels).every(([label, value]) => said[label] === value);
    return name === metric && isSame && Object.keys(said).length === Object.keys(labels).length;
  });
  const [one] = found;
  assert.ok(
    one !== undefined && found.length === 1,
    `${found.length} of ${metric} ${JSON.stringify(labels)}`,
  );
  return one;
}

withAttacher(
  here,
  'after a pod that came and went, /metrics of a node of a cluster says what a kubelet says, and it can be true',
  DRIVER,
  async ({ world, admin, driver, makeDisk }) => {
    for (const name of ['stays', 'goes']) await makeDisk(name);
    await startManagedAgent(world, admin, driver);
    for (const name of ['stays', 'goes']) await makePod(admin, name, claim(name));
    for (const name of ['stays', 'goes']) await world.untilReady(name);
    await deletePod(admin, 'goes');
    await world.until('one is left', ({ volumes }) => volumes.length === 1);
    const { samples, types } = readExposition(
      await until(
        'it was asked how full it is',
        async () => {
          const page = await readMetrics(world.socket);
          return page.includes('kubelet_volume_stats_used_bytes{') && page;
        },
        MINUTES,
      ),
    );
    for (const { metric, labels, countMin } of HISTOGRAMS) {
      assert.equal(types.get(metric), 'histogram', metric);
      const { value: count } = only(samples, `${metric}_count`, labels);
      const { value: sum } = only(samples, `${metric}_sum`, labels);
      assert.ok(count >= countMin && count < 100, `${count} of ${metric} ${JSON.stringify(labels)}`);
      assert.ok(sum > 0 && sum < SECONDS_MAX, `${sum} s of ${metric} ${JSON.stringify(labels)}`);
    }
    for (const [metric, labels, min, max] of GAUGES) {
      assert.equal(types.get(metric), 'gauge', metric);
      const { value } = only(samples, metric, labels);
      assert.ok(value >= min && value <= max, `${metric} is ${value}, not between ${min} and ${max}`);
    }
    for (const metric of COUNTERS) {
      assert.equal(types.get(metric), 'counter', metric);
      assert.equal(only(samples, metric, {}).value, 0, metric);
    }
    // Nothing is said any more of a claim that is gone from here.
    assert.ok(!samples.some(({ labels }) => labels['persistentvolumeclaim'] === 'goes'));
    await deletePod(admin, 'stays');
    await world.untilEmpty();
    await untilDetached(admin, driver);
    assert.deepEqual(mountsBelow(world.root), []);
  },
);
