/** A dead file system under a stage: who gets it, who keeps it, and when it goes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Effect, type Failure, type FailureCode, ok } from '../../../mount/failure.ts';
import { type FileSystemProbe, parseAbsolutePath } from '../../../mount/host.ts';
import { deathFailure } from '../../../plugins/guard/dead-file-system.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { createBelief } from '../../../reconciler/model/belief.ts';
import type { ActualPublication, ActualVolume, Presence } from '../../../reconciler/model/actual-state.ts';
import { createFileSystemLook } from '../../../reconciler/run/file-system-look.ts';
import type { Operation } from '../../../reconciler/model/operation.ts';
import { type Gate, planVolume } from '../../../reconciler/model/plan.ts';
import { noteSickness } from '../../../reconciler/model/sickness.ts';
import { iscsiVolume } from '../../plugins/iscsi/iscsi-world.ts';
import { createBenchHost, settled } from '../bench-host.ts';
import { actual, csi, place, wanted } from '../world.ts';

const needs = { attach: false, stage: true, expand: false };
const gate: Gate = {
  complete: true,
  frozenPods: new Set(),
  unknownOrigins: new Set(),
  layoutRead: true,
  placesRead: true,
};
const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const volume = csi('data').id;
const staging = layout.stagingPath(csi('data'));
const FAILURE = deathFailure(staging, 'input-output');
const UNSTAGE: Operation = { kind: 'unstage', volume };
const publish = (pod: string): Operation => ({
  kind: 'publish',
  volume,
  publication: place(pod, 'data').key,
});
const unpublish = (pod: string): Operation => ({
  kind: 'unpublish',
  volume,
  publication: place(pod, 'data').key,
});

function dead(pods: Readonly<Record<string, 'present' | 'unsure'>>): ActualVolume {
  return { ...actual('data', { staged: 'present', pods }), sickness: { failure: FAILURE, of: 'stage' } };
}

function plan(pods: readonly string[], now: ActualVolume) {
  return planVolume({
    volume,
    desired: wanted('data', pods),
    actual: now,
    needs,
    gate,
    quarantine: undefined,
  });
}

test('DR-11: what nobody has is taken down before it is set up again', () => {
  const { operations, waits } = plan(['new'], dead({}));
  assert.deepEqual(operations, [UNSTAGE]);
  assert.equal(waits[0]?.failure?.code, 'file-system-dead');
  const down = noteSickness({ ...dead({}), staged: { kind: 'absent' } }, UNSTAGE, {
    kind: 'done',
    learnt: {},
  });
  assert.deepEqual(plan(['new'], down).operations, [{ kind: 'stage', volume }]);
});

test('a pod whose wish is incomplete is told that, not that a dead one goes first, which it does not meanwhile', () => {
  const blocked = { code: 'not-attached', message: 'it is not attached yet', effect: 'none' } as const;
  const desired = wanted('data', ['new'], blocked);
  const asked = { volume, desired, actual: dead({}), needs, gate, quarantine: undefined };
  const { operations, waits } = planVolume(asked);
  assert.deepEqual([operations, waits.map(({ failure }) => failure?.code)], [[], ['not-attached']]);
});

test('MT-06: who has a dead one keeps it, who comes waits and is told for whom', () => {
  const { operations, waits } = plan(['old', 'new'], dead({ old: 'present' }));
  assert.deepEqual(operations, []);
  assert.deepEqual(
    waits.map(({ kind, publication, failure }) => [kind, publication, failure?.code, failure?.blocker]),
    [['blocked', place('new', 'data').key, 'file-system-dead', 'default/old']],
  );
  assert.deepEqual(plan(['new'], dead({ old: 'present' })).operations, [unpublish('old')]);
});

test('what may be left in places of a dead one goes first, though it is wanted', () => {
  assert.deepEqual(plan(['a', 'b'], dead({ a: 'unsure' })).operations, [unpublish('a')]);
  assert.deepEqual(plan(['a', 'b'], dead({ a: 'unsure', b: 'present' })).operations, []);
});

test('INV-3: a pod that was told of a dead one keeps it, whatever is in doubt, until its mount is gone', () => {
  const held = dead({ old: 'present' });
  const { key } = place('old', 'data');
  const there = held.publications.get(key);
  assert.ok(there);
  const mount = { mountId: 7, device: '7:1' };
  const plans = (changes: Partial<ActualPublication>) => {
    const old = { ...there, presence: doubt('driver-deadline'), mount, ...changes };
    return plan(['old', 'new'], { ...held, publications: new Map([[key, old]]) });
  };
  const { operations, waits } = plans({});
  assert.deepEqual(operations, []);
  assert.equal(waits.find(({ publication }) => publication === key)?.failure?.blocker, 'default/old');
  assert.deepEqual(plans({ presence: { kind: 'unsure', because: 'restart' } }).operations, []);
  for (const gone of [
    { presence: doubt('mount-lost') },
    { presence: doubt('published-not-mounted') },
    { mount: undefined },
    { untold: true as const },
  ])
    assert.deepEqual(plans(gone).operations, [unpublish('old')]);
});

test('DR-11: what is found dead in a place, and is not what its pod was told of, is not taken for that again', () => {
  const plain = actual('data', { pods: { a: 'unsure' }, needs: { ...needs, stage: false } });
  const [key, there] = [...plain.publications][0] ?? [];
  assert.ok(key !== undefined && there !== undefined);
  const told = { ...there, mount: { mountId: 7, device: '7:1' } };
  const known = { ...plain, publications: new Map([[key, told]]) };
  const after = (effect: Effect) =>
    noteSickness(known, publish('a'), { kind: 'failed', failure: { ...FAILURE, effect } });
  assert.equal(after('unknown').publications.get(key)?.mount, undefined);
  assert.equal(after('none').publications.get(key)?.mount, told.mount, 'nobody looked at the place');
  const unseen = { code: 'input-output', message: 'EIO', effect: 'unknown' } as const;
  const afterUnseen = (failure: Failure) => noteSickness(known, publish('a'), { kind: 'failed', failure });
  assert.equal(afterUnseen({ ...unseen, wasBare: true }).publications.get(key)?.mount, undefined);
  assert.equal(afterUnseen(unseen).publications.get(key)?.mount, told.mount, 'it was there');
});

function doubt(code: FailureCode): Presence {
  return { kind: 'unsure', because: { code, message: 'it is in doubt', effect: 'unknown' } };
}

for (const [code, whose] of [
  ['mount-stacked', 'over whose place somebody mounted'],
  ['subpath-lost', 'of whose parts one was unmounted'],
  ['hold-lost', 'whose device nobody holds any more'],
] as const)
  test(`${whose} still has the dead one, and keeps it`, () => {
    const held = dead({ old: 'present' });
    const { key } = place('old', 'data');
    const there = held.publications.get(key);
    assert.ok(there);
    const because = { code, message: 'somebody was here', effect: 'none' } as const;
    const doubted = { ...there, presence: { kind: 'unsure', because } as const };
    const now = { ...held, publications: new Map([[key, doubted]]) };
    const { operations, waits } = plan(['old', 'new'], now);
    assert.deepEqual(operations, []);
    assert.equal(
      waits.find(({ publication }) => publication === place('new', 'data').key)?.failure?.blocker,
      'default/old',
    );
  });

test('a publish that ran into a dead stage is remembered, one of a driver that does not stage is given back', () => {
  const failed = { kind: 'failed', failure: FAILURE } as const;
  assert.equal(
    noteSickness(actual('data', { staged: 'present' }), publish('a'), failed).sickness?.of,
    'stage',
  );
  const plain = actual('data', { pods: { a: 'unsure' }, needs: { ...needs, stage: false } });
  assert.equal(noteSickness(plain, publish('a'), failed).sickness, undefined);
  const [key, there] = [...plain.publications][0] ?? [];
  assert.ok(key !== undefined && there !== undefined);
  const shown = { ...there, presence: { kind: 'unsure', because: FAILURE } } as const;
  const known = { ...plain, publications: new Map([[key, shown]]) };
  const { operations } = planVolume({
    volume,
    desired: wanted('data', ['a']),
    actual: known,
    needs: { ...needs, stage: false },
    gate,
    quarantine: undefined,
  });
  assert.deepEqual(operations[0], unpublish('a'));
});

test('a look finds what died and what serves again, and one that hangs holds up no other', async () => {
  const host = createBenchHost();
  const found: string[] = [];
  const mount = { mountId: 1, device: '7:1' };
  const belief = createBelief(
    new Map(
      ['data', 'hung'].map((handle) => {
        const one = { ...actual(handle, { staged: 'present' }), stagedMount: mount };
        return [one.spec.id, one];
      }),
    ),
  );
  const say = (event: string): void => void found.push(event);
  const look = createFileSystemLook({
    host,
    layout,
    belief,
    isBusy: () => false,
    onFound: (id) => found.push(id),
    log: { debug: say, info: say, warn: say, error: say },
  });
  let answers = 0;
  host.probes.set(layout.stagingPath(csi('hung')), new Promise(() => {}));
  const { probeFileSystem } = host;
  host.probeFileSystem = (path) => {
    answers += 1;
    return probeFileSystem(path);
  };
  host.probes.set(staging, Promise.resolve(ok({ kind: 'dead', cause: 'daemon-gone' })));
  look();
  await settled();
  assert.equal(belief.volumes.get(volume)?.sickness?.failure.death, 'daemon-gone');
  look();
  await settled();
  host.probes.delete(staging);
  look();
  await settled();
  assert.equal(belief.volumes.get(volume)?.sickness, undefined);
  assert.deepEqual(found, ['file system does not serve', volume, 'file system serves again', volume]);
  assert.equal(answers, 4);
});

test('DR-11: a disk of iSCSI that died under its pods is told of at a resync, as a CSI volume is', async () => {
  const host = createBenchHost();
  const spec = iscsiVolume();
  const known: ActualVolume = {
    ...actual('data', { staged: 'present' }),
    spec,
    stagedMount: { mountId: 1, device: '8:16' },
  };
  const belief = createBelief(new Map([[spec.id, known]]));
  const say = (): void => {};
  const log = { debug: say, info: say, warn: say, error: say };
  const look = createFileSystemLook({ host, layout, belief, log, isBusy: () => false, onFound: say });
  const death = async (answer: FileSystemProbe) => {
    host.probes.set(layout.iscsiStage(spec), Promise.resolve(ok(answer)));
    look();
    await settled();
    return belief.volumes.get(spec.id)?.sickness?.failure.death;
  };
  assert.equal(await death({ kind: 'dead', cause: 'input-output' }), 'input-output');
  assert.equal(await death({ kind: 'alive', readOnly: true, device: '8:16' }), 'read-only');
  assert.equal(await death({ kind: 'alive', readOnly: false, device: '8:16' }), undefined);
});
