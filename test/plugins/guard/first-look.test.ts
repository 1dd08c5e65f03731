import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fail, ok, type Result } from '../../../mount/failure.ts';
import { FIRM_GROUND } from '../../../mount/ground.ts';
import { type AbsolutePath, type Host, type MountIdentity, parentOf } from '../../../mount/host.ts';
import { createMountTable, type MountEntry } from '../../../mount/mount-table.ts';
import { guardMounts } from '../../../plugins/guard/mount-guard.ts';
import { traitsOf } from '../../../plugins/kinds/kinds.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import type { PublicationCall, VolumeCall, VolumePlugin } from '../../../plugins/plugin.ts';
import { line, ROOT_MOUNT } from '../../mount/mount-lines.ts';
import { performStepwise } from '../../perform-stepwise.ts';
import { call, SPEC, STAGED } from '../csi/csi-world.ts';

const layout = createLayout('/state' as AbsolutePath);
const target = layout.mountPoint(SPEC, call().publication);
const staging = layout.stagingPath(SPEC);
const stagedMount: MountIdentity = { mountId: 20, device: '7:0' };
const stage = line(20, 1, staging, { device: '7:0', fsType: 'ext4' });
const volume = line(21, 1, target, { device: '7:0', fsType: 'ext4' });
const facts = { ...STAGED, needs: { ...STAGED.needs, stage: true }, stagedMount };

interface Said {
  /** What the verb was told, or `look` where it was looked at before. */
  readonly asked: readonly unknown[];
  readonly outcome: string;
}

const unexpected = fail({ code: 'mount-foreign', message: 'another', effect: 'none', isUnexpected: true });

/** A publish in a world where each mount lies on the root; `answer`: of the verb that nobody has looked before. */
async function published(
  before: readonly MountEntry[],
  changes: Partial<PublicationCall> = {},
  {
    looksFirst = true,
    isKnown = true,
    answer = ok({}) as Result<object>,
    answerAfterLook = ok({}) as Result<object>,
  } = {},
): Promise<Said> {
  const asked: unknown[] = [];
  let entries = [ROOT_MOUNT, ...before];
  const table = () => createMountTable(entries);
  const host: Partial<Host> = {
    mountPlaceOf: async (path) =>
      ok({
        mountId: table().at(path).at(-1)?.mountId,
        within: table().way(parentOf(path)).at(-1)?.mountId ?? 1,
      }),
    readMountTable: async () => ok(table()),
    perform(transition, args) {
      asked.push('look');
      return performStepwise(this as Host, transition, args);
    },
  };
  const publish = async ({ expectedAll }: VolumeCall) => {
    asked.push(expectedAll);
    if (asked[0] !== 'look' && asked.length === 1 && !answer.ok) return answer;
    if (asked[0] === 'look' && !answerAfterLook.ok) return answerAfterLook;
    if (table().at(target).length === 0) entries = [...entries, volume];
    return ok({ mount: { mountId: 21, device: '7:0' } });
  };
  const plugin = { publish, looksFirst: () => looksFirst } as unknown as VolumePlugin;
  const ground = {
    ...FIRM_GROUND,
    learn: () => ok(undefined),
    expectedRound: () => (isKnown ? 1 : undefined),
  };
  const guarded = guardMounts({ host: host as Host, layout, ground, traits: traitsOf(SPEC) }, plugin);
  const result = await guarded.publish(call({ facts, ...changes }));
  return { asked, outcome: result.ok ? 'ok' : `${result.failure.code} ${result.failure.effect}` };
}

const BOTH = [
  { path: target, mountId: undefined, within: 1 },
  { path: staging, mountId: 20, within: 1 },
];

test('a plugin that looks first is told of each place what is to be there, and nobody looks before', async () => {
  assert.deepEqual(await published([stage]), { asked: [BOTH], outcome: 'ok' });
});

test('where nothing can be expected of a place, or the plugin does not look, it is looked at before', async () => {
  const blind = { asked: ['look', undefined], outcome: 'ok' };
  assert.deepEqual(await published([stage], {}, { looksFirst: false }), blind);
  const looked = { asked: ['look', BOTH], outcome: 'ok' };
  assert.deepEqual(await published([stage], {}, { isKnown: false }), looked);
  const doubted = { facts: { ...facts, isStageDoubted: true as const } };
  assert.deepEqual(await published([stage], doubted), looked);
});

test('MT-15: what the plugin finds otherwise is judged as ever, and no verb is called under a stranger', async () => {
  const told = { answer: unexpected };
  const overStage = [stage, line(30, 20, staging)];
  assert.deepEqual(await published(overStage, {}, told), {
    asked: [BOTH, 'look'],
    outcome: 'mount-stacked none',
  });
  assert.deepEqual(await published([stage, volume], {}, told), {
    asked: [BOTH, 'look', [{ path: target, mountId: 21, within: 1 }, BOTH[1]]],
    outcome: 'ok',
  });
});

test('MT-15: what is bared between the look and the verb by a cover that goes is not the volume', async () => {
  const told = { isKnown: false, answerAfterLook: unexpected };
  assert.deepEqual(await published([stage], {}, told), {
    asked: ['look', BOTH],
    outcome: 'mount-foreign none',
  });
});

test('another failure of a plugin that looked first is its answer', async () => {
  const answer = fail({ code: 'driver-busy', message: 'not now', effect: 'none' });
  assert.deepEqual(await published([stage], {}, { answer }), { asked: [BOTH], outcome: 'driver-busy none' });
});
