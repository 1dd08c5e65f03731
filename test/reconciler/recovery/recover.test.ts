import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AbsolutePath, parseAbsolutePath } from '../../../mount/host.ts';
import { createMountTable, type MountEntry } from '../../../mount/mount-table.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import type { ActualVolume, VolumeOutcome } from '../../../reconciler/model/actual-state.ts';
import { begin, learn } from '../../../reconciler/model/belief-change.ts';
import { formatRecord, parseRecord, recordOf } from '../../../reconciler/recovery/record.ts';
import { recover } from '../../../reconciler/recovery/recover.ts';
import { actual, csi, place } from '../world.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const staging = layout.stagingPath(csi('data'));
const target = layout.target(csi('data'), place('web', 'data'));

function mounted(path: AbsolutePath, mountId: number, device = '7:1'): MountEntry {
  return {
    mountId,
    parentId: 1,
    device,
    root: '/',
    target: path,
    options: ['rw'],
    propagation: [],
    fsType: 'ext4',
    source: '/dev/loop1',
    superOptions: ['rw'],
  };
}

function set(): ActualVolume {
  const volume = actual('data', { staged: 'present', pods: { web: 'present' } });
  const entry = volume.publications.get(place('web', 'data').key);
  assert.ok(entry);
  const mount = { mountId: 41, device: '7:1' };
  return {
    ...volume,
    stagedMount: { mountId: 40, device: '7:1' },
    publications: new Map([[entry.spec.key, { ...entry, mount }]]),
  };
}

function recovered(volume: ActualVolume, entries: readonly MountEntry[] | undefined, bootId = 'boot-1') {
  const table = entries === undefined ? undefined : createMountTable(entries);
  const state = recover({ records: [recordOf(volume, 'boot-1')], table, shown: new Map(), bootId, layout });
  const now = state.get(csi('data').id);
  return [now?.staged.kind, now?.publications.get(place('web', 'data').key)?.presence.kind];
}

test('a mount with the noted identity, alone on its path, in the same boot, is proven', () => {
  assert.deepEqual(recovered(set(), [mounted(staging, 40), mounted(target, 41)]), ['present', 'present']);
});

test('another boot proves nothing, even with the same mount ids (INV-21, A-059)', () => {
  assert.deepEqual(recovered(set(), [mounted(staging, 40), mounted(target, 41)], 'boot-2'), [
    'unsure',
    'unsure',
  ]);
});

test('INV-25: nobody knows with which secrets it was set up in this boot, and a reboot has ended all of that', () => {
  const isInherited = (bootId: string) => {
    const records = [recordOf(set(), 'boot-1')];
    const state = recover({ records, table: createMountTable([]), shown: new Map(), bootId, layout });
    return state.get(csi('data').id)?.isInherited;
  };
  assert.deepEqual([isInherited('boot-1'), isInherited('boot-2')], [true, undefined]);
});

test('a missing mount, another one, or one that lies below another proves nothing (A-059)', () => {
  assert.deepEqual(recovered(set(), []), ['unsure', 'unsure']);
  assert.deepEqual(recovered(set(), [mounted(staging, 40, '7:2'), mounted(target, 42)]), [
    'unsure',
    'unsure',
  ]);
  assert.deepEqual(recovered(set(), [mounted(staging, 40), mounted(staging, 39), mounted(target, 41)]), [
    'unsure',
    'present',
  ]);
  assert.deepEqual(recovered(set(), [mounted(staging, 39), mounted(staging, 40), mounted(target, 41)]), [
    'present',
    'present',
  ]);
});

test('an unreadable mount table proves nothing', () => {
  assert.deepEqual(recovered(set(), undefined), ['unsure', 'unsure']);
});

test('a rung that was begun and not finished is unsure although a mount is there (RS-07, A-059)', () => {
  const begun = { ...set(), staged: { kind: 'unsure', because: 'begun' } as const };
  assert.deepEqual(recovered(begun, [mounted(staging, 40), mounted(target, 41)]), ['unsure', 'present']);
});

test('a stage without a mount of its own is proven by a publication that is: a restart costs no RPC', () => {
  const { stagedMount: _, ...rest } = set();
  const volume = { ...rest, stagedMount: undefined };
  assert.deepEqual(recovered(volume, [mounted(target, 41)]), ['present', 'present']);
  assert.deepEqual(
    recovered(volume, [mounted(target, 42)]),
    ['unsure', 'unsure'],
    'another mount proves nothing',
  );
  assert.deepEqual(recovered(volume, [mounted(target, 41)], 'boot-2'), ['unsure', 'unsure']);
  const doubted = { ...volume, staged: { kind: 'unsure', because: 'restart' } } as const;
  assert.deepEqual(
    recovered(doubted, [mounted(target, 41)]),
    ['unsure', 'present'],
    'nor what was in doubt before',
  );
});

test('that its path was a mount point is known in every boot, and while the volume stands', () => {
  const known = (volume: ActualVolume, bootId: string) => {
    const read = parseRecord(formatRecord(recordOf(volume, 'boot-1')));
    assert.ok(read.ok);
    const state = recover({ records: [read.value], table: undefined, shown: new Map(), bootId, layout });
    return state.get(csi('data').id);
  };
  const volume = { ...set(), wasMountPoint: true } as const;
  assert.equal(known(volume, 'boot-1')?.wasMountPoint, true);
  const after = known(volume, 'boot-2');
  assert.equal(after?.wasMountPoint, true);
  assert.equal(known(set(), 'boot-2')?.wasMountPoint, undefined, 'as in records of before');
  const learnt = (kind: 'stage' | 'unstage', outcome: VolumeOutcome) => {
    const operation = { kind, volume: csi('data').id };
    return after && learn(begin(after, operation, undefined), after, operation, outcome);
  };
  const refused: VolumeOutcome = {
    kind: 'failed',
    failure: { code: 'disk-not-mounted', message: 'a bare directory', effect: 'none' },
  };
  const kept = [refused, { kind: 'done', learnt: { isMountPoint: true } } as const];
  for (const outcome of kept) assert.equal(learnt('stage', outcome)?.wasMountPoint, true);
  assert.equal(learnt('stage', { kind: 'done', learnt: {} })?.wasMountPoint, undefined);
  assert.equal(learnt('unstage', refused)?.wasMountPoint, true);
  assert.equal(learnt('unstage', { kind: 'done', learnt: {} })?.wasMountPoint, undefined);
});

test('what a driver mounted in another boot is not expected of it in this one', () => {
  const known = (bootId: string) => {
    const records = [recordOf(set(), 'boot-1')];
    const state = recover({ records, table: undefined, shown: new Map(), bootId, layout });
    return state.get(csi('data').id)?.stagedMount;
  };
  assert.deepEqual(known('boot-1'), { mountId: 40, device: '7:1' });
  assert.equal(known('boot-2'), undefined);
});

test('that a driver has ended an inline volume is known after a restart, and not after a reboot', () => {
  const volume = actual('data', { pods: { web: 'unsure' } });
  const entry = volume.publications.get(place('web', 'data').key) ?? assert.fail();
  const left = { ...volume, publications: new Map([[entry.spec.key, { ...entry, ended: true as const }]]) };
  const known = (bootId: string) => {
    const written = parseRecord(formatRecord(recordOf(left, 'boot-1')));
    assert.ok(written.ok);
    const state = recover({ records: [written.value], table: undefined, shown: new Map(), bootId, layout });
    return state.get(csi('data').id)?.publications.get(entry.spec.key)?.ended;
  };
  assert.equal(known('boot-1'), true);
  assert.equal(known('boot-2'), undefined);
});

test('INV-3: a place that a pod was told of stays one, though nothing is there after a restart', () => {
  const volume = actual('data', { pods: { web: 'unsure' } });
  const entry = volume.publications.get(place('web', 'data').key) ?? assert.fail();
  for (const untold of [undefined, true] as const) {
    const told = { ...entry, mount: undefined, ...(untold === undefined ? {} : { untold }) };
    const left = { ...volume, publications: new Map([[entry.spec.key, told]]) };
    const written = parseRecord(formatRecord(recordOf(left, 'boot-1')));
    assert.ok(written.ok);
    const table = createMountTable([]);
    const state = recover({ records: [written.value], table, shown: new Map(), bootId: 'boot-1', layout });
    assert.equal(state.get(csi('data').id)?.publications.get(entry.spec.key)?.untold, untold);
  }
});

test('DR-17: no pod has what another boot has set up, so it may be set up as it is wanted by now', () => {
  const records = [{ ...recordOf(set(), 'boot-1'), attachedNode: 'node-1' }];
  const untoldIn = (bootId: string) => {
    const state = recover({ records, table: createMountTable([]), shown: new Map(), bootId, layout });
    return state.get(csi('data').id)?.publications.get(place('web', 'data').key)?.untold;
  };
  assert.deepEqual([untoldIn('boot-1'), untoldIn('boot-2')], [undefined, true]);
});

test('INV-3: what is mounted though its record is of another boot is what its pod may have been told of', () => {
  const untold = (entries: readonly MountEntry[]) => {
    const records = [recordOf(set(), 'boot-1')];
    const table = createMountTable(entries);
    const state = recover({ records, table, shown: new Map(), bootId: 'boot-2', layout });
    return state.get(csi('data').id)?.publications.get(place('web', 'data').key)?.untold;
  };
  assert.deepEqual([untold([]), untold([mounted(target, 77)])], [true, undefined]);
});

test('DR-11: a mount that a restart did not find is forgotten when its place is climbed (seed 27507090)', () => {
  const { id } = csi('data');
  const publication = place('web', 'data');
  const climbed = (entries: readonly MountEntry[]) => {
    const table = createMountTable(entries);
    const records = [recordOf(set(), 'boot-1')];
    const found = recover({ records, table, shown: new Map(), bootId: 'boot-1', layout }).get(id);
    const operation = { kind: 'publish', volume: id, publication: publication.key } as const;
    const begun = begin(found ?? assert.fail(), operation, publication);
    return begun.publications.get(publication.key)?.mount?.mountId;
  };
  assert.equal(climbed([mounted(staging, 40), mounted(target, 41)]), 41);
  // Its number is given to the mount of a call that ends in doubt: the next call would take that for the old one.
  assert.equal(climbed([mounted(staging, 40)]), undefined);
  assert.equal(climbed([mounted(staging, 40), mounted(target, 42)]), undefined);
});
