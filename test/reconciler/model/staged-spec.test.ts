/** What stands is told of as it was set up, whatever is wished by now. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Failure } from '../../../mount/failure.ts';
import { createMountTable } from '../../../mount/mount-table.ts';
import type { CsiVolumeSpec, PublicationSpec, VolumeSpec } from '../../../plugins/volume.ts';
import { type ActualState, RESTARTED } from '../../../reconciler/model/actual-state.ts';
import type { DesiredVolume } from '../../../reconciler/model/desired-state.ts';
import { LATE_EFFECT_MS } from '../../../reconciler/run/lookout.ts';
import { recover } from '../../../reconciler/recovery/recover.ts';
import { createBench, layout, mountAt, onlyRecord } from '../bench.ts';
import { settled } from '../bench-host.ts';
import { actual, csi, place, wanted, wish } from '../world.ts';

const timedOut: Failure = { code: 'driver-deadline', message: 'late', effect: 'unknown' };
const refused: Failure = { code: 'driver-refused', message: 'no', effect: 'none' };

function changed(spec: Partial<CsiVolumeSpec>, pods: readonly string[]): DesiredVolume {
  return { ...wanted('data', pods), spec: { ...csi('data'), ...spec } };
}

/** Each in a way of its own; none of it may reach a call about what stands. */
const EVERYTHING: Partial<CsiVolumeSpec> = {
  fsType: 'xfs',
  mountOptions: ['noatime'],
  volumeAttributes: { tier: 'fast' },
  accessModes: ['ReadWriteMany'],
  readOnly: true,
};

test('A-062: a second pod is published to, and all is taken down, as the first was', async () => {
  const { plugins, reconciler } = createBench();
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  reconciler.setDesired(wish([changed(EVERYTHING, ['web', 'more'])]));
  await settled();
  reconciler.setDesired(wish([]));
  await settled();
  assert.deepEqual([...plugins.world], []);
  assert.deepEqual(plugins.calls.slice(2), [
    'publish more/pv-data',
    'unpublish web/pv-data',
    'unpublish more/pv-data',
    'unstage data',
  ]);
  for (const { spec } of plugins.made) assert.deepEqual(spec, csi('data'));
});

test('A-062: files where a device is wanted: who has them keeps them, who comes waits and is told why', async () => {
  const { plugins, reconciler } = createBench();
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  reconciler.setDesired(wish([changed({ mode: 'Block' }, ['web', 'more'])]));
  await settled();
  assert.equal(plugins.calls.length, 2);
  const [obstacle, ...others] = reconciler.obstacles();
  assert.deepEqual(others, []);
  assert.deepEqual(
    [obstacle?.kind, obstacle?.code, obstacle?.publication, obstacle?.blocker],
    ['blocked', 'volume-in-use', place('more', 'data').key, 'default/web'],
  );
  assert.match(obstacle?.message ?? '', /volumeMode Filesystem.*Block is wanted.*delete.*default\/web/);
  reconciler.setDesired(wish([changed({ mode: 'Block' }, ['more'])]));
  await settled();
  assert.deepEqual(
    plugins.made.slice(2).map(({ kind, spec }) => [kind, (spec as CsiVolumeSpec).mode]),
    [
      ['unpublish', 'Filesystem'],
      ['unstage', 'Filesystem'],
      ['stage', 'Block'],
      ['publish', 'Block'],
    ],
  );
  assert.deepEqual(reconciler.obstacles(), []);
});

for (const [field, was, now] of [
  ['accessModes', { accessModes: ['ReadWriteOncePod'] }, { accessModes: ['ReadWriteMany'] }],
  ['accessModes', { accessModes: ['ReadWriteMany'] }, { accessModes: ['ReadWriteOncePod'] }],
  ['seLinuxContext', { seLinuxContext: 'a' }, { seLinuxContext: 'b' }],
] as const) {
  const turn = `${JSON.stringify(was)} to ${JSON.stringify(now)}`;
  test(`A-062: ${field} that turn from ${turn} make a second pod wait`, async () => {
    const { plugins, reconciler } = createBench();
    reconciler.setDesired(wish([changed(was as Partial<CsiVolumeSpec>, ['web'])]));
    await settled();
    reconciler.setDesired(wish([changed(now as Partial<CsiVolumeSpec>, ['web', 'more'])]));
    await settled();
    assert.equal(plugins.calls.length, 2);
    assert.deepEqual(
      reconciler.obstacles().map(({ kind, code, blocker }) => [kind, code, blocker?.replace('pod ', '')]),
      [['blocked', 'volume-in-use', 'default/web']],
    );
  });
}

test('A-057: the record has what stands: after a restart it is staged and taken down as it was', async () => {
  const { host, plugins, reconciler } = createBench();
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  plugins.fault = (kind) => (kind === 'publish' ? timedOut : undefined);
  const both = changed({ ...EVERYTHING }, ['web', 'more']);
  reconciler.setDesired(wish([both]));
  await settled();
  const recovered = recover({
    records: [onlyRecord(host)],
    table: undefined,
    shown: new Map(),
    bootId: 'boot-1',
    layout,
  });
  const second = createBench({ recovered });
  second.reconciler.setDesired(wish([both]));
  await settled();
  second.reconciler.setDesired(wish([]));
  // The call that was open when the record was written may take effect until then.
  await second.host.advance(LATE_EFFECT_MS + 1_000);
  assert.equal(second.reconciler.actual().size, 0);
  assert.deepEqual(second.plugins.calls[0], 'stage data');
  // As it is read from a record: without what is undefined.
  const recorded = (spec: VolumeSpec): unknown => JSON.parse(JSON.stringify(spec));
  for (const { spec } of second.plugins.made) assert.deepEqual(recorded(spec), recorded(csi('data')));
});

test('A-062: what nobody has is taken down and set up again as it is wanted', async () => {
  const { plugins, reconciler } = createBench();
  plugins.fault = (kind) => (kind === 'publish' ? refused : undefined);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  plugins.fault = () => undefined;
  reconciler.setDesired(wish([changed(EVERYTHING, ['web'])]));
  await settled();
  assert.deepEqual(plugins.calls.slice(2), ['unstage data', 'stage data', 'publish web/pv-data']);
  assert.deepEqual(
    plugins.made.slice(2).map(({ spec }) => (spec as CsiVolumeSpec).fsType),
    [csi('data').fsType, 'xfs', 'xfs'],
  );
  assert.deepEqual(reconciler.obstacles(), []);
});

test('a mended wish mends a volume that could never be published, whatever the tries did', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.fault = (kind) => (kind === 'publish' ? timedOut : undefined);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  plugins.fault = () => undefined;
  reconciler.setDesired(wish([changed(EVERYTHING, ['web'])]));
  await settled();
  await host.advance(1_000);
  assert.deepEqual(plugins.calls.slice(2), [
    'unpublish web/pv-data',
    'unstage data',
    'stage data',
    'publish web/pv-data',
  ]);
  assert.deepEqual(
    plugins.made.slice(2).map(({ spec }) => (spec as CsiVolumeSpec).fsType),
    [csi('data').fsType, csi('data').fsType, 'xfs', 'xfs'],
  );
});

test('a restart does not keep a mended wish from a volume that could never be published', async () => {
  for (const mounted of [false, true]) {
    const { host, plugins, reconciler } = createBench();
    plugins.fault = (kind) => (kind === 'publish' ? timedOut : undefined);
    reconciler.setDesired(wish([wanted('data', ['web'])]));
    await settled();
    await host.advance(100);
    const target = layout.mountPoint(csi('data'), place('web', 'data'));
    const table = createMountTable(mounted ? [mountAt(target)] : []);
    const recovered = recover({
      records: [onlyRecord(host)],
      table,
      shown: new Map(),
      bootId: 'boot-1',
      layout,
    });
    const second = createBench({ recovered });
    second.reconciler.setDesired(wish([changed(EVERYTHING, ['web'])]));
    await settled();
    const renewed = ['unpublish web/pv-data', 'unstage data', 'stage data', 'publish web/pv-data'];
    assert.deepEqual(second.plugins.calls, mounted ? ['stage data', 'publish web/pv-data'] : renewed);
  }
});

test('a volume that a pod may have is not taken down for a new wish, however often it fails', async () => {
  const before = actual('data', { staged: 'unsure', pods: { web: 'unsure' } });
  const { host, plugins, reconciler } = createBench({ recovered: new Map([[before.spec.id, before]]) });
  plugins.fault = () => timedOut;
  reconciler.setDesired(wish([changed(EVERYTHING, ['web'])]));
  await settled();
  await host.advance(10_000);
  assert.deepEqual([...new Set(plugins.calls)], ['stage data']);
  plugins.fault = (kind) => (kind === 'publish' ? timedOut : undefined);
  await host.advance(30_000);
  assert.deepEqual([...new Set(plugins.calls)], ['stage data', 'publish web/pv-data']);
  for (const { spec } of plugins.made) assert.deepEqual(spec, csi('data'));
});

test('a place keeps what it was published with, when it is published again and when it goes', async () => {
  const { plugins, reconciler } = createBench();
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  const want = wanted('data', ['web']);
  const readOnly: PublicationSpec = {
    ...place('web', 'data', 'other.yaml'),
    readOnly: true,
    fsGroup: { gid: 7, changePolicy: 'Always' },
  };
  const again = { spec: readOnly, generation: 'republish-1', files: undefined, tokens: undefined };
  reconciler.setDesired(wish([{ ...want, publications: new Map([[readOnly.key, again]]) }]));
  await settled();
  reconciler.setDesired(wish([]));
  await settled();
  const places = plugins.made.flatMap(({ kind, publication }) =>
    publication === undefined ? [] : [[kind, publication.readOnly, publication.fsGroup?.gid]],
  );
  assert.deepEqual(places, [
    ['publish', false, undefined],
    ['publish', false, undefined],
    ['unpublish', false, undefined],
  ]);
});

/** By pods of these groups, in this order. */
function wantedByGroups(gids: Readonly<Record<string, number>>): DesiredVolume {
  const volume = wanted('data', Object.keys(gids));
  const places = [...volume.publications.values()].map((one) => {
    const fsGroup = { gid: gids[one.spec.pod.name] ?? 0, changePolicy: 'Always' } as const;
    return [one.spec.key, { ...one, spec: { ...one.spec, fsGroup } }] as const;
  });
  return { ...volume, publications: new Map(places) };
}

/** The driver has VOLUME_MOUNT_GROUP, or not. */
function groupBench({ tellsGroup = true, recovered = new Map() as ActualState } = {}) {
  const bench = createBench({ recovered });
  bench.plugins.needs = { attach: false, stage: true, expand: false, tellsGroup };
  const stages = () => bench.plugins.made.flatMap(({ kind, gid }) => (kind === 'stage' ? [gid] : []));
  const failing = (verb: string, failure: Failure) => {
    bench.plugins.fault = (kind) => (kind === verb ? failure : undefined);
  };
  return { ...bench, stages, failing };
}

const precondition: Failure = { code: 'driver-precondition', message: 'not staged', effect: 'none' };
const conflict: Failure = { code: 'driver-conflict', message: 'staged otherwise', effect: 'unknown' };

test('A-032, A-057: a stage is repeated for its group while a pod has the volume, whoever is first now', async () => {
  const { host, plugins, reconciler, stages, failing } = groupBench();
  reconciler.setDesired(wish([wantedByGroups({ zeta: 1_000 })]));
  await settled();
  failing('publish', precondition);
  reconciler.setDesired(wish([wantedByGroups({ alpha: 2_000, zeta: 1_000 })]));
  await settled();
  plugins.fault = () => undefined;
  await host.advance(10_000);
  assert.deepEqual(new Set(stages()), new Set([1_000]));
  assert.ok(stages().length > 1, 'what the driver says of the stage has it repeated');
  assert.deepEqual([...plugins.world].sort(), ['alpha/pv-data', 'staged data', 'zeta/pv-data']);
});

test('A-056: a stage for a group that no pod has any more is undone, and made for the next one', async () => {
  const { host, plugins, reconciler, stages, failing } = groupBench();
  failing('stage', timedOut);
  reconciler.setDesired(wish([wantedByGroups({ old: 1_000 })]));
  await settled();
  plugins.fault = () => undefined;
  reconciler.setDesired(wish([wantedByGroups({ next: 2_000 })]));
  await host.advance(10_000);
  assert.deepEqual(plugins.calls.slice(-3), ['unstage data', 'stage data', 'publish next/pv-data']);
  assert.deepEqual(stages(), [1_000, 2_000]);
});

test('A-057: the record has the group; with one of an older build it is that of a pod with the volume', async () => {
  const { host, plugins, reconciler, failing } = groupBench();
  failing('stage', timedOut);
  reconciler.setDesired(wish([wantedByGroups({ web: 1_000 })]));
  await settled();
  plugins.fault = () => undefined;
  const input = { table: undefined, shown: new Map(), bootId: 'boot-1', layout };
  const next = groupBench({ recovered: recover({ ...input, records: [onlyRecord(host)] }) });
  next.reconciler.setDesired(wish([wantedByGroups({ alpha: 2_000, web: 1_000 })]));
  await settled();
  assert.deepEqual(next.stages(), [1_000]);
  next.reconciler.setDesired(wish([wantedByGroups({ web: 1_000 })]));
  await next.host.advance(1_000);
  const { stagedFor: _, ...older } = onlyRecord(next.host);
  const upgraded = groupBench({ recovered: recover({ ...input, records: [older] }) });
  upgraded.reconciler.setDesired(wish([wantedByGroups({ aaa: 3_000, web: 1_000 })]));
  await settled();
  assert.equal(upgraded.plugins.calls.includes('unstage data'), false);
  assert.deepEqual(upgraded.stages(), [1_000]);
});

test('A-057: a volume found on disk is staged again for the group of the pod that it was found in', async () => {
  const entry = { presence: RESTARTED, generation: undefined, mount: undefined };
  const found = {
    ...actual('data', { staged: 'unsure' }),
    reconstructed: true as const,
    publications: new Map([[place('web', 'data').key, { ...entry, spec: place('web', 'data', '') }]]),
  };
  const { reconciler, stages } = groupBench({ recovered: new Map([[found.spec.id, found]]) });
  reconciler.setDesired(wish([wantedByGroups({ alpha: 2_000, web: 1_000 })]));
  await settled();
  assert.deepEqual(stages(), [1_000]);
});

test('a driver that is not told of groups keeps what is staged for the next pod', async () => {
  const { host, plugins, reconciler, failing } = groupBench({ tellsGroup: false });
  failing('publish', refused);
  reconciler.setDesired(wish([wantedByGroups({ old: 1_000 })]));
  await settled();
  plugins.fault = () => undefined;
  reconciler.setDesired(wish([wantedByGroups({ next: 2_000 })]));
  await host.advance(1_000);
  assert.deepEqual(plugins.calls, ['stage data', 'publish old/pv-data', 'publish next/pv-data']);
});

for (const [verb, undoing] of [
  ['attach', ['detach data', 'attach data']],
  ['stage', ['unstage data', 'stage data']],
  ['publish', ['unpublish web/pv-data', 'publish web/pv-data']],
] as const) {
  test(`A-056: what its driver has otherwise already, by ${verb}, is undone before it is tried again`, async () => {
    const { host, plugins, reconciler, failing } = groupBench();
    plugins.needs = { attach: true, stage: true, expand: false };
    failing(verb, conflict);
    reconciler.setDesired(wish([wanted('data', ['web'])]));
    await settled();
    plugins.fault = () => undefined;
    await host.advance(10_000);
    const refused = plugins.calls.findIndex((call) => call.startsWith(verb));
    assert.deepEqual(plugins.calls.slice(refused + 1, refused + 1 + undoing.length), undoing);
    assert.deepEqual([...plugins.world].sort(), ['attached data', 'staged data', 'web/pv-data']);
  });
}

test('A-056: it is not undone under a pod that has it', async () => {
  const { host, plugins, reconciler } = groupBench();
  reconciler.setDesired(wish([wantedByGroups({ zeta: 1_000 })]));
  await settled();
  plugins.fault = (kind, subject) => {
    if (kind === 'stage') return conflict;
    return kind === 'publish' && subject.startsWith('alpha') ? precondition : undefined;
  };
  reconciler.setDesired(wish([wantedByGroups({ alpha: 2_000, zeta: 1_000 })]));
  await host.advance(60_000);
  assert.ok(plugins.calls.every((call) => !call.startsWith('un')));
  assert.ok(plugins.world.has('zeta/pv-data'));
  assert.equal(reconciler.obstacles()[0]?.code, 'driver-conflict');
});

const missed: Failure = { code: 'staged-not-mounted', message: 'said OK, is gone', effect: 'unknown' };

/** Its driver says OK to a stage from its books, and mounts nothing before it was asked to unstage. */
function bookedBench() {
  const bench = createBench();
  const { plugins } = bench;
  plugins.fault = (kind) =>
    kind === 'stage' && !plugins.calls.includes('unstage data') ? missed : undefined;
  return bench;
}

test('DR-12: what a driver says it has staged, and is not mounted, is unstaged and staged anew', async () => {
  const { host, plugins, reconciler } = bookedBench();
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await host.advance(10_000);
  assert.deepEqual(plugins.calls, ['stage data', 'unstage data', 'stage data', 'publish web/pv-data']);
});

test('DR-12: a driver that never mounts it is asked as seldom as one that fails, and the reason is told', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.fault = (kind) => (kind === 'stage' ? missed : undefined);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  for (const why of reconciler.obstacles()) assert.equal(why.code, 'staged-not-mounted');
  await host.advance(60_000);
  const stages = plugins.calls.filter((call) => call === 'stage data').length;
  assert.ok(stages > 3 && stages < 20, `${stages} stages in a minute`);
  const [why] = reconciler.obstacles();
  assert.deepEqual([why?.code, why?.kind], ['staged-not-mounted', 'waiting-retry']);
  plugins.calls.length = 0;
  reconciler.setDesired(wish([]));
  await host.advance(60_000);
  assert.ok(plugins.calls.every((call) => call === 'unstage data'));
  assert.deepEqual([...plugins.world], []);
});

test('DR-12: a pod with the volume keeps it while its stage is looked for; without one it is unstaged', async () => {
  const { host, plugins, reconciler } = bookedBench();
  plugins.fault = () => undefined;
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  plugins.calls.length = 0;
  plugins.fault = (kind, subject) => {
    if (kind === 'stage') return missed;
    return kind === 'publish' && subject.startsWith('more') ? { ...missed, effect: 'none' } : undefined;
  };
  reconciler.setDesired(wish([wanted('data', ['more', 'web'])]));
  await host.advance(30_000);
  assert.ok(plugins.calls.every((call) => !call.startsWith('un')));
  assert.ok(plugins.world.has('web/pv-data'));
  plugins.calls.length = 0;
  reconciler.setDesired(wish([]));
  await host.advance(10_000);
  assert.deepEqual(plugins.calls, ['unpublish web/pv-data', 'unstage data']);
});

test('DR-12: nothing is unstaged for that while a source cannot be listed: it is staged again', async () => {
  const { host, plugins, reconciler } = bookedBench();
  reconciler.setDesired(wish([wanted('data', ['web'])], { complete: false }));
  await host.advance(10_000);
  assert.deepEqual(new Set(plugins.calls), new Set(['stage data']));
});

test('of a volume found on disk the wish tells the rest, but not whether it is files or a device', async () => {
  const found = {
    ...actual('data', { staged: 'unsure' }),
    spec: { ...csi('data'), volumeAttributes: {} },
    reconstructed: true as const,
    publications: new Map([
      [
        place('web', 'data').key,
        { spec: place('web', 'data', ''), presence: RESTARTED, generation: undefined, mount: undefined },
      ],
    ]),
  };
  const files = createBench({ recovered: new Map([[found.spec.id, found]]) });
  files.reconciler.setDesired(wish([changed(EVERYTHING, ['web'])]));
  await settled();
  assert.deepEqual(files.plugins.calls, ['stage data', 'publish web/pv-data']);
  for (const { spec } of files.plugins.made) assert.deepEqual(spec, { ...csi('data'), ...EVERYTHING });
  // It is known from now on.
  files.reconciler.setDesired(wish([changed({ fsType: 'ext3' }, ['web', 'more'])]));
  await settled();
  assert.deepEqual(files.plugins.made.at(-1)?.spec, { ...csi('data'), ...EVERYTHING });

  const device = createBench({ recovered: new Map([[found.spec.id, found]]) });
  device.reconciler.setDesired(wish([changed({ mode: 'Block' }, ['web'])]));
  await settled();
  assert.deepEqual(device.plugins.calls, []);
  assert.deepEqual(
    device.reconciler.obstacles().map(({ kind, code }) => [kind, code]),
    [['blocked', 'volume-in-use']],
  );
});

for (const [what, answer] of [
  ['answered', undefined],
  ['not answered', timedOut],
] as const)
  test(`A-055: what is asked for a pod and ${what} is known, though another pod was refused meanwhile`, async () => {
    const places = ['web', 'api'].map((pod) => place(pod, 'data', ''));
    const entry = { presence: RESTARTED, generation: undefined, mount: undefined };
    const found = {
      ...actual('data', {}),
      reconstructed: true as const,
      publications: new Map(places.map((spec) => [spec.key, { ...entry, spec }])),
    };
    const { host, plugins, reconciler } = createBench({ recovered: new Map([[found.spec.id, found]]) });
    plugins.needs = { attach: false, stage: false, expand: false };
    plugins.fault = (_, subject) => (subject.startsWith('web') ? refused : answer);
    reconciler.setDesired(wish([changed(EVERYTHING, ['web', 'api'])]));
    await settled();
    assert.deepEqual(plugins.calls, ['publish web/pv-data', 'publish api/pv-data']);
    reconciler.setDesired(wish([changed({ fsType: 'ext3' }, ['web', 'api', 'more'])]));
    await host.advance(60_000);
    for (const { spec } of plugins.made) assert.deepEqual(spec, { ...csi('data'), ...EVERYTHING });
  });
