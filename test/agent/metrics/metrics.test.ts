import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createApiTally } from '../../../agent/timing/api-tally.ts';
import { formatMetrics } from '../../../agent/metrics/metrics.ts';
import type { MetricsFacts } from '../../../agent/metrics/metrics-facts.ts';
import {
  objectKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Stamped,
} from '../../../kubernetes/objects/objects.ts';
import type { VolumeReading } from '../../../agent/node/statistics-collector.ts';
import { NO_SECRETS, type VolumeStatistics } from '../../../plugins/plugin.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import {
  bytesFrom,
  type CsiVolumeSpec,
  csiVolumeId,
  type EmptyDirVolumeSpec,
  parsePodUid,
  podVolumeId,
  publicationKey,
  RECONSTRUCTED,
  type VolumeId,
} from '../../../plugins/volume.ts';
import { type ActualVolume, onTheGround, PRESENT } from '../../../reconciler/model/actual-state.ts';
import type { DesiredVolume } from '../../../reconciler/model/desired-state.ts';
import { csiSpec } from '../../plugins/csi-spec.ts';

const DRIVER = 'a.test';
const CANARY = 'canary-8f1d2a';
const UID = parsePodUid('0b4f8c1e-2222-4333-8444-55556666000a') ?? assert.fail();

function spec(handle: string, specName: string, changes: Partial<CsiVolumeSpec> = {}): CsiVolumeSpec {
  return csiSpec(DRIVER, handle, specName, {
    mountOptions: [`password=${CANARY}`],
    volumeAttributes: { token: CANARY },
    ...changes,
  });
}

function placeOf({ specName }: CsiVolumeSpec) {
  const pod = { uid: UID, name: 'web', namespace: 'shop', serviceAccount: 'seller' };
  const key = publicationKey(UID, specName);
  return { key, pod, specName, readOnly: false, origin: 'web.yaml' };
}

function here(one: CsiVolumeSpec, isPublished = true): ActualVolume {
  const place = placeOf(one);
  const publication = { spec: place, presence: PRESENT, generation: '', mount: undefined };
  return {
    ...onTheGround(one, { attach: false, stage: true, expand: false }),
    staged: PRESENT,
    publishContext: { key: CANARY },
    publications: isPublished ? new Map([[place.key, publication]]) : new Map(),
  };
}

function wanted(one: CsiVolumeSpec): DesiredVolume {
  const place = placeOf(one);
  const secret = new Sensitive({ token: CANARY });
  const tokens = new Sensitive(CANARY);
  return {
    spec: one,
    secrets: { ...NO_SECRETS, stage: secret },
    publications: new Map([[place.key, { spec: place, generation: '', files: undefined, tokens }]]),
    blocked: undefined,
    size: undefined,
  };
}

function claim(namespace: string, name: string, volumeName: string) {
  const made = { namespace, name, volumeName } as unknown as Stamped<PersistentVolumeClaim>;
  return [objectKey({ namespace, name }), made] as const;
}

function read(statistics: Partial<VolumeStatistics>): VolumeReading {
  const nothing = { bytes: undefined, inodes: undefined, health: undefined };
  const answered = { failure: undefined, unansweredSinceMs: undefined, nextAskMs: undefined };
  return { statistics: { ...nothing, ...statistics }, atMs: 1, ...answered };
}

interface Given {
  readonly wanted?: readonly CsiVolumeSpec[];
  readonly here?: readonly ActualVolume[];
  readonly readings?: ReadonlyMap<VolumeId, VolumeReading>;
  readonly facts?: Partial<MetricsFacts>;
}

function metrics(given: Given = {}): string {
  return formatMetrics({
    desired: {
      complete: true,
      volumes: new Map((given.wanted ?? []).map((one) => [one.id, wanted(one)])),
      unresolved: [],
    },
    actual: new Map((given.here ?? []).map((one) => [one.spec.id, one])),
    running: [],
    obstacles: [],
    drivers: [DRIVER],
    sockets: [],
    recoveredVolumes: 0,
    unreadableRecords: 0,
    desiredObjects: { claims: new Map(), volumes: new Map() },
    statistics: { of: (id) => given.readings?.get(id), ofStorage: () => undefined, owedBy: () => 2 },
    operationTimes: '',
    nowMs: 100_000,
    notReadyForMs: undefined,
    passes: 12,
    startedWallMs: 1_700_000_000_250,
    ...given.facts,
  });
}

const OF_VOLUME = { volume: csiVolumeId(DRIVER, '1'), publication: undefined };

const series = (text: string, name: string): string[] =>
  text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));

const USAGE = { total: bytesFrom(2n ** 62n), used: bytesFrom(40), available: bytesFrom(60) };

test('the text is the format of Prometheus: each family once with help and type, each line a sample', () => {
  const text = metrics({ wanted: [spec('1', 'pv-1')], here: [here(spec('1', 'pv-1'))] });
  assert.ok(text.endsWith('\n'));
  const lines = text.trimEnd().split('\n');
  const types = lines.filter((line) => line.startsWith('# TYPE '));
  assert.equal(new Set(types).size, types.length);
  assert.equal(lines.filter((line) => line.startsWith('# HELP ')).length, types.length);
  const sample =
    /^[a-z_]+(\{[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\[\\"n])*")*\})? [0-9.]+$/;
  for (const line of lines.filter((one) => !one.startsWith('#'))) assert.match(line, sample);
  assert.deepEqual(series(text, 'mooring_passes_total'), ['mooring_passes_total 12']);
  assert.deepEqual(series(text, 'process_start_time_seconds'), ['process_start_time_seconds 1700000000.25']);
});

test('docs/API.md tells of each metric of ours', () => {
  const page = readFileSync(new URL('../../../docs/API.md', import.meta.url), 'utf8');
  const told = page.slice(page.indexOf('## GET /metrics'), page.indexOf('## GET /openid'));
  const all = metrics() + createApiTally({ nowMs: () => 0 }).text();
  const names = [...all.matchAll(/^# TYPE (mooring_[a-z_]+) /gm)].map(([, name = '']) => name);
  assert.ok(names.length > 15, names.join(' '));
  assert.deepEqual(
    names.filter((name) => !told.includes(`\`${name}\``)),
    [],
  );
});

test('the kubelet’s volume metrics have its names and labels, exact to the byte', () => {
  const one = spec('1', 'pv-1');
  const readings = new Map([
    [one.id, read({ bytes: USAGE, inodes: { ...USAGE, total: bytesFrom(9), used: undefined }, health: [] })],
  ]);
  const desiredObjects = { claims: new Map([claim('shop', 'data', 'pv-1')]), volumes: new Map() };
  const text = metrics({ here: [here(one)], readings, facts: { desiredObjects } });
  const labels = '{namespace="shop",persistentvolumeclaim="data"}';
  assert.deepEqual(
    text.split('\n').filter((line) => line.startsWith('kubelet_volume_stats_')),
    [
      `kubelet_volume_stats_capacity_bytes${labels} 4611686018427387904`,
      `kubelet_volume_stats_available_bytes${labels} 60`,
      `kubelet_volume_stats_used_bytes${labels} 40`,
      `kubelet_volume_stats_inodes${labels} 9`,
      `kubelet_volume_stats_inodes_free${labels} 60`,
      `kubelet_volume_stats_health_status_abnormal${labels} 0`,
    ],
  );
});

test('a claim has one series whoever names it, and the volume’s own word on its claim comes first', () => {
  const one = spec('1', 'pv-1');
  const twin = spec('2', 'pv-1');
  const readings = new Map(
    [one, twin].map(({ id }, index) => [id, read({ bytes: { ...USAGE, used: bytesFrom(index) } })]),
  );
  const claimRef = { namespace: 'shop', name: 'data', uid: undefined };
  const persistent = { name: 'pv-1', claimRef } as unknown as Stamped<PersistentVolume>;
  const desiredObjects = {
    claims: new Map([claim('other', 'thief', 'pv-1')]),
    volumes: new Map([['pv-1', persistent]]),
  };
  const text = metrics({
    here: [here(one), here(twin)],
    readings,
    facts: { desiredObjects: desiredObjects as MetricsFacts['desiredObjects'] },
  });
  assert.deepEqual(series(text, 'kubelet_volume_stats_used_bytes'), [
    'kubelet_volume_stats_used_bytes{namespace="shop",persistentvolumeclaim="data"} 0',
  ]);
});

test('an inline volume and a volume without a claim have no series of claims', () => {
  const inline = spec('1', 'pv-1', { lifecycle: 'Ephemeral' });
  const unclaimed = spec('2', 'pv-2');
  const readings = new Map([inline, unclaimed].map(({ id }) => [id, read({ bytes: USAGE, health: [] })]));
  const desiredObjects = { claims: new Map([claim('shop', 'data', 'pv-1')]), volumes: new Map() };
  assert.doesNotMatch(
    metrics({ here: [here(inline), here(unclaimed)], readings, facts: { desiredObjects } }),
    /^kubelet_volume_stats_/m,
  );
});

test('volumes are counted by driver and state; a driver that is needed and not there is 0', () => {
  const specs = ['mounted', 'mounting', 'quarantined', 'unmounting'].map((name) => spec(name, name));
  const [mounted, mounting, quarantined, unmounting] = specs as [
    CsiVolumeSpec,
    CsiVolumeSpec,
    CsiVolumeSpec,
    CsiVolumeSpec,
  ];
  const quarantine = { reason: 'operator', sinceWallMs: 0, devices: [], verified: false } as const;
  const elsewhere = spec('far', 'far', { driver: 'b.test', id: csiVolumeId('b.test', 'far') });
  const text = metrics({
    wanted: [mounted, mounting, quarantined, elsewhere],
    here: [here(mounted), here(mounting, false), { ...here(quarantined), quarantine }, here(unmounting)],
  });
  assert.deepEqual(series(text, 'mooring_volumes').sort(), [
    'mooring_volumes{driver="a.test",state="mounted"} 1',
    'mooring_volumes{driver="a.test",state="mounting"} 1',
    'mooring_volumes{driver="a.test",state="quarantined"} 1',
    'mooring_volumes{driver="a.test",state="unmounting"} 1',
    'mooring_volumes{driver="b.test",state="mounting"} 1',
  ]);
  assert.deepEqual(series(text, 'mooring_quarantined_volumes'), ['mooring_quarantined_volumes 1']);
  assert.deepEqual(series(text, 'mooring_driver_registered'), [
    'mooring_driver_registered{driver="a.test"} 1',
    'mooring_driver_registered{driver="b.test"} 0',
  ]);
});

test('volumes that no driver has are counted by their kind', () => {
  const id = podVolumeId('kubernetes.io/empty-dir', UID, 'cache');
  const cache = {
    kind: 'empty-dir',
    id,
    pod: UID,
    name: 'cache',
    medium: 'disk',
    sizeLimitBytes: 0,
  } as const;
  const standing = onTheGround(cache, { attach: false, stage: false, expand: false });
  assert.deepEqual(series(metrics({ here: [standing] }), 'mooring_volumes'), [
    'mooring_volumes{driver="kubernetes.io/empty-dir",state="unmounting"} 1',
  ]);
});

test('waits by kind and code, operations by phase', () => {
  const text = metrics({
    facts: {
      obstacles: [
        { kind: 'waiting-retry', code: 'driver-busy', overdue: false, ...OF_VOLUME },
        { kind: 'waiting-retry', code: 'driver-busy', overdue: false, ...OF_VOLUME },
        { kind: 'frozen', code: undefined, overdue: true, ...OF_VOLUME },
      ],
      running: [{ phase: 'running' }, { phase: 'queued' }, { phase: 'queued' }],
    },
  });
  assert.deepEqual(series(text, 'mooring_obstacles'), [
    'mooring_obstacles{kind="waiting-retry",code="driver-busy"} 2',
    'mooring_obstacles{kind="frozen",code=""} 1',
  ]);
  assert.deepEqual(series(text, 'mooring_operations_running'), ['mooring_operations_running 1']);
  assert.deepEqual(series(text, 'mooring_operations_queued'), ['mooring_operations_queued 2']);
  assert.deepEqual(series(text, 'mooring_operations_overdue'), ['mooring_operations_overdue 1']);
});

test('a volume that cannot be resolved is a wait like the others, as it is in the status', () => {
  const desired = {
    complete: true,
    volumes: new Map(),
    unresolved: [{ failure: { code: 'reference-missing' } }, { failure: { code: 'reference-missing' } }],
  } as const;
  const obstacles = [{ kind: 'blocked', code: 'reference-missing', overdue: false, ...OF_VOLUME }] as const;
  assert.deepEqual(series(metrics({ facts: { desired, obstacles } }), 'mooring_obstacles'), [
    'mooring_obstacles{kind="blocked",code="reference-missing"} 3',
  ]);
});

test('health: one series for each thing a driver says, whatever it writes, and its message is not one of them', () => {
  const one = spec('vol "1"\\\n', 'pv-1');
  const health = [{ status: 'degraded', reason: 'Odd"\n\u0007', message: 'long story' }];
  const readings = new Map([[one.id, read({ health })]]);
  const statistics = { of: (id: VolumeId) => readings.get(id), ofStorage: () => health, owedBy: () => 0 };
  const desiredObjects = { claims: new Map([claim('shop', 'data', 'pv-1')]), volumes: new Map() };
  const text = metrics({ here: [here(one)], facts: { statistics, desiredObjects } });
  assert.deepEqual(series(text, 'mooring_volume_health'), [
    'mooring_volume_health{driver="a.test",volume="vol \\"1\\"\\\\\\\\u000a",' +
      'status="degraded",reason="Odd\\"\\\\u000a\\\\u0007"} 1',
  ]);
  assert.equal(series(text, 'mooring_storage_health').length, 1);
  assert.match(text, /health_status_abnormal\{.*\} 1$/m);
  assert.doesNotMatch(text, /long story/);
});

test('since when a driver owes an answer is a number of each volume, and how many it owes one of each driver', () => {
  const one = spec('1', 'pv-1');
  const readings = new Map([[one.id, { ...read({}), unansweredSinceMs: 40_000 }]]);
  const text = metrics({ here: [here(one), here(spec('2', 'pv-2'))], readings });
  assert.deepEqual(series(text, 'mooring_volume_unanswered_seconds'), [
    'mooring_volume_unanswered_seconds{driver="a.test",volume="1"} 60',
  ]);
  assert.deepEqual(series(text, 'mooring_driver_unanswered'), [
    'mooring_driver_unanswered{driver="a.test"} 2',
  ]);
});

test('A-038: no secret reaches the metrics', () => {
  const one = spec('1', 'pv-1');
  const readings = new Map([[one.id, read({ bytes: USAGE, health: [] })]]);
  assert.doesNotMatch(metrics({ wanted: [one], here: [here(one)], readings }), new RegExp(CANARY));
});

test('a volume of a pod with a limit: what it takes, what it may, and whether that is more', () => {
  const one: EmptyDirVolumeSpec = {
    kind: 'empty-dir',
    id: podVolumeId('kubernetes.io/empty-dir', UID, 'cache'),
    pod: UID,
    name: 'cache',
    medium: 'disk',
    sizeLimitBytes: 9,
  };
  const { publications, ...rest } = here(spec('v', 'cache'));
  const volume: ActualVolume = { ...rest, publications, spec: one };
  const bytes = { total: bytesFrom(9), used: bytesFrom(8), available: bytesFrom(1) };
  const page = (health: VolumeStatistics['health']) =>
    metrics({ here: [volume], readings: new Map([[one.id, read({ bytes, health })]]) });
  const labels = '{namespace="shop",pod="web",volume="cache"}';
  const values = (health: VolumeStatistics['health']) =>
    ['used_bytes', 'limit_bytes', 'over_limit'].flatMap((what) =>
      series(page(health), `mooring_pod_volume_${what}`),
    );
  assert.deepEqual(values([]), [
    `mooring_pod_volume_used_bytes${labels} 8`,
    `mooring_pod_volume_limit_bytes${labels} 9`,
    `mooring_pod_volume_over_limit${labels} 0`,
  ]);
  const over = { saidBy: 'agent', status: 'over-limit', reason: 'SizeLimitExceeded', message: '' } as const;
  assert.equal(values([over])[2], `mooring_pod_volume_over_limit${labels} 1`);
});

test('what the start found, sockets of drivers, and labels of SELinux have the names of the kubelet', () => {
  const labelled = spec('1', 'pv-1', { seLinuxContext: 'system_u:object_r:container_file_t:s0:c1,c2' });
  const modes = { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] as const };
  const shared = spec('2', 'pv-2', { ...modes, seLinuxContext: 'system_u:object_r:container_file_t:s0' });
  const sockets = [
    { path: '/a.sock', serves: true },
    { path: '/b.sock', serves: false },
  ];
  const facts = { recoveredVolumes: 3, unreadableRecords: 1, sockets };
  const text = metrics({ wanted: [labelled, shared, spec('3', 'pv-3')], facts });
  assert.deepEqual(series(text, 'reconstruct_volume_operations_total'), [
    'reconstruct_volume_operations_total 4',
  ]);
  assert.deepEqual(series(text, 'reconstruct_volume_operations_errors_total'), [
    'reconstruct_volume_operations_errors_total 1',
  ]);
  assert.deepEqual(series(text, 'plugin_manager_total_plugins'), [
    'plugin_manager_total_plugins{socket_path="/a.sock",state="desired_state_of_world"} 1',
    'plugin_manager_total_plugins{socket_path="/a.sock",state="actual_state_of_world"} 1',
    'plugin_manager_total_plugins{socket_path="/b.sock",state="desired_state_of_world"} 1',
  ]);
  const [first = ''] = labelled.accessModes;
  const mode = first === 'ReadWriteOnce' ? 'RWO' : first;
  const admitted = 'volume_manager_selinux_volumes_admitted_total';
  const ofMode = (one: string) =>
    `${admitted}{volume_plugin="kubernetes.io/csi/${DRIVER}",access_mode="${one}"} 1`;
  assert.deepEqual(series(text, admitted), [ofMode(mode), ofMode('RWX')]);
});

test("labels of SELinux that differ have the kubelet's names, and what never happens here has no series", () => {
  const name = (what: string): string => `volume_manager_selinux_${what}_total`;
  const label = 'system_u:object_r:container_file_t:s0:c';
  const [held, other] = ['1', '2'].map((level) => {
    return spec('1', 'pv-1', { accessModes: ['ReadWriteMany'], seLinuxContext: `${label}${level}` });
  });
  assert(held !== undefined && other !== undefined);
  const unlabelled = spec('2', 'pv-2', { accessModes: ['ReadWriteOncePod'] });
  const differing = wanted(unlabelled);
  const publications = [...differing.publications].map(([key, one]) => {
    return [key, { ...one, hasDifferentLabels: true as const }] as const;
  });
  const volumes = new Map([
    [held.id, wanted(held)],
    [unlabelled.id, { ...differing, publications: new Map(publications) }],
  ]);
  const refused = (code: 'volume-in-use' | 'spec-invalid', one: CsiVolumeSpec) => ({
    failure: { code },
    spec: one,
  });
  const unresolved = [
    refused('volume-in-use', other),
    refused('volume-in-use', other),
    refused('volume-in-use', held),
    refused('spec-invalid', other),
    { failure: { code: 'volume-in-use' as const } },
  ];
  const text = metrics({ facts: { desired: { complete: true, volumes, unresolved } } });
  const errors = name('volume_context_mismatch_errors');
  assert.deepEqual(series(text, errors), [
    `${errors}{volume_plugin="kubernetes.io/csi/${DRIVER}",access_mode="RWX"} 2`,
  ]);
  const warnings = name('pod_context_mismatch_warnings');
  assert.deepEqual(series(text, warnings), [`${warnings}{access_mode="RWOP"} 1`]);
  for (const never of [name('volume_context_mismatch_warnings'), name('pod_context_mismatch_errors')]) {
    assert.match(text, new RegExp(`^# TYPE ${never} gauge$`, 'm'));
    assert.deepEqual(series(text, never), []);
  }
});

test('D-126: for how long the Node has not been Ready is a number, and none while it is', () => {
  const name = 'mooring_detach_clock_seconds';
  assert.deepEqual(series(metrics(), name), []);
  assert.match(metrics(), /^# TYPE mooring_detach_clock_seconds gauge$/m);
  assert.deepEqual(series(metrics({ facts: { notReadyForMs: 90_500 } }), name), [`${name} 90.5`]);
});

test('orphaned pods are those of which the disk alone tells and that nobody wants', () => {
  const one = here(spec('1', 'pv-1'));
  const found = (which: ActualVolume): ActualVolume => {
    const places = [...which.publications].map(([key, place]) => {
      return [key, { ...place, spec: { ...place.spec, origin: RECONSTRUCTED } }] as const;
    });
    return { ...which, publications: new Map(places) };
  };
  const name = 'kubelet_orphan_pod_cleaned_volumes';
  const [publication] = one.publications.keys();
  const failing = { kind: 'waiting-retry', code: 'device-busy', overdue: false } as const;
  const obstacles = [{ ...failing, volume: one.spec.id, publication }];
  const told = (text: string) => [...series(text, name), ...series(text, `${name}_errors`)];
  assert.deepEqual(told(metrics({ here: [one] })), [`${name} 0`, `${name}_errors 0`]);
  const alone = metrics({ here: [found(one)], facts: { obstacles: obstacles as never } });
  assert.deepEqual(told(alone), [`${name} 1`, `${name}_errors 1`]);
  const asked = metrics({ here: [found(one)], wanted: [spec('1', 'pv-1')] });
  assert.deepEqual(told(asked), [`${name} 0`, `${name}_errors 0`]);
});
