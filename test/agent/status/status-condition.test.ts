/** What stands beside the ladder (quarantine, expansion, statistics, health, strangers) in status and explain. */
import type { VolumeReading } from '../../../agent/node/statistics-collector.ts';
import type { Failure } from '../../../mount/failure.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explain, type ExplanationDocument } from '../../../agent/status/explain.ts';
import type { PersistentVolume, Stamped } from '../../../kubernetes/objects/objects.ts';
import { sizeText } from '../../../mount/text/size-text.ts';
import { statusOf } from '../../../agent/status/status.ts';
import type { StatusDocument } from '../../../agent/status/status-document.ts';
import type { VolumeStatus } from '../../../agent/status/volume-status.ts';
import type { StatusFacts } from '../../../agent/status/status-facts.ts';
import { explanationText, statusText } from '../../../agent/cli/status-text.ts';
import type { DeviceNumber } from '../../../mount/host.ts';
import type { HealthStatement, VolumeStatistics } from '../../../plugins/plugin.ts';
import { countedArray, CountedMap } from '../counted-reads.ts';
import {
  bytesFrom,
  type CsiVolumeSpec,
  RECONSTRUCTED,
  publicationKey,
  type VolumeId,
} from '../../../plugins/volume.ts';
import {
  ABSENT,
  type ActualVolume,
  BEGUN,
  PRESENT,
  type Quarantine,
} from '../../../reconciler/model/actual-state.ts';
import type { WantedSize } from '../../../reconciler/model/desired-state.ts';
import {
  actual,
  csi,
  DATA,
  DB,
  desired,
  DRIVER,
  facts,
  gib,
  LAYOUT,
  obstacle,
  pod,
  SECRET_CANARY,
  wanted,
  WEB,
} from '../status-fixture.ts';

const LOOK = { widthMax: undefined, colour: false, unicode: true } as const;

function status(given: Partial<StatusFacts>): StatusDocument {
  return statusOf(facts(given), LAYOUT, 'r-1');
}

function onlyVolume(given: Partial<StatusFacts>): VolumeStatus {
  const [volume] = status(given).volumes;
  assert(volume !== undefined);
  return volume;
}

function explained(subject: string, given: Partial<StatusFacts>): ExplanationDocument {
  const explanation = explain(subject, status(given));
  assert(explanation.kind === 'found', JSON.stringify(explanation));
  return explanation.document;
}

function table(given: Partial<StatusFacts>, wide = false): string {
  return statusText(status(given), { look: LOOK, wide });
}

function known(volume: ActualVolume): Pick<StatusFacts, 'actual'> {
  return { actual: new Map([[volume.spec.id, volume]]) };
}

const SINCE = Date.UTC(2026, 10, 21, 11, 50, 0);

function quarantine(rest: Partial<Quarantine> = {}): Quarantine {
  return {
    reason: 'operator',
    sinceWallMs: SINCE,
    devices: ['8:16' as DeviceNumber],
    verified: false,
    ...rest,
  };
}

const WANTED = { desired: desired([wanted(DATA, WEB)]), pods: [WEB] };

test('a volume in quarantine is never called mounted: it is unmounting while it stands, and blocked after', () => {
  const published = { ...actual(DATA, PRESENT, PRESENT, WEB), quarantine: quarantine() };
  const before = status({ ...WANTED, ...known(published) });
  assert.deepEqual(
    before.pods.map(({ ready, volumes }) => [ready, volumes[0]?.state, volumes[0]?.rungs.published]),
    [[false, 'unmounting', 'present']],
  );
  assert.equal(before.summary.quarantined, 1);
  assert.deepEqual(before.volumes[0]?.quarantine, {
    reason: 'operator',
    since: '2026-11-21T11:50:00.000Z',
    verified: false,
    standing: false,
  });
  const down = { ...actual(DATA, ABSENT, PRESENT), quarantine: quarantine() };
  const held = obstacle(DATA, { kind: 'quarantined', code: 'quarantined', message: 'in quarantine' });
  const after = status({ ...WANTED, ...known(down), obstacles: [held] });
  assert.equal(after.pods[0]?.volumes[0]?.state, 'blocked');
});

test('explain says why a volume is in quarantine and what it waits for, down to who holds it', () => {
  const steps: readonly [ActualVolume, RegExp][] = [
    [actual(DATA, PRESENT, PRESENT, WEB, DB), /; it waits to be unpublished from default\/db, default\/web$/],
    [actual(DATA, PRESENT, PRESENT), /; it waits to be unstaged$/],
    [
      actual(DATA, ABSENT, PRESENT),
      /; it waits for proof that nobody on this machine uses its devices any more$/,
    ],
  ];
  for (const [volume, end] of steps) {
    const { conditions } = explained('data', {
      ...WANTED,
      ...known({ ...volume, quarantine: quarantine({ reason: 'attachment-lost' }) }),
    });
    assert.equal(conditions.length, 1);
    assert.match(
      conditions[0]?.sentence ?? '',
      /^in quarantine since 2026-11-21T11:50:00.000Z \(attachment-lost\), because its attachment was taken away/,
    );
    assert.match(conditions[0]?.sentence ?? '', end);
  }
  const clean = obstacle(DATA, {
    operation: 'clean',
    code: 'device-in-use',
    message: 'the device is in use',
    blocker: 'pid 4711 (tail)',
  });
  const held = obstacle(DATA, { kind: 'quarantined', code: 'quarantined', message: 'in quarantine' });
  const { summary, obstacles } = explained('data', {
    ...WANTED,
    ...known({ ...actual(DATA, ABSENT, PRESENT), quarantine: quarantine() }),
    obstacles: [held, clean],
  });
  assert.equal(summary, 'volume data: it is in quarantine');
  assert.equal(
    obstacles[0]?.sentence,
    'clean failed 3 times (device-in-use) for 41s: the device is in use, blocked by pid 4711 (tail); next try in 12s',
  );
});

test('who keeps a quarantined volume mounted in a pod is told before that it is not set up again', () => {
  const publication = publicationKey(WEB.uid, 'data');
  const held = obstacle(DATA, {
    kind: 'quarantined',
    operation: 'publish',
    publication,
    code: 'quarantined',
  });
  const busy = obstacle(DATA, {
    operation: 'unpublish',
    publication,
    code: 'mount-busy',
    message: 'the mount is in use',
    blocker: 'pid 7',
  });
  const given = {
    ...WANTED,
    ...known({ ...actual(DATA, PRESENT, BEGUN, WEB), quarantine: quarantine() }),
    obstacles: [held, busy],
  };
  assert.match(explained('web', given).obstacles[0]?.sentence ?? '', /unpublish failed .* blocked by pid 7/);
  assert.match(
    table(given),
    /unmounting, quarantined\n {4}└ in quarantine .*\n {4}└ unpublish failed .*pid 7/,
  );
});

test('a quarantine by the wish stands although the volume is clean, or was never here', () => {
  const marked = { desired: desired([wanted(DATA, WEB)], { outOfService: true }), pods: [WEB] };
  assert.deepEqual(onlyVolume(marked).quarantine, {
    reason: 'node-out-of-service',
    since: null,
    verified: false,
    standing: true,
  });
  assert.match(
    explained('data', marked).conditions[0]?.sentence ?? '',
    /; nothing of it is here, and nothing is set up/,
  );
  const clean = { ...actual(DATA, ABSENT, PRESENT), quarantine: quarantine({ verified: true }) };
  const sentence = explained('data', { ...marked, ...known(clean) }).conditions[0]?.sentence ?? '';
  assert.match(sentence, /; it was proven clean, and leaves when the wish no longer says so$/);
  const lost = { ...desired([wanted(DATA, WEB)]), lostAttachments: new Set([DATA.id]) };
  const here = { desired: lost, ...known(actual(DATA, PRESENT, PRESENT, WEB)) };
  assert.equal(onlyVolume(here).quarantine?.reason, 'attachment-lost');
  assert.equal(onlyVolume({ desired: lost }).quarantine, null, 'what never was here is not lost');
});

test('DR-05: what may still come of a call that was given up is told, of a volume that is down, too', () => {
  const place = actual(DATA, ABSENT, ABSENT, WEB).publications.values().next().value?.spec;
  // Ten minutes after the moment of the fixture.
  const untilMs = 1_600_000;
  const publish = { operation: 'publish', publication: place, untilMs } as const;
  // A call that is being made is nothing to tell.
  const tombstones = [publish, { operation: 'stage', open: true } as const];
  const down = known({ ...actual(DATA, ABSENT, ABSENT), tombstones });
  assert.deepEqual(onlyVolume(down).lateEffects, [
    { operation: 'publish', pod: 'default/web', until: '2026-11-21T12:10:00.000Z' },
  ]);
  const told =
    'publish for pod default/web was given up without an answer and may still take effect ' +
    'until 2026-11-21T12:10:00.000Z: what comes is given back to the driver, and no pod waits for it';
  const { summary, conditions } = explained('data', down);
  assert.equal(summary, 'volume data: it is down, and watched for what may still come');
  assert.deepEqual(
    conditions.map(({ kind, sentence }) => [kind, sentence]),
    [['late-effect', told]],
  );
  assert.ok(table(down).includes(`Of no pod any more: volume data: ${told}`));
});

test('the table makes a quarantine stand out, also of a volume that is in no pod any more', () => {
  const volume = { ...actual(DATA, PRESENT, PRESENT, WEB), quarantine: quarantine() };
  const text = table({ ...WANTED, ...known(volume) });
  assert.match(text, /^✗|^◌/);
  assert.match(text, /1 quarantined/);
  assert.match(
    text,
    /default\/web +data +loopfile.mooring.dev +◑ unmounting, quarantined\n {4}└ in quarantine since/,
  );
  const alone = { ...actual(DATA, ABSENT, PRESENT), quarantine: quarantine() };
  const clean = obstacle(DATA, { operation: 'clean', code: 'device-in-use', blocker: 'pid 7' });
  const remark = table({ ...known(alone), obstacles: [clean] });
  assert.match(
    remark,
    /Of no pod any more: volume data: in quarantine since .*; clean failed 3 times .* pid 7/,
  );
});

function sized(size: Partial<WantedSize>, volume?: Partial<ActualVolume>): Partial<StatusFacts> {
  const bytes = { bytes: gib(20), knownBytes: undefined, held: undefined, ...size };
  return {
    desired: desired([{ ...wanted(DATA, WEB), size: bytes }]),
    pods: [WEB],
    ...(volume === undefined
      ? {}
      : known({ ...actual(DATA, PRESENT, PRESENT, WEB), sizeBytes: gib(10), ...volume })),
  };
}

test('A-071: an expansion is pending, under way, held, or refused, and says so', () => {
  const state = (given: Partial<StatusFacts>): unknown => {
    const { state: word, message } = onlyVolume(given).expansion;
    return [word, message];
  };
  assert.deepEqual(state(sized({}, {})), ['pending', null]);
  assert.deepEqual(state(sized({ bytes: gib(10) }, {})), ['none', null]);
  assert.deepEqual(state(sized({ bytes: gib(5) }, {})), ['none', null]);
  assert.deepEqual(state(sized({ held: 'read-only' }, {})), ['held', 'read-only']);
  assert.deepEqual(state({ ...WANTED, ...known(actual(DATA, PRESENT, PRESENT, WEB)) }), ['none', null]);
  const refused = (because: 'in-use' | 'infeasible', toBytes = gib(20)): Partial<StatusFacts> =>
    sized({}, { refusedExpansion: { toBytes, because, message: 'no' } });
  assert.deepEqual(state(refused('in-use')), ['in-use', 'no']);
  assert.deepEqual(state(refused('in-use', gib(15))), ['in-use', 'no']);
  assert.deepEqual(state(refused('infeasible')), ['infeasible', 'no']);
  assert.deepEqual(state(refused('infeasible', gib(15))), ['pending', null]);
  const running = obstacle(DATA, { kind: 'running', operation: 'expand', code: undefined });
  assert.deepEqual(state({ ...sized({}, {}), obstacles: [running] }), ['in-progress', null]);
  const failed = obstacle(DATA, { operation: 'expand', code: 'driver-failed', message: 'disk on fire' });
  assert.deepEqual(state({ ...sized({}, {}), obstacles: [failed] }), ['pending', 'disk on fire']);
  // Not here yet: it is grown when it comes.
  assert.deepEqual(state(sized({ knownBytes: gib(1) })), ['pending', null]);
  const cannot = sized({}, { needs: { attach: false, stage: true, expand: false } });
  assert.deepEqual(state(cannot), ['none', 'the driver grows nothing on the node']);
});

test('explain tells of a claim that asks for more than its volume has', () => {
  const claimLarger =
    'PersistentVolumeClaim default/data asks for 3 GiB, and its PersistentVolume data has 2 GiB';
  const given = sized({ bytes: gib(10), claimLarger }, {});
  assert.equal(onlyVolume(given).expansion.state, 'claim-larger');
  const sentence = `${claimLarger}; it is grown when its storage was, and the PersistentVolume says so`;
  assert.deepEqual(explained('data', given).conditions, [{ kind: 'expansion', volume: DATA.id, sentence }]);
});

test('sizes are decimal digits, exact beyond what a JavaScript number holds', () => {
  const huge = bytesFrom(9_223_372_036_854_775_807n);
  const volume = onlyVolume(sized({ bytes: huge }, {}));
  assert.deepEqual(volume.size, { wanted: '9223372036854775807', current: '10737418240' });
  assert.equal(sizeText(huge), '7.9 EiB');
  assert.deepEqual(['0', '1023', '1024', '1610612736', '10737418240'].map(sizeText), [
    '0 B',
    '1023 B',
    '1 KiB',
    '1.5 GiB',
    '10 GiB',
  ]);
});

test('explain and table tell of an expansion that was refused', () => {
  const given = sized({}, { refusedExpansion: { toBytes: gib(20), because: 'in-use', message: 'busy' } });
  const sentence =
    'it has 10 GiB of 20 GiB: the driver refused while it is used (busy); it is tried again when no pod has it';
  const { summary, conditions } = explained('data', given);
  assert.equal(summary, 'nothing is in the way of volume data: it is mounted for 1 of 1 pod');
  assert.deepEqual(conditions, [{ kind: 'expansion', volume: DATA.id, sentence }]);
  assert.equal(explained('web', given).conditions[0]?.sentence, `volume data: ${sentence}`);
  assert.match(table(given), /● mounted\n {4}└ it has 10 GiB of 20 GiB/);
  assert.doesNotMatch(table(sized({}, {})), /└/);
  assert.match(explanationText(explained('data', given), LOOK), /\n {2}• it has 10 GiB of 20 GiB/);
});

test('a growth that failed and is tried again is told with its reason: it does not go on unseen', () => {
  const failed = obstacle(DATA, { operation: 'expand', code: 'driver-failed', message: 'disk on fire' });
  const given = { ...sized({}, {}), obstacles: [failed] };
  const sentence = 'it has 10 GiB of 20 GiB: it is to be grown (disk on fire)';
  assert.equal(explained('web', given).conditions[0]?.sentence, `volume data: ${sentence}`);
  assert.ok(table(given).includes(`└ ${sentence}`));
});

test('wide shows the mode and the size, and what the size is to be', () => {
  assert.match(table(sized({}, {}), true), /ACCESS +MODE +SIZE +UID/);
  assert.match(table(sized({}, {}), true), /rw +Filesystem +10 GiB of 20 GiB +1{8}-/);
  assert.match(table(sized({ bytes: gib(10) }, {}), true), /Filesystem +10 GiB +1{8}-/);
});

test('a block volume says so, and its path is the link that the runtime resolves', () => {
  const device: CsiVolumeSpec = { ...DATA, mode: 'Block', accessModes: ['ReadWriteOncePod'] };
  const { volumes, pods } = status({
    desired: desired([wanted(device, WEB)]),
    ...known(actual(device, PRESENT, PRESENT, WEB)),
  });
  const [volume] = volumes;
  assert.deepEqual(
    [volume?.mode, volume?.lifecycle, volume?.accessModes],
    ['Block', 'Persistent', ['ReadWriteOncePod']],
  );
  assert.equal(volume?.stagingPath, '/var/lib/mooring/plugins/kubernetes.io/csi/volumeDevices/staging/data');
  assert.equal(
    pods[0]?.volumes[0]?.path,
    `/var/lib/mooring/pods/${WEB.uid}/volumeDevices/kubernetes.io~csi/data`,
  );
});

function reading(
  answer: Partial<VolumeStatistics>,
  question: Partial<VolumeReading> = {},
): Pick<StatusFacts, 'statistics'> {
  const statistics: VolumeStatistics = { bytes: undefined, inodes: undefined, health: undefined, ...answer };
  const answered = { failure: undefined, unansweredSinceMs: undefined, nextAskMs: undefined };
  const of = (id: VolumeId) =>
    id === DATA.id ? { statistics, atMs: 990_000, ...answered, ...question } : undefined;
  return { statistics: { of, ofStorage: () => undefined, owedBy: () => 1 } };
}

const THERE = { ...WANTED, ...known(actual(DATA, PRESENT, PRESENT, WEB)) };

test('statistics carry their age, and what the driver does not say is null', () => {
  const bytes = { total: gib(10), used: gib(3), available: undefined };
  const volume = onlyVolume({ ...THERE, ...reading({ bytes }) });
  assert.deepEqual(volume.statistics, {
    bytes: { total: '10737418240', used: '3221225472', available: null },
    inodes: null,
    ageMs: 10_000,
  });
  assert.equal(volume.health, null);
  assert.equal(onlyVolume(THERE).statistics, null);
  assert.equal(onlyVolume({ ...THERE, ...reading({}) }).statistics, null);
});

test('that a driver has not answered how a volume is, since when and until when, is told; a failure in explain', () => {
  const bytes = { total: gib(10), used: gib(3), available: undefined };
  const failure: Failure = { code: 'driver-deadline', message: 'no answer', effect: 'unknown' };
  const given = {
    ...THERE,
    ...reading({ bytes }, { failure, unansweredSinceMs: 880_000, nextAskMs: 1_180_000 }),
  };
  const document = status(given);
  assert.deepEqual(document.volumes[0]?.question, {
    unansweredSince: '2026-11-21T11:58:00.000Z',
    unansweredForMs: 120_000,
    nextAskInMs: 180_000,
    failure: { code: 'driver-deadline', message: 'no answer', blocker: null },
  });
  assert.equal(document.summary.unanswered, 1);
  assert.equal(document.pods[0]?.ready, true);
  const sentence =
    'driver loopfile.mooring.dev has not answered since 2026-11-21T11:58:00.000Z (2m) how it is; ' +
    'what is known is 10s old, and it is asked again in 3m';
  assert.ok(explained('web', given).conditions.some((one) => one.sentence.endsWith(sentence)));
  assert.match(table(given), /has not answered since/);
  const failed = { ...THERE, ...reading({}, { failure: { ...failure, code: 'driver-failed' } }) };
  assert.match(
    explained('web', failed).conditions[0]?.sentence ?? '',
    /could not say how full it is \(driver-failed\)/,
  );
  assert.doesNotMatch(table(failed), /could not say/);
  assert.equal(onlyVolume({ ...THERE, ...reading({ bytes }) }).question, null);
});

test('what takes more than its limit is told in our own name, in status, table and explain', () => {
  const message = 'it takes 3 MiB, and its sizeLimit is 1 MiB; nothing is evicted';
  const health: readonly HealthStatement[] = [
    { saidBy: 'agent', status: 'over-limit', reason: 'SizeLimitExceeded', message },
  ];
  const given = { ...THERE, ...reading({ health }) };
  assert.deepEqual(onlyVolume(given).health, health);
  const sentence = `it is over-limit (SizeLimitExceeded): ${message}`;
  assert.deepEqual(explained('data', given).conditions, [{ kind: 'health', volume: DATA.id, sentence }]);
  assert.match(table(given), /● mounted, unhealthy\n {4}└ it is over-limit/);
});

test('A-075: what a driver says of the health of a volume is shown as its word, and changes nothing', () => {
  const health: readonly HealthStatement[] = [
    { status: 'data-loss', reason: 'DiskFailed', message: 'sector 7\u001b[31m' },
  ];
  const given = { ...THERE, ...reading({ health }) };
  const document = status(given);
  assert.deepEqual(document.volumes[0]?.health, [
    { status: 'data-loss', reason: 'DiskFailed', message: 'sector 7\\u001b[31m' },
  ]);
  assert.equal(document.summary.unhealthy, 1);
  assert.equal(document.pods[0]?.ready, true);
  assert.equal(document.pods[0]?.volumes[0]?.state, 'mounted');
  const sentence = `driver ${DRIVER} says that it is data-loss (DiskFailed): sector 7\\u001b[31m`;
  assert.deepEqual(explained('data', given).conditions, [{ kind: 'health', volume: DATA.id, sentence }]);
  assert.match(
    table(given),
    /● mounted, unhealthy\n {4}└ driver loopfile.mooring.dev says that it is data-loss/,
  );
  assert.match(table(given), /1 unhealthy/);
  const well = { ...THERE, ...reading({ health: [] }) };
  assert.equal(status(well).summary.unhealthy, 0);
  assert.doesNotMatch(table(well), /healthy/);
});

test('what was found on disk and nobody wants is a stranger, and the table says so', () => {
  const ghost = pod('', WEB.uid, '');
  const found = actual(csi('', 'vol-lost'), PRESENT, BEGUN, ghost);
  const place = [...found.publications.values()].map((one) => {
    return [
      one.spec.key,
      { ...one, spec: { ...one.spec, specName: 'data', origin: RECONSTRUCTED } },
    ] as const;
  });
  const stranger = { ...found, publications: new Map(place) };
  const document = status(known(stranger));
  assert.deepEqual(document.strangers, [stranger.spec.id]);
  assert.deepEqual(
    document.volumes.map((one) => [one.stranger, one.name, one.publishedTo]),
    [[true, 'vol-lost', [WEB.uid]]],
  );
  assert.equal(document.pods[0]?.volumes[0]?.origin, null);
  assert.match(table(known(stranger)), /Found on disk, and nobody wants it: volume vol-lost\n/);
  assert.match(table(known(stranger)), new RegExp(`${WEB.uid} +data `));
  assert.match(
    explained('vol-lost', known(stranger)).summary,
    /it was found on disk, no pod wants it, and it is being/,
  );
  // Only its staging directory was found; and one that somebody wants again is none.
  assert.equal(onlyVolume(known(actual(csi('', 'vol-lost'), BEGUN, ABSENT))).stranger, true);
  assert.equal(onlyVolume({ ...WANTED, ...known(actual(DATA, BEGUN, ABSENT)) }).stranger, false);
  assert.equal(onlyVolume(known(actual(DATA, BEGUN, ABSENT))).stranger, false);
});

test('a volume that cannot be resolved says since when', () => {
  const failure = { code: 'reference-missing', message: 'there is no ConfigMap', effect: 'none' } as const;
  const unresolved = [{ pod: WEB, volumeName: 'settings', failure }];
  const [place] = status({ desired: desired([], { unresolved }) }).pods.flatMap(({ volumes }) => volumes);
  assert.deepEqual([place?.reason?.since, place?.reason?.forMs], ['2026-11-21T11:59:30.000Z', 30_000]);
});

test('RC-18: a pod that waits for another one to let go of a ReadWriteOncePod volume is told whom it waits for', () => {
  const message = 'the volume is ReadWriteOncePod, and pod default/db has it or may still have it';
  const blocked = obstacle(DATA, {
    kind: 'blocked',
    code: 'volume-in-use',
    operation: 'publish',
    publication: publicationKey(WEB.uid, 'data'),
    message,
    blocker: 'default/db',
  });
  const given = { desired: desired([wanted(DATA, WEB, DB)]), obstacles: [blocked] };
  assert.equal(
    explained('default/web', given).obstacles[0]?.sentence,
    `volume data: waits for 41s (volume-in-use): ${message}; it goes on by itself when that pod has let go of it`,
  );
});

test('a pod that waits for what no pod has to be taken down is not told to wait for a pod', () => {
  const message = 'the volume was set up with another volume mode, and no pod has it: it is taken down first';
  const publication = publicationKey(WEB.uid, 'data');
  const blocked = obstacle(DATA, {
    ...{ kind: 'blocked', code: 'volume-in-use', operation: 'publish', publication, message },
    blocker: undefined,
  });
  const given = { desired: desired([wanted(DATA, WEB)]), obstacles: [blocked] };
  const [told] = explained('default/web', given).obstacles;
  assert.match(told?.sentence ?? '', /it is taken down first; it goes on by itself after that$/);
});

test('a running walk over the files of a volume tells how far it is', () => {
  const key = publicationKey(WEB.uid, 'data');
  const progress = 'changing the group to 2000: 12,345 entries seen';
  const given: Partial<StatusFacts> = {
    ...WANTED,
    running: [
      {
        operation: { kind: 'publish', volume: DATA.id, publication: key },
        lane: 'l',
        phase: 'running',
        sinceMs: 990_000,
        progress,
        begunMs: 0,
        step: { kind: 'working', sinceMs: 0, signMs: 0 },
        setback: undefined,
      },
    ],
    obstacles: [
      obstacle(DATA, {
        kind: 'running',
        operation: 'publish',
        publication: key,
        code: undefined,
        sinceMs: 990_000,
      }),
    ],
  };
  assert.equal(
    explained('default/web', given).obstacles[0]?.sentence,
    `volume data: publish has been running for 10s: ${progress}`,
  );
  assert.equal(onlyVolume(given).running[0]?.progress, progress);
  assert.match(table(given), /└ publish has been running for 10s: changing the group/);
});

test('the table tells why it is tried again, however short the retry has been running', () => {
  const lastFailure = { code: 'driver-busy', message: 'busy', effect: 'none' } as const;
  const retry = { kind: 'running', code: undefined, sinceMs: 999_999 } as const;
  assert.doesNotMatch(
    table({ ...WANTED, obstacles: [obstacle(DATA, { ...retry, attempts: 0 })] }),
    /running/,
  );
  assert.match(
    table({ ...WANTED, obstacles: [obstacle(DATA, { ...retry, lastFailure })] }),
    /└ stage has been running for 1ms; before that it failed 3 times \(driver-busy\): busy/,
  );
});

test('the supplemental group of the PersistentVolume is told for each pod; an inline volume has none', () => {
  const volume = { kind: 'PersistentVolume', name: 'data', supplementalGid: 5_000 };
  const persistentVolumes = new Map([['data', volume as unknown as Stamped<PersistentVolume>]]);
  const gid = (spec: CsiVolumeSpec): number | null | undefined => {
    const document = status({ desired: desired([wanted(spec, WEB)]), persistentVolumes });
    return document.pods[0]?.volumes[0]?.supplementalGid;
  };
  assert.equal(gid(DATA), 5_000);
  assert.equal(gid({ ...DATA, lifecycle: 'Ephemeral' }), null);
  assert.equal(gid(csi('other', 'vol-other')), null);
});

test('a status of 5,000 volumes in quarantine is made and told in a moment', () => {
  const pods = Array.from({ length: 5_000 }, (_, index) => pod(`p${index}`, `u-${index}`));
  const specs = pods.map((_, index) => csi(`pv-${index}`, `vol-${index}`));
  const given = {
    desired: desired(
      specs.map((spec, index) => wanted(spec, pods[index] ?? WEB)),
      { outOfService: true },
    ),
    actual: new Map(
      specs.map((spec, index) => [
        spec.id,
        { ...actual(spec, PRESENT, PRESENT, pods[index] ?? WEB), quarantine: quarantine() },
      ]),
    ),
    running: specs.map((spec) => ({
      operation: { kind: 'unstage', volume: spec.id },
      lane: 'l',
      phase: 'queued',
      sinceMs: 0,
      begunMs: undefined,
      step: { kind: 'queued', behind: 'others', sinceMs: 0, signMs: 0 } as const,
      progress: undefined,
      setback: undefined,
    })),
  } satisfies Partial<StatusFacts>;
  const count = { reads: 0 };
  const counted = {
    ...given,
    desired: { ...given.desired, volumes: new CountedMap(given.desired.volumes, count) },
    actual: new CountedMap(given.actual, count),
    running: countedArray(given.running, count),
  };
  const made = status(counted);
  const document = {
    ...made,
    pods: countedArray(made.pods, count),
    volumes: countedArray(made.volumes, count),
  };
  assert.equal(document.summary.quarantined, 5_000);
  assert.equal(statusText(document, { look: LOOK, wide: true }).split('\n').length > 10_000, true);
  // Each some times, and not each for each of the others: that would be 25 million.
  assert.ok(count.reads < 50 * 5_000, `${count.reads} reads`);
});

test('nothing of all this shows a secret', () => {
  const volume = { ...actual(DATA, PRESENT, PRESENT, WEB), quarantine: quarantine() };
  const document = status({ ...WANTED, ...known(volume) });
  assert.equal(JSON.stringify(document).includes(SECRET_CANARY), false);
});
