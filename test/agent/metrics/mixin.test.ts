/** The queries about volumes of kubernetes-mixin find in our metrics what they ask the kubelet for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatMetrics } from '../../../agent/metrics/metrics.ts';
import { createOperationTimes } from '../../../agent/timing/operation-times.ts';
import { ok } from '../../../mount/failure.ts';
import { NO_SECRETS, type VolumePlugin } from '../../../plugins/plugin.ts';
import { parsePodUid, publicationKey, bytesFrom } from '../../../plugins/volume.ts';
import { onTheGround, PRESENT } from '../../../reconciler/model/actual-state.ts';
import { csiSpec } from '../../plugins/csi-spec.ts';

/** Alerts of storage, the dashboard of PersistentVolumes, and the panels about volumes of that of the kubelet. */
const QUERIES: readonly string[] = [
  'kubelet_volume_stats_available_bytes{namespace} / kubelet_volume_stats_capacity_bytes{namespace} < 0.03',
  'kubelet_volume_stats_used_bytes{namespace,persistentvolumeclaim} > 0',
  'predict_linear(kubelet_volume_stats_available_bytes{namespace,persistentvolumeclaim}[6h], 345600) < 0',
  'kubelet_volume_stats_inodes_free{namespace,persistentvolumeclaim} / kubelet_volume_stats_inodes{} < 0.03',
  'kubelet_volume_stats_inodes_used{namespace,persistentvolumeclaim} > 0',
  'sum(volume_manager_total_volumes{state,plugin_name})',
  'sum(rate(storage_operation_duration_seconds_count{operation_name,volume_plugin}[5m])) by (operation_name)',
  'sum(rate(storage_operation_duration_seconds_count{operation_name,volume_plugin,status}[5m])) by (status)',
  'histogram_quantile(0.99, rate(storage_operation_duration_seconds_bucket{operation_name,volume_plugin,le}[5m]))',
];

async function page(): Promise<string> {
  const spec = csiSpec('a.test', 'handle', 'pv', {});
  const uid = parsePodUid('0b4f8c1e-2222-4333-8444-55556666000a') ?? assert.fail();
  const key = publicationKey(uid, 'pv');
  const pod = { uid, name: 'web', namespace: 'shop', serviceAccount: 'seller' };
  const place = { key, pod, specName: 'pv', readOnly: false, origin: 'web.yaml' };
  const times = createOperationTimes({ nowMs: () => 0 });
  const plugin = { publish: async () => ok({ mount: undefined }) } as unknown as VolumePlugin;
  await times.timed(plugin).publish({ spec } as never);
  const usage = { total: bytesFrom(100), used: bytesFrom(40), available: bytesFrom(60) };
  const numbers = { bytes: usage, inodes: usage, health: [] };
  const answered = { failure: undefined, unansweredSinceMs: undefined, nextAskMs: undefined };
  const reading = { statistics: numbers, atMs: 1, ...answered };
  const publication = { spec: place, presence: PRESENT, generation: '', mount: undefined };
  const actual = {
    ...onTheGround(spec, { attach: false, stage: true, expand: false }),
    staged: PRESENT,
    publications: new Map([[key, publication]]),
  };
  const wanted = { spec, secrets: NO_SECRETS, blocked: undefined, size: undefined };
  const publications = new Map([[key, { spec: place, generation: '', files: undefined, tokens: undefined }]]);
  const claimRef = { namespace: 'shop', name: 'data', uid: undefined };
  return formatMetrics({
    desired: { complete: true, volumes: new Map([[spec.id, { ...wanted, publications }]]), unresolved: [] },
    actual: new Map([[spec.id, actual]]),
    running: [],
    obstacles: [],
    drivers: ['a.test'],
    desiredObjects: { claims: new Map(), volumes: new Map([['pv', { name: 'pv', claimRef } as never]]) },
    statistics: { of: () => reading, ofStorage: () => undefined, owedBy: () => 0 },
    operationTimes: times.text(),
    nowMs: 1,
    passes: 1,
    startedWallMs: 1,
  });
}

const METRIC = /\b((?:kubelet_volume|volume_manager|storage_operation)_[a-z_]+)\{([a-z_,]*)\}/g;

for (const query of QUERIES)
  test(`kubernetes-mixin: ${query.slice(0, 90)}`, async () => {
    const lines = (await page()).split('\n');
    const asked = [...query.matchAll(METRIC)];
    assert.notEqual(asked.length, 0);
    for (const [, name = '', labels = ''] of asked) {
      const found = lines.find((line) => line.startsWith(`${name}{`)) ?? assert.fail(`there is no ${name}`);
      for (const label of labels.split(',').filter((one) => one !== ''))
        assert.match(found, new RegExp(`[{,]${label}="`));
    }
  });
