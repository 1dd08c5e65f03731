import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Needs } from '../../../plugins/plugin.ts';
import type { PodUid } from '../../../plugins/volume.ts';
import type { ActualVolume, QuarantineReason } from '../../../reconciler/model/actual-state.ts';
import type { DesiredVolume } from '../../../reconciler/model/desired-state.ts';
import { type Gate, planVolume } from '../../../reconciler/model/plan.ts';
import { actual, bytes, csi, place, wanted, wantedAs, wantedOfSize } from '../world.ts';

const STAGED: Needs = { attach: false, stage: true, expand: false };
const ALL: Needs = { attach: true, stage: true, expand: false };
const OPEN: Gate = {
  complete: true,
  frozenPods: new Set(),
  unknownOrigins: new Set(),
  layoutRead: true,
  placesRead: true,
};
const volume = csi('data').id;
const publish = (pod: string) => ({ kind: 'publish', volume, publication: place(pod, 'data').key });
const unpublish = (pod: string) => ({ kind: 'unpublish', volume, publication: place(pod, 'data').key });

function plan(
  desired: DesiredVolume | undefined,
  now: ActualVolume | undefined,
  needs: Needs | undefined = STAGED,
  gate = OPEN,
  quarantine: QuarantineReason | undefined = undefined,
) {
  return planVolume({ volume, desired, actual: now, needs, gate, quarantine });
}

test('a volume climbs one rung at a time: attach, stage, publish (A-053, A-054, A-060)', () => {
  const want = wanted('data', ['web']);
  assert.deepEqual(plan(want, undefined, ALL).operations, [{ kind: 'attach', volume }]);
  const attached = actual('data', { attached: 'present', needs: ALL });
  assert.deepEqual(plan(want, attached, ALL).operations, [{ kind: 'stage', volume }]);
  const staged = actual('data', { attached: 'present', staged: 'present', needs: ALL });
  assert.deepEqual(plan(want, staged, ALL).operations, [publish('web')]);
  const there = actual('data', {
    attached: 'present',
    staged: 'present',
    pods: { web: 'present' },
    needs: ALL,
  });
  assert.deepEqual(plan(want, there, ALL), { operations: [], waits: [] });
});

test('a driver that neither attaches nor stages is published to at once', () => {
  assert.deepEqual(
    plan(wanted('data', ['web']), undefined, { attach: false, stage: false, expand: false }).operations,
    [publish('web')],
  );
});

test('an unsure stage is staged again before anything is published (RC-03, A-054)', () => {
  const now = actual('data', { staged: 'unsure', pods: { old: 'present' } });
  assert.deepEqual(plan(wanted('data', ['old', 'new']), now).operations, [{ kind: 'stage', volume }]);
});

test('an unsure stage is not staged again before the volume is attached, though no pod may have it yet (A-053)', () => {
  const want = wantedAs('ReadWriteOncePod', 'data', ['web']);
  const now = { ...actual('data', { staged: 'unsure', needs: ALL }), spec: want.spec };
  const comesLater: Gate = { ...OPEN, placesRead: false };
  assert.deepEqual(plan(want, now, ALL, comesLater).operations, [{ kind: 'attach', volume }]);
});

test('a volume is not unstaged while a pod may still hold it (INV-1, A-058, A-059)', () => {
  assert.deepEqual(
    plan(undefined, actual('data', { staged: 'present', pods: { web: 'unsure' } })).operations,
    [unpublish('web')],
  );
});

test('the last pod gone, the volume descends the way it came (A-058, A-067)', () => {
  assert.deepEqual(plan(undefined, actual('data', { staged: 'unsure', attached: 'present' })).operations, [
    { kind: 'unstage', volume },
  ]);
  assert.deepEqual(plan(undefined, actual('data', { attached: 'unsure' })).operations, [
    { kind: 'detach', volume },
  ]);
  assert.deepEqual(plan(undefined, actual('data', {})), { operations: [], waits: [] });
});

test('a pod that leaves does not take the volume from a pod that stays', () => {
  const now = actual('data', { staged: 'present', pods: { leaves: 'present', stays: 'present' } });
  assert.deepEqual(plan(wanted('data', ['stays']), now).operations, [unpublish('leaves')]);
});

test('nothing is torn down before every source has been listed (INV-15)', () => {
  const gate = { ...OPEN, complete: false };
  const mounted = plan(
    undefined,
    actual('data', { staged: 'present', pods: { web: 'present' } }),
    STAGED,
    gate,
  );
  assert.deepEqual(mounted.operations, []);
  assert.deepEqual(
    mounted.waits.map(({ kind }) => kind),
    ['gate-closed'],
  );
  assert.deepEqual(plan(undefined, actual('data', { staged: 'present' }), STAGED, gate).operations, []);
});

test('nothing is unstaged before the layout on disk has been read whole (INV-1, A-059)', () => {
  const gate = { ...OPEN, layoutRead: false };
  const staged = plan(undefined, actual('data', { staged: 'present' }), STAGED, gate);
  assert.deepEqual([staged.operations, staged.waits.map(({ kind }) => kind)], [[], ['gate-closed']]);
  const possibleUse = { code: 'mount-foreign', message: 'whose is it', effect: 'none' } as const;
  const suspected = plan(undefined, actual('data', { staged: 'present' }), STAGED, {
    ...gate,
    possibleUse,
  });
  assert.deepEqual([suspected.operations, suspected.waits[0]?.failure], [[], possibleUse]);
  const published = actual('data', { staged: 'present', pods: { web: 'present' } });
  assert.deepEqual(plan(undefined, published, STAGED, gate).operations, [unpublish('web')]);
});

test('an unresolved pod freezes its own teardown and nobody else’s (k/k#120150)', () => {
  const now = actual('data', { staged: 'present', pods: { frozen: 'present', gone: 'present' } });
  const { operations, waits } = plan(undefined, now, STAGED, {
    ...OPEN,
    frozenPods: new Set(['frozen' as PodUid]),
  });
  assert.deepEqual(operations, [unpublish('gone')]);
  assert.deepEqual(
    waits.map(({ kind, publication }) => [kind, publication]),
    [['frozen', place('frozen', 'data').key]],
  );
});

test('a pod that is kept because its manifest vanished gets nothing new, and others do (seed 29855033)', () => {
  const failure = { code: 'manifest-vanished', message: 'kept as it is', effect: 'none' } as const;
  const gate = { ...OPEN, heldPods: new Map([['web' as PodUid, failure]]) };
  const waiting = { kind: 'blocked', operation: 'publish', publication: place('web', 'data').key, failure };
  assert.deepEqual(plan(wanted('data', ['web']), undefined, STAGED, gate), {
    operations: [],
    waits: [waiting],
  });
  const staged = actual('data', { staged: 'present', pods: { web: 'unsure' } });
  assert.deepEqual(plan(wanted('data', ['web', 'other']), staged, STAGED, gate), {
    operations: [publish('other')],
    waits: [waiting],
  });
});

test('a source that cannot be read freezes the pods that came from it', () => {
  const now = actual('data', { staged: 'present', pods: { web: 'present' } });
  assert.deepEqual(
    plan(undefined, now, STAGED, { ...OPEN, unknownOrigins: new Set(['pods.yaml']) }).operations,
    [],
  );
});

test('what was found on disk is frozen as long as any source cannot be read', () => {
  const now = actual('data', { staged: 'present', pods: { web: 'unsure' } });
  const key = place('web', 'data').key;
  const found = {
    ...now,
    publications: new Map(
      [...now.publications].map(([, one]) => [key, { ...one, spec: place('web', 'data', '') }]),
    ),
  };
  assert.deepEqual(
    plan(undefined, found, STAGED, { ...OPEN, unknownOrigins: new Set(['other.yaml']) }).operations,
    [],
  );
  assert.deepEqual(plan(undefined, found).operations, [unpublish('web')]);
});

test('without its driver a volume waits, on the way up and on the way down', () => {
  const up = planVolume({
    volume,
    desired: wanted('data', ['web']),
    actual: undefined,
    needs: undefined,
    gate: OPEN,
    quarantine: undefined,
  });
  assert.deepEqual([up.operations, up.waits.map(({ kind }) => kind)], [[], ['waiting-driver']]);
  const mounted = actual('data', { staged: 'present', pods: { web: 'present' } });
  const down = planVolume({
    volume,
    desired: undefined,
    actual: mounted,
    needs: undefined,
    gate: OPEN,
    quarantine: undefined,
  });
  assert.deepEqual([down.operations, down.waits.map(({ kind }) => kind)], [[], ['waiting-driver']]);
});

test('a driver that stopped staging does not change how a standing volume comes down (DR-16)', () => {
  const now = actual('data', { staged: 'present' });
  assert.deepEqual(plan(undefined, now, { attach: false, stage: false, expand: false }).operations, [
    { kind: 'unstage', volume },
  ]);
});

test('a driver that came back with staging is staged before the next pod, and not for pods that are there', () => {
  const now = actual('data', {
    pods: { old: 'present' },
    needs: { attach: false, stage: false, expand: false },
  });
  assert.deepEqual(plan(wanted('data', ['old']), now).operations, []);
  assert.deepEqual(plan(wanted('data', ['old', 'new']), now).operations, [{ kind: 'stage', volume }]);
});

test('a blocked volume is neither climbed nor torn down', () => {
  const blocked = { code: 'reference-missing', message: 'secret default/key', effect: 'none' } as const;
  const { operations, waits } = plan(wanted('data', ['web'], blocked), actual('data', { staged: 'present' }));
  assert.deepEqual([operations, waits.map(({ kind }) => kind)], [[], ['blocked']]);
});

test('a new generation of content is published again', () => {
  const key = place('web', 'data').key;
  const want = wanted('data', ['web']);
  const changed = {
    ...want,
    publications: new Map([
      [key, { spec: place('web', 'data'), generation: '2', files: undefined, tokens: undefined }],
    ]),
  };
  const now = actual('data', { staged: 'present', pods: { web: 'present' } });
  assert.deepEqual(plan(changed, now).operations, [publish('web')]);
});

const GROWS: Needs = { attach: false, stage: true, expand: true };
const expand = { kind: 'expand', volume } as const;

test('a volume too small is grown before its first pod, and beside what else happens while it is used (A-069)', () => {
  const want = wantedOfSize('data', ['web'], 20);
  const staged = { ...actual('data', { staged: 'present', needs: GROWS }), sizeBytes: bytes(10) };
  assert.deepEqual(plan(want, staged, GROWS).operations, [expand]);
  const used = {
    ...actual('data', { staged: 'present', pods: { web: 'present' }, needs: GROWS }),
    sizeBytes: bytes(10),
  };
  assert.deepEqual(plan(want, used, GROWS).operations, [expand]);
  assert.deepEqual(plan(wantedOfSize('data', ['web', 'new'], 20), used, GROWS).operations, [
    publish('new'),
    expand,
  ]);
  assert.deepEqual(plan(want, { ...used, sizeBytes: bytes(20) }, GROWS).operations, []);
  assert.deepEqual(plan(want, used, STAGED).operations, [], 'the driver cannot grow it on the node');
});

test('sizes are compared as int64, beyond what a JavaScript number holds (A-018)', () => {
  const want = wanted('data', ['web']);
  const size = { bytes: '9007199254740993', knownBytes: undefined, held: undefined } as NonNullable<
    DesiredVolume['size']
  >;
  const now = actual('data', { staged: 'present', pods: { web: 'present' }, needs: GROWS });
  const almost = { ...now, sizeBytes: '9007199254740992' as typeof size.bytes };
  assert.deepEqual(plan({ ...want, size }, almost, GROWS).operations, [expand]);
});

test('an expansion refused because the volume was in use is not repeated, whatever the size (A-071)', () => {
  const used = {
    ...actual('data', { staged: 'present', pods: { web: 'present' }, needs: GROWS }),
    sizeBytes: bytes(10),
    refusedExpansion: { toBytes: bytes(20), because: 'in-use', message: 'no' },
  } as const;
  assert.deepEqual(plan(wantedOfSize('data', ['web'], 20), used, GROWS).operations, []);
  assert.deepEqual(plan(wantedOfSize('data', ['web'], 30), used, GROWS).operations, []);
  const impossible = {
    ...used,
    refusedExpansion: { ...used.refusedExpansion, because: 'infeasible' },
  } as const;
  assert.deepEqual(plan(wantedOfSize('data', ['web'], 20), impossible, GROWS).operations, []);
  assert.deepEqual(plan(wantedOfSize('data', ['web'], 30), impossible, GROWS).operations, [expand]);
});

/** Staged as it is wanted. */
function standingFor({ spec }: DesiredVolume): ActualVolume {
  return { ...actual('data', { staged: 'present' }), spec };
}

test('a volume for one pod waits for the pod that has it, even if that is uncertain or unwanted (RC-18, A-063)', () => {
  const only = (pods: readonly string[]) => wantedAs('ReadWriteOncePod', 'data', pods);
  for (const kind of ['present', 'unsure'] as const) {
    const { operations, waits } = plan(
      only(['late']),
      actual('data', { staged: 'present', pods: { early: kind } }),
    );
    assert.deepEqual(operations, [unpublish('early')]);
    assert.deepEqual(
      waits.map((wait) => [wait.kind, wait.failure?.code, wait.failure?.blocker]),
      [['blocked', 'volume-in-use', 'default/early']],
    );
  }
  const first = plan(only(['a', 'b']), standingFor(only([])));
  assert.deepEqual(first.operations, [publish('a')]);
  assert.equal(first.waits.length, 1);
  const many = wantedAs('ReadWriteMany', 'data', ['a', 'b']);
  const shared = plan(many, standingFor(many));
  assert.deepEqual(shared.operations, [publish('a'), publish('b')]);
});

const onePod = (pods: readonly string[]) => wantedAs('ReadWriteOncePod', 'data', pods);

/** Both pods are at one volume that is for one pod alone; of those in `untold` no pod was ever told. */
function shared(
  pods: Readonly<Record<string, 'present' | 'unsure'>>,
  untold: readonly string[],
): ActualVolume {
  const now = actual('data', { staged: 'present', pods });
  const publications = [...now.publications].map(([key, one]) => {
    return [key, untold.includes(one.spec.pod.name) ? { ...one, untold: true as const } : one] as const;
  });
  return { ...now, spec: onePod([]).spec, publications: new Map(publications) };
}

const blockedPods = ({ waits }: ReturnType<typeof plan>) =>
  waits.map(({ kind, publication, failure }) => [kind, publication, failure?.code]);

test('a place that came late is given back, wanted or not, where another pod may have what is for one (RC-18)', () => {
  for (const standing of ['ReadWriteOncePod', 'ReadWriteMany'] as const) {
    const now = { ...shared({ has: 'present', late: 'unsure' }, ['late']) };
    const want = standing === 'ReadWriteOncePod' ? onePod(['late', 'has']) : wanted('data', ['late', 'has']);
    assert.deepEqual(plan(want, now).operations, [unpublish('late')], `${standing} is wanted`);
  }
  const lost = plan(onePod(['late', 'has']), shared({ has: 'unsure', late: 'unsure' }, ['late']));
  assert.deepEqual(lost.operations, [unpublish('late')], 'and nobody is set up before it is gone');
  assert.deepEqual(blockedPods(lost), [['blocked', place('has', 'data').key, 'volume-in-use']]);
  const begun = plan(
    onePod(['late', 'first']),
    shared({ first: 'unsure', late: 'unsure' }, ['first', 'late']),
  );
  assert.deepEqual(begun.operations, [unpublish('late')], 'of two that nobody was told of the later one');
  const going = plan(onePod(['has']), shared({ late: 'unsure', has: 'unsure' }, ['late']));
  assert.deepEqual(going.operations, [unpublish('late')]);
  assert.deepEqual(blockedPods(going), [['blocked', place('has', 'data').key, 'volume-in-use']]);
});

test('a place that may be in use is neither set up nor taken down where another pod surely has what is for one', () => {
  const both = onePod(['has', 'found']);
  const now = plan(both, shared({ found: 'unsure', has: 'present' }, []));
  assert.deepEqual(now.operations, []);
  assert.deepEqual(blockedPods(now), [['blocked', place('found', 'data').key, 'volume-in-use']]);
  const alone = plan(both, shared({ found: 'unsure' }, []));
  assert.deepEqual(alone.operations, [publish('found')], 'alone, it is made sure of');
  const { operations } = plan(both, shared({ has: 'present', found: 'present' }, []));
  assert.deepEqual(operations, [], 'who is in since it was shared stays');
});

test('a volume for one pod goes to nobody before the places in the pods were read (RC-18)', () => {
  const gate = { ...OPEN, placesRead: false };
  const want = wantedAs('ReadWriteOncePod', 'data', ['a']);
  const { operations, waits } = plan(want, standingFor(want), undefined, gate);
  assert.deepEqual(operations, []);
  assert.deepEqual(
    waits.map((wait) => [wait.kind, wait.failure?.code]),
    [['blocked', 'volume-in-use']],
  );
  const known = actual('data', { staged: 'present', pods: { a: 'unsure' } });
  assert.deepEqual(plan(want, known, undefined, gate).operations, [publish('a')]);
});

test('in quarantine a volume comes down although it is wanted, and is not set up again', () => {
  const want = wanted('data', ['web']);
  const up = actual('data', { staged: 'present', pods: { web: 'present' }, attached: 'present', needs: ALL });
  const quarantine = { reason: 'operator', sinceWallMs: 0, devices: [], verified: false } as const;
  const steps = [
    { ...up, quarantine },
    { ...up, quarantine, publications: new Map() },
    { ...actual('data', { attached: 'present', needs: ALL }), quarantine },
    { ...actual('data', { attached: 'present', needs: ALL }), quarantine: { ...quarantine, verified: true } },
  ].map((now) => plan(want, now, ALL, OPEN, 'operator'));
  assert.deepEqual(
    steps.map(({ operations }) => operations.map(({ kind }) => kind)),
    [['unpublish'], ['unstage'], ['clean'], []],
  );
  assert.deepEqual(
    steps.map(({ waits }) => waits.map(({ kind }) => kind)),
    [[], ['quarantined'], ['quarantined'], ['quarantined']],
  );
});

test('quarantine overrules a frozen pod, and still waits for the layout before it unstages', () => {
  const quarantine = { reason: 'attachment-lost', sinceWallMs: 0, devices: [], verified: false } as const;
  const published = {
    ...actual('data', { staged: 'present', pods: { web: 'present' } }),
    quarantine,
  };
  const gate = { ...OPEN, complete: false, frozenPods: new Set(['web' as PodUid]), layoutRead: false };
  assert.deepEqual(plan(undefined, published, STAGED, gate, 'attachment-lost').operations, [
    unpublish('web'),
  ]);
  const staged = { ...actual('data', { staged: 'present' }), quarantine };
  const waiting = plan(undefined, staged, STAGED, gate, 'attachment-lost');
  assert.deepEqual([waiting.operations, waiting.waits.map(({ kind }) => kind)], [[], ['gate-closed']]);
});

test('what nobody has and stands as no pod can have it goes first, and says what that waits for', () => {
  const want = wanted('data', ['web']);
  const asDevice = { ...want, spec: { ...want.spec, mode: 'Block' } } as DesiredVolume;
  const { operations, waits } = plan(asDevice, actual('data', { staged: 'present' }), STAGED, {
    ...OPEN,
    complete: false,
  });
  assert.deepEqual(
    waits.map(({ kind, operation }) => [kind, operation]),
    [
      ['gate-closed', 'unstage'],
      ['blocked', 'publish'],
    ],
  );
  assert.deepEqual(operations, []);
  assert.match(waits[1]?.failure?.message ?? '', /no pod has it: it is taken down first/);
  assert.match(
    waits[1]?.failure?.message ?? '',
    /first, .*before every source of the wish/,
    'what is waited for',
  );
});

test('what nobody has is kept as no pod can have it while the wish is incomplete, and that is the reason', () => {
  const missing = { code: 'reference-missing', message: 'secret default/key', effect: 'none' } as const;
  const want = wanted('data', ['web'], missing);
  const asDevice = { ...want, spec: { ...want.spec, mode: 'Block' } } as DesiredVolume;
  const { key } = place('web', 'data');
  const waits = [{ kind: 'blocked', operation: 'publish', publication: key, failure: missing }];
  assert.deepEqual(plan(asDevice, actual('data', { staged: 'present' })), { operations: [], waits });
  const used = plan(asDevice, actual('data', { staged: 'present', pods: { old: 'present' } }));
  assert.match(
    used.waits.at(-1)?.failure?.message ?? '',
    /delete the pods that use it first \(default\/old\)/,
  );
});

test('a pod that waits for what another pod never had to go first is told what that is kept for', () => {
  const want = wanted('data', ['web']);
  const asDevice = { ...want, spec: { ...want.spec, mode: 'Block' } } as DesiredVolume;
  const now = actual('data', { staged: 'present', pods: { old: 'unsure' } });
  const { key } = place('old', 'data');
  const there = now.publications.get(key) ?? assert.fail();
  const untold = { ...now, publications: new Map([[key, { ...there, untold: true as const }]]) };
  const gate = { ...OPEN, frozenPods: new Set([there.spec.pod.uid]) };
  const [kept, blocked] = plan(asDevice, untold, STAGED, gate).waits;
  assert.deepEqual([kept?.kind, kept?.publication], ['frozen', key]);
  assert.match(blocked?.failure?.message ?? '', /first, .*is wanted for default\/old cannot be read/);
  const idle = actual('data', { staged: 'present' });
  const asked = { volume, desired: asDevice, actual: idle, gate: OPEN, quarantine: undefined };
  const driverless = planVolume({ ...asked, needs: undefined }).waits;
  assert.match(driverless.at(-1)?.failure?.message ?? '', /the driver is not registered/);
});

test('what is mended for a pod that was never told of its place is done, whichever other pod is kept', () => {
  const want = wanted('data', ['web', 'old']);
  const { key } = place('web', 'data');
  const mine = want.publications.get(key) ?? assert.fail();
  const now = actual('data', { staged: 'present', pods: { old: 'present', web: 'unsure' } });
  const there = now.publications.get(key) ?? assert.fail();
  const untold = {
    ...now,
    publications: new Map(now.publications).set(key, { ...there, untold: true as const }),
  };
  const gate = { ...OPEN, frozenPods: new Set(['old' as PodUid]) };
  const fsGroup = { gid: 7, changePolicy: 'Always' } as const;
  for (const mended of [{ readOnly: true }, { fsGroup }]) {
    const spec = { ...mine.spec, ...mended };
    const wish = {
      ...want,
      publications: new Map(want.publications).set(key, { ...mine, spec }),
    } as DesiredVolume;
    assert.deepEqual(plan(wish, untold, STAGED, gate).operations, [unpublish('web')], JSON.stringify(mended));
  }
});

test('an inline volume that its driver has ended goes before it is set up again, and only its own place', () => {
  const now = actual('data', { pods: { web: 'unsure', api: 'present' } });
  const key = place('web', 'data').key;
  const left = now.publications.get(key) ?? assert.fail();
  const ended = { ...now, publications: new Map(now.publications).set(key, { ...left, ended: true }) };
  const again = plan(wanted('data', ['web', 'api', 'new']), ended, {
    attach: false,
    stage: false,
    expand: false,
  });
  assert.deepEqual(again.operations, [unpublish('web'), publish('new')]);
  const early = plan(wanted('data', ['web', 'api']), ended, STAGED, { ...OPEN, complete: false });
  assert.deepEqual(
    early.waits.map(({ kind, operation }) => [kind, operation]),
    [['gate-closed', 'unpublish']],
  );
});
