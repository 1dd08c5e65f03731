import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Needs } from '../../plugins/plugin.ts';
import type { PodUid } from '../../plugins/volume.ts';
import type { ActualVolume } from '../../reconciler/actual-state.ts';
import type { DesiredVolume } from '../../reconciler/desired-state.ts';
import { type Gate, planVolume } from '../../reconciler/plan.ts';
import { actual, csi, place, wanted } from './world.ts';

const STAGED: Needs = { attach: false, stage: true };
const ALL: Needs = { attach: true, stage: true };
const OPEN: Gate = { complete: true, frozenPods: new Set(), unknownOrigins: new Set(), layoutRead: true };
const volume = csi('data').id;
const publish = (pod: string) => ({ kind: 'publish', volume, publication: place(pod, 'data').key });
const unpublish = (pod: string) => ({ kind: 'unpublish', volume, publication: place(pod, 'data').key });

function plan(
  desired: DesiredVolume | undefined,
  now: ActualVolume | undefined,
  needs: Needs | undefined = STAGED,
  gate = OPEN,
) {
  return planVolume({ volume, desired, actual: now, needs, gate });
}

test('a volume climbs one rung at a time: attach, stage, publish', () => {
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
  assert.deepEqual(plan(wanted('data', ['web']), undefined, { attach: false, stage: false }).operations, [
    publish('web'),
  ]);
});

test('an unsure stage is staged again before anything is published (RC-03)', () => {
  const now = actual('data', { staged: 'unsure', pods: { old: 'present' } });
  assert.deepEqual(plan(wanted('data', ['old', 'new']), now).operations, [{ kind: 'stage', volume }]);
});

test('a volume is not unstaged while a pod may still hold it (INV-1)', () => {
  assert.deepEqual(
    plan(undefined, actual('data', { staged: 'present', pods: { web: 'unsure' } })).operations,
    [unpublish('web')],
  );
});

test('the last pod gone, the volume descends the way it came', () => {
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

test('nothing is unstaged before the layout on disk has been read whole: a publication may be there (INV-1)', () => {
  const gate = { ...OPEN, layoutRead: false };
  const staged = plan(undefined, actual('data', { staged: 'present' }), STAGED, gate);
  assert.deepEqual([staged.operations, staged.waits.map(({ kind }) => kind)], [[], ['gate-closed']]);
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
  });
  assert.deepEqual([up.operations, up.waits.map(({ kind }) => kind)], [[], ['waiting-driver']]);
  const mounted = actual('data', { staged: 'present', pods: { web: 'present' } });
  const down = planVolume({ volume, desired: undefined, actual: mounted, needs: undefined, gate: OPEN });
  assert.deepEqual([down.operations, down.waits.map(({ kind }) => kind)], [[], ['waiting-driver']]);
});

test('a driver that stopped staging does not change how a standing volume comes down (DR-16)', () => {
  const now = actual('data', { staged: 'present' });
  assert.deepEqual(plan(undefined, now, { attach: false, stage: false }).operations, [
    { kind: 'unstage', volume },
  ]);
});

test('a driver that came back with staging is staged before the next pod, and not for pods that are there', () => {
  const now = actual('data', { pods: { old: 'present' }, needs: { attach: false, stage: false } });
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
    publications: new Map([[key, { spec: place('web', 'data'), generation: '2', files: undefined }]]),
  };
  const now = actual('data', { staged: 'present', pods: { web: 'present' } });
  assert.deepEqual(plan(changed, now).operations, [publish('web')]);
});
