import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fail, ok, type Result } from '../../../../mount/failure.ts';
import type { AbsolutePath } from '../../../../mount/host.ts';
import type { OwnershipReport, OwnershipRequest } from '../../../../mount/ownership.ts';
import { applyFsGroup, isFsGroupOurs, volumeMountGroup } from '../../../../plugins/csi/call/fs-group.ts';
import type { AccessMode, CsiVolumeSpec, FsGroup, FsGroupPolicy } from '../../../../plugins/volume.ts';
import { csiSpec } from '../../csi-spec.ts';

const GROUP: FsGroup = { gid: 2_000, changePolicy: 'Always' };
const WALKER = { nodeCapabilities: new Set([1]) };
const DELEGATE = { nodeCapabilities: new Set([1, 6]) };
const PATH = '/var/lib/mooring/pods/a/volumes/kubernetes.io~csi/pv/mount' as AbsolutePath;

function spec(changes: Partial<CsiVolumeSpec> = {}): CsiVolumeSpec {
  return csiSpec('driver.test', 'vol', 'pv', changes);
}

const MOUNT_ID = 77;

/** A host that notes what it is asked to walk. */
function walker(answer: Result<OwnershipReport> = ok({ seen: 3, changed: 2, refused: 1 })) {
  const walks: OwnershipRequest[] = [];
  return {
    walks,
    changeOwnership: async (request: OwnershipRequest) => {
      walks.push(request);
      request.onProgress(12_345);
      return answer;
    },
  };
}

function request(changes: Partial<Parameters<typeof applyFsGroup>[1]> = {}) {
  return {
    driver: WALKER,
    spec: spec(),
    publication: { readOnly: false, fsGroup: GROUP },
    path: PATH,
    mountId: MOUNT_ID,
    progress: () => {},
    stillWanted: () => true,
    ...changes,
  };
}

test('A-022: a driver with VOLUME_MOUNT_GROUP is told the group, and then we touch nothing', async () => {
  assert.equal(volumeMountGroup(DELEGATE, spec(), GROUP), '2000');
  const host = walker();
  assert.ok((await applyFsGroup(host, request({ driver: DELEGATE }))).ok);
  assert.deepEqual(host.walks, []);
});

test('A-022: a driver without VOLUME_MOUNT_GROUP is never told a group, and then we do the work', async () => {
  assert.equal(volumeMountGroup(WALKER, spec(), GROUP), '');
  const host = walker();
  assert.ok((await applyFsGroup(host, request())).ok);
  assert.deepEqual(
    host.walks.map(({ path, mountId, gid, readOnly, policy }) => ({ path, mountId, gid, readOnly, policy })),
    [{ path: PATH, mountId: MOUNT_ID, gid: 2_000, readOnly: false, policy: 'always' }],
  );
});

test('no group, a block volume: nobody is told anything', () => {
  assert.equal(volumeMountGroup(DELEGATE, spec(), undefined), '');
  assert.equal(volumeMountGroup(DELEGATE, spec({ mode: 'Block' }), GROUP), '');
});

test('KV-C14: by policy, file system type and access modes it is ours or nobody’s', () => {
  const ours = (
    fsGroupPolicy: FsGroupPolicy,
    fsType: string,
    accessModes: readonly AccessMode[],
    changes: Partial<CsiVolumeSpec> = {},
  ) =>
    isFsGroupOurs(WALKER, spec({ fsGroupPolicy, fsType, accessModes, ...changes }), {
      readOnly: false,
      fsGroup: GROUP,
    });
  assert.equal(ours('None', 'ext4', ['ReadWriteOnce']), false);
  assert.equal(ours('File', '', ['ReadWriteMany']), true);
  assert.equal(ours('File', '', ['ReadWriteMany'], { mode: 'Block' }), false);
  const byDefault = 'ReadWriteOnceWithFSType';
  assert.equal(ours(byDefault, 'ext4', ['ReadWriteOnce']), true);
  assert.equal(ours(byDefault, 'ext4', ['ReadOnlyMany', 'ReadWriteOncePod']), true);
  assert.equal(ours(byDefault, '', ['ReadWriteOnce']), false);
  assert.equal(ours(byDefault, 'ext4', ['ReadWriteMany']), false);
  assert.equal(ours(byDefault, 'ext4', []), false);
  assert.equal(ours(byDefault, 'ext4', [], { lifecycle: 'Ephemeral' }), true);
  assert.equal(ours(byDefault, '', [], { lifecycle: 'Ephemeral' }), false);
});

test('KV-C14: a read-only publication is never walked, and one without a group neither', async () => {
  const host = walker();
  for (const publication of [{ readOnly: true, fsGroup: GROUP }, { readOnly: false }])
    assert.ok((await applyFsGroup(host, request({ publication, spec: spec({ fsGroupPolicy: 'File' }) }))).ok);
  assert.deepEqual(host.walks, []);
});

test('KV-C15: OnRootMismatch asks the root only; progress is said in words; the wish can end the walk', async () => {
  const host = walker();
  const said: string[] = [];
  let wanted = true;
  const fsGroup: FsGroup = { gid: 2_000, changePolicy: 'OnRootMismatch' };
  const publication = { readOnly: false, fsGroup };
  const progress = (text: string) => said.push(text);
  await applyFsGroup(host, request({ publication, progress, stillWanted: () => wanted }));
  assert.equal(host.walks[0]?.policy, 'on-root-mismatch');
  assert.deepEqual(said, ['changing the group to 2000: 12,345 entries seen']);
  assert.equal(host.walks[0]?.isCancelled(), false);
  wanted = false;
  assert.equal(host.walks[0]?.isCancelled(), true);
});

test('a walk that fails never promises that nothing changed', async () => {
  const host = walker(fail({ code: 'input-output', message: 'EIO', effect: 'none' }));
  const applied = await applyFsGroup(host, request());
  assert.ok(!applied.ok);
  assert.deepEqual(
    { code: applied.failure.code, effect: applied.failure.effect },
    { code: 'input-output', effect: 'unknown' },
  );
});
