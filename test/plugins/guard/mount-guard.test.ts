import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIRM_GROUND } from '../../../mount/ground.ts';
import { ok } from '../../../mount/failure.ts';
import { type AbsolutePath, type Host, type MountIdentity, parentOf } from '../../../mount/host.ts';
import { createMountTable, type MountEntry } from '../../../mount/mount-table.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { traitsOf } from '../../../plugins/kinds/kinds.ts';
import { guardMounts } from '../../../plugins/guard/mount-guard.ts';
import type { PublicationCall, VolumePlugin } from '../../../plugins/plugin.ts';
import { bytesFrom } from '../../../plugins/volume.ts';
import { line, ROOT_MOUNT } from '../../mount/mount-lines.ts';
import { performStepwise } from '../../perform-stepwise.ts';
import { call, SPEC, STAGED } from '../csi/csi-world.ts';
import { callOf, emptyDir } from '../local-world.ts';

const layout = createLayout('/state' as AbsolutePath);
const target = layout.mountPoint(SPEC, call().publication);
const staging = layout.stagingPath(SPEC);
const stage = line(20, 1, staging, { device: '7:0', fsType: 'ext4' });
const volume = line(21, 1, target, { device: '7:0', fsType: 'ext4' });
const proven: MountIdentity = { mountId: 21, device: '7:0' };
const facts = {
  ...STAGED,
  needs: { ...STAGED.needs, stage: true },
  stagedMount: { mountId: 20, device: '7:0' },
};

/** What the guard says of a verb, and whether the verb was called; the verb leaves the second list mounted. */
async function said(
  verb: 'stage' | 'publish' | 'unpublish' | 'expand',
  before: readonly MountEntry[],
  changes: Partial<PublicationCall> = {},
  after = before,
  papers: 'absent' | 'file' = 'file',
  /** His mount, which has gone whenever the table is asked for strangers; `stays`: and is there at each look. */
  going?: { readonly over: MountEntry; readonly stays: boolean },
): Promise<readonly unknown[]> {
  const lasting: readonly MountEntry[] = [ROOT_MOUNT, ...before];
  let entries = going === undefined ? lasting : [...lasting, going.over];
  let called = false;
  let reads = 0;
  const table = () => createMountTable(entries);
  const host: Partial<Host> = {
    mountPlaceOf: async (path) => {
      if (going?.stays === true) entries = [...lasting, going.over];
      const within = table().way(parentOf(path)).at(-1)?.mountId ?? 1;
      return ok({ mountId: table().at(path).at(-1)?.mountId, within });
    },
    readMountTable: async () => {
      reads += 1;
      return ok(table());
    },
    inspect: async () => ok({ kind: papers } as never),
    perform(transition, args) {
      return performStepwise(this as Host, transition, args);
    },
  };
  const shownAt = (path: AbsolutePath) => {
    const top = table().at(path).at(-1);
    if (top === undefined) return undefined;
    const { mountId, device, fsType } = top;
    return { mountId, device, ...(fsType === 'tmpfs' ? { fsType } : {}) };
  };
  const act = async () => {
    called = true;
    entries = [ROOT_MOUNT, ...after];
    return ok({ mount: shownAt(target), stagedMount: shownAt(staging) });
  };
  const plugin = { stage: act, publish: act, unpublish: act, expand: act } as unknown as VolumePlugin;
  const ground = {
    ...FIRM_GROUND,
    learn: () => ok(undefined),
    expectedRound: () => (going === undefined ? undefined : ROOT_MOUNT.mountId),
    refuseStranger: async () => {
      entries = lasting;
      return ok(undefined);
    },
  };
  const guarded = guardMounts(
    { host: host as Host, layout, ground, traits: traitsOf(call(changes).spec) },
    plugin,
  );
  const { expand } = guarded;
  const about = call({ facts, ...changes });
  assert.ok(expand);
  const result = await (verb === 'expand'
    ? expand({ ...about, toBytes: bytesFrom(1n) })
    : guarded[verb](about));
  return [called, result.ok ? 'ok' : `${result.failure.code} ${result.failure.effect}`, reads];
}

test('what is proven, and what is not there yet, costs no look at the table', async () => {
  assert.deepEqual(await said('publish', [stage], {}, [stage, volume]), [true, 'ok', 0]);
  assert.deepEqual(await said('publish', [stage, volume], { mount: proven }), [true, 'ok', 0]);
  assert.deepEqual(await said('unpublish', [stage, volume], { mount: proven }), [true, 'ok', 0]);
});

test('MT-15: under somebody else’s mount no verb is called', async () => {
  const over = [stage, volume, line(30, 21, target)];
  for (const verb of ['publish', 'unpublish'] as const)
    assert.deepEqual(await said(verb, over, { mount: proven }), [false, 'mount-stacked none', 1]);
  assert.deepEqual(await said('expand', over, { mount: proven }), [false, 'mount-stacked none', 1]);
  const overStage = [stage, line(30, 20, staging)];
  assert.deepEqual(await said('publish', overStage), [false, 'mount-stacked none', 1]);
});

test('MT-15: what was mounted there before the first call is not the volume', async () => {
  const before = [stage, line(30, 1, target)];
  assert.deepEqual(await said('publish', before), [false, 'mount-foreign none', 1]);
  assert.deepEqual(await said('unpublish', before), [false, 'mount-foreign none', 1]);
});

test('what a call before a crash left there is the volume’s, if it is of its device', async () => {
  assert.deepEqual(await said('publish', [stage, volume]), [true, 'ok', 1]);
});

test('MT-15: another file system that is there after an OK is not believed', async () => {
  const after = [stage, line(30, 1, target)];
  assert.deepEqual(await said('publish', [stage], {}, after), [true, 'mount-foreign unknown', 1]);
});

const NEVER_STAGED = { facts: { ...facts, stagedMount: undefined } };

test('MT-15: what is mounted between the look and the first OK of a stage is not the volume', async () => {
  const stranger = line(30, 20, staging);
  const covered = [stage, stranger];
  assert.deepEqual(await said('stage', [stage], NEVER_STAGED, covered), [true, 'mount-stacked unknown', 2]);
  assert.deepEqual(await said('stage', [], NEVER_STAGED, covered), [true, 'mount-stacked unknown', 1]);
});

test('a first stage costs no look at the table, and a second mount of it by its driver is no stranger', async () => {
  const twice = [stage, line(30, 20, staging, { device: '7:0', fsType: 'ext4' })];
  assert.deepEqual(await said('stage', [], NEVER_STAGED, [stage]), [true, 'ok', 0]);
  assert.deepEqual(await said('stage', [stage], NEVER_STAGED, twice), [true, 'ok', 2]);
});

test('a driver that mounts twice is not somebody else', async () => {
  const twice = [stage, volume, line(30, 21, target, { device: '7:0', fsType: 'ext4' })];
  assert.deepEqual(await said('publish', [stage], {}, twice), [true, 'ok', 0]);
  assert.deepEqual(await said('unpublish', twice, { mount: proven }), [true, 'ok', 1]);
});

test('what came in the place of a mount that is gone is the volume’s only if it is of its kind', async () => {
  const again = line(40, 1, target, { device: '7:3', fsType: 'ext4' });
  assert.deepEqual(await said('unpublish', [stage, again], { mount: proven }), [true, 'ok', 1]);
  const strange = line(40, 1, target);
  assert.deepEqual(await said('unpublish', [stage, strange], { mount: proven }), [
    false,
    'mount-foreign none',
    1,
  ]);
});

test('MT-15: in doubt the number of a mount proves nothing: the kernel gives it to the next one', async () => {
  const reused = [stage, line(21, 1, target)];
  assert.deepEqual(await said('unpublish', reused, { mount: proven, isDoubted: true }), [
    false,
    'mount-foreign none',
    1,
  ]);
  assert.deepEqual(await said('unpublish', [stage, volume], { mount: proven, isDoubted: true }), [
    true,
    'ok',
    1,
  ]);
  const doubtedStage = { facts: { ...facts, isStageDoubted: true } } as const;
  assert.deepEqual(await said('stage', [line(20, 1, staging)], doubtedStage), [
    false,
    'mount-foreign none',
    1,
  ]);
  assert.deepEqual(await said('stage', [stage], doubtedStage), [true, 'ok', 1]);
});

test('MT-15: over a memory of ours, or in its place, somebody else’s is not unmounted', async () => {
  const spec = emptyDir('memory');
  const { publication } = callOf(spec);
  const path = layout.mountPoint(spec, publication);
  const memory = { device: '0:40', fsType: 'tmpfs', source: 'mooring' };
  const known = { mountId: 50, device: '0:40' };
  const changes = { spec, publication, facts: STAGED, mount: known, isDoubted: true } as const;
  assert.deepEqual(await said('unpublish', [line(50, 1, path, memory)], changes), [true, 'ok', 1]);
  const later = line(51, 1, path, memory);
  assert.deepEqual(await said('unpublish', [later], changes), [true, 'ok', 1]);
  const refused = [false, 'mount-foreign none', 1];
  assert.deepEqual(await said('unpublish', [later, line(30, 51, path)], changes), refused);
  const reused = line(50, 1, path, { ...memory, source: 'evil' });
  assert.deepEqual(await said('unpublish', [reused], changes), refused);
});

test('MT-15: who went between the look and the table bares what lay below him (seed 478126328)', async () => {
  const below = [stage, volume, line(30, 21, target)];
  const over = line(40, 1, parentOf(parentOf(target)));
  const going = { over, stays: false };
  assert.deepEqual(await said('unpublish', below, {}, below, 'file', going), [
    false,
    'mount-stacked none',
    2,
  ]);
  assert.deepEqual(await said('unpublish', [stage], {}, [stage], 'file', going), [true, 'ok', 1]);
  const restless = { over, stays: true };
  assert.deepEqual(await said('unpublish', [stage], {}, [stage], 'file', restless), [
    false,
    'mount-foreign none',
    3,
  ]);
});
