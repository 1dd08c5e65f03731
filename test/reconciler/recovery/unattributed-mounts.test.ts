import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AbsolutePath, parseAbsolutePath } from '../../../mount/host.ts';
import { createMountTable, type MountEntry } from '../../../mount/mount-table.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import {
  type ActualState,
  type ActualVolume,
  ABSENT,
  onTheGround,
  RESTARTED,
} from '../../../reconciler/model/actual-state.ts';
import type { Reconstruction } from '../../../reconciler/recovery/reconstruct.ts';
import { createBelief } from '../../../reconciler/model/belief.ts';
import { createReconstructGate } from '../../../reconciler/recovery/reconstruct-gate.ts';
import {
  stagedDevices,
  stagedMounts,
  possibleUseOf,
  type UnattributedMount,
} from '../../../reconciler/recovery/unattributed-mounts.ts';
import { actual, csi, place, wish } from '../world.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const HERE = layout.target(csi('x'), place('web', 'x'));

/** `data` and `other`, staged from these devices; one that is not named is staged without a mount. */
function world(staged: Readonly<Record<string, string>>) {
  const entries = Object.entries(staged).map(([handle, device], index): MountEntry => {
    const target = layout.stagingPath(csi(handle));
    const id = { mountId: index + 10, parentId: 1, device, root: '/', target };
    return { ...id, options: [], propagation: [], fsType: 'ext4', source: 'x', superOptions: [] };
  });
  const volumes = ['data', 'other'].map((handle) => actual(handle, { staged: 'present' }));
  const state: ActualState = new Map(volumes.map((volume) => [volume.spec.id, volume]));
  return { table: createMountTable(entries), actual: state };
}

function isSuspected(staged: Readonly<Record<string, string>>, device: string, at = '/'): boolean {
  const { table, actual: state } = world(staged);
  const mounts: UnattributedMount[] = [{ path: HERE, device, root: at }];
  const volume = state.get(csi('data').id);
  assert.ok(volume);
  return (
    possibleUseOf(volume.spec.id, {
      unknown: { mounts, unread: [], table },
      staged: stagedMounts(state, table, layout),
      stagedFrom: new Set(stagedDevices(volume, table, layout)),
    }) !== undefined
  );
}

test('INV-1: an unknown mount of the device that a volume is staged from is suspected to be its publication', () => {
  assert.ok(isSuspected({ data: '8:16' }, '8:16'));
  assert.ok(isSuspected({ data: '0:50' }, '0:50'));
  assert.ok(isSuspected({ data: '8:16', other: '8:16' }, '8:16'));
});

test('an unknown mount of another block device is not, whoever’s it is', () => {
  assert.ok(!isSuspected({ data: '8:16' }, '8:32'));
  assert.ok(
    !isSuspected({ other: '8:32' }, '8:32'),
    'it is the other’s, so how this one is staged does not matter',
  );
});

test('INV-1: where the device tells nothing, the volume is suspected', () => {
  assert.ok(isSuspected({}, '8:32'), 'staged without a mount, it may be mounted at publish');
  assert.ok(isSuspected({ data: '0:50' }, '8:32'), 'staged as an anonymous file system');
  assert.ok(isSuspected({ data: '8:16' }, '0:60'), 'published as one: a FUSE file system, say');
  assert.ok(isSuspected({ data: '0:50' }, '0:60'), 'an export mounted twice has two numbers');
  assert.ok(isSuspected({ other: '0:60' }, '0:60'), 'two volumes of one export may share a number');
});

test('an unknown mount of an anonymous file system that another volume is staged from is that one’s', () => {
  assert.ok(!isSuspected({ data: '0:50', other: '0:60' }, '0:60'));
  assert.ok(!isSuspected({ data: '8:16', other: '0:60' }, '0:60', '/sub'));
});

function knowledge(volumes: readonly ActualVolume[]) {
  const belief = createBelief(new Map(volumes.map((volume) => [volume.spec.id, volume])));
  const touched: string[] = [];
  const parts = {
    layout,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    belief,
    desired: () => wish([]),
    isBusy: () => false,
    touch: (id: string) => touched.push(id),
    forget: () => {},
  };
  return { belief, touched, knows: createReconstructGate(parts) };
}

function finds(mounts: readonly UnattributedMount[], table = world({}).table): Reconstruction {
  const unknown = { mounts, unread: [], table };
  const read = { placesRead: true, driversHidden: false, unreadPlaces: [], complete: false };
  return { volumes: [], gone: [], ...read, unknown };
}

const staged = (device: string): ActualVolume => ({
  ...actual('data', { staged: 'present', attached: 'present' }),
  stagedMount: { mountId: 7, device },
});

test('a volume that is surely not at an unknown place may be unstaged, and then detached', () => {
  const { belief, knows } = knowledge([staged('8:16')]);
  const { id } = csi('data');
  assert.equal(knows.gateOf(id).layoutRead, false, 'nothing was read yet');
  knows.take(finds([{ path: HERE, device: '8:32', root: '/' }]));
  assert.equal(knows.gateOf(id).layoutRead, true);
  belief.begin({ ...staged('8:16'), staged: ABSENT, stagedMount: undefined });
  assert.equal(knows.gateOf(id).layoutRead, true, 'what it was staged from is remembered');
});

test('INV-1: what a volume was staged from in the past counts as long as a place is unknown', () => {
  const { belief, knows } = knowledge([staged('8:32')]);
  const { id } = csi('data');
  knows.take(finds([{ path: HERE, device: '8:32', root: '/' }]));
  belief.begin(staged('8:16'));
  const { layoutRead, possibleUse } = knows.gateOf(id);
  assert.deepEqual([layoutRead, possibleUse?.code, possibleUse?.blocker], [false, 'mount-foreign', HERE]);
  knows.take({ ...finds([]), complete: true });
  assert.equal(knows.gateOf(id).layoutRead, true);
});

test('a place that could not be read keeps every volume staged, and is named as the reason', () => {
  const { knows, touched } = knowledge([staged('8:16')]);
  const { id } = csi('data');
  const failure = {
    code: 'input-output',
    message: 'EIO',
    effect: 'none',
    blocker: '/state/pods/web',
  } as const;
  const unread = { ...finds([]), unknown: { mounts: [], unread: [failure], table: world({}).table } };
  knows.take(unread);
  assert.equal(knows.gateOf(id).possibleUse?.blocker, '/state/pods/web');
  assert.match(knows.gateOf(id).possibleUse?.message ?? '', /could not be read/);
  touched.length = 0;
  knows.take(unread);
  assert.deepEqual(touched, [], 'nothing new is no reason to plan again');
  knows.take(finds([]));
  assert.deepEqual([touched, knows.gateOf(id).layoutRead], [[id], true]);
});

test('an orphan that is frozen keeps no volume of another device from coming down', () => {
  const orphan = onTheGround(
    { kind: 'orphan', id: 'mooring/orphan/x' as typeof volumeId, path: HERE as AbsolutePath },
    { attach: false, stage: false, expand: false },
  );
  const entry = { spec: place('web', 'x', ''), presence: RESTARTED, generation: undefined, mount: undefined };
  const { knows } = knowledge([staged('8:16')]);
  const found = { ...orphan, publications: new Map([[entry.spec.key, entry]]) };
  knows.take({ ...finds([{ path: HERE, device: '8:32', root: '/' }]), volumes: [found] });
  assert.equal(knows.gateOf(volumeId).layoutRead, true);
});

const volumeId = csi('data').id;
