/** What an agent makes of what stood before a reboot. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Needs } from '../../plugins/plugin.ts';
import type { DesiredState } from '../../reconciler/model/desired-state.ts';
import type { PodUid } from '../../plugins/volume.ts';
import { LATE_EFFECT_MS } from '../../reconciler/run/lookout.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import { recover } from '../../reconciler/recovery/recover.ts';
import { createBench, layout, onlyRecord } from './bench.ts';
import { actual, bytes, csi, place, wanted, wantedOfSize, wish } from './world.ts';

const HOUR_MS = 3_600_000;

const needsOn = (node: string) => ({ attach: true, node, stage: true, expand: false }) as const;

type Bench = ReturnType<typeof createBench>;

/** A reconciler after a reboot, of what the one before had set up as it was wished; `then`: all that it did. */
async function afterReboot(desired: DesiredState, needs?: Needs, then?: (before: Bench) => Promise<void>) {
  const before = createBench({ resyncMs: 1e9 });
  if (needs !== undefined) before.plugins.needs = needs;
  before.reconciler.setDesired(desired);
  await before.host.advance(1_000);
  await then?.(before);
  const record = onlyRecord(before.host);
  await before.reconciler.stop(0);
  const recovered = recover({
    ...{ records: [record], table: undefined, shown: new Map(), bootId: 'boot-2', layout },
  });
  return createBench({ recovered, resyncMs: 1e9 });
}

test('DR-17: what was attached under the name of before the reboot is detached, and attached anew', async () => {
  const desired = wish([wanted('data', ['web'])]);
  const { plugins, reconciler, host } = await afterReboot(desired, needsOn('node-1'));
  plugins.needs = needsOn('node-2');
  // The storage knows the old name no more: to attach there is in vain.
  plugins.fault = (kind) =>
    kind === 'attach' && plugins.made.at(-1)?.node === 'node-1'
      ? { code: 'driver-not-found', message: 'no such node', effect: 'none' }
      : undefined;
  reconciler.setDesired(desired);
  await host.advance(HOUR_MS);
  const attachments = plugins.made.filter(({ kind }) => kind === 'attach' || kind === 'detach');
  assert.deepEqual(
    attachments.map(({ kind, node }) => `${kind} ${node}`),
    ['detach node-1', 'attach node-2'],
  );
  assert.deepEqual(reconciler.obstacles(), []);
  await reconciler.stop(0);
});

test('an attach that nobody hears of any more is waited for once, however often the agent starts', async () => {
  const asked = { operation: 'attach', node: 'node-1' } as const;
  const standing = actual('data', { needs: needsOn('node-1') });
  const volume = { ...standing, attachedNode: 'node-1', tombstones: [{ ...asked, open: true as const }] };
  let recovered: ActualState = new Map([[volume.spec.id, volume]]);
  for (const nowMs of [60_000, 360_000]) {
    const { host, reconciler } = createBench({ recovered, nowMs, resyncMs: 1e9 });
    await host.advance(1_000);
    await reconciler.stop(0);
    const records = host.files.size === 0 ? [] : [onlyRecord(host)];
    if (records.length === 0) continue;
    recovered = recover({ records, table: undefined, shown: new Map(), bootId: 'boot-1', layout });
  }
  const [known] = recovered.values();
  assert.deepEqual(known?.tombstones, [{ ...asked, untilMs: 60_000 + LATE_EFFECT_MS }]);
});

for (const isAsked of [true, false])
  test(`A-071: after a reboot it is grown before its pod has it again, refused before it: ${isAsked}`, async () => {
    const larger = wish([wantedOfSize('data', ['web'], 20)]);
    const { plugins, reconciler, host } = await afterReboot(
      wish([wantedOfSize('data', ['web'], 10)]),
      { attach: false, stage: true, expand: true },
      async (before) => {
        before.plugins.fault = refusesInUse(before.plugins);
        if (isAsked) before.reconciler.setDesired(larger);
        await before.host.advance(1_000);
        assert.equal(before.plugins.calls.includes('expand data'), isAsked);
      },
    );
    plugins.fault = refusesInUse(plugins);
    plugins.needs = { attach: false, stage: true, expand: true };
    reconciler.setDesired(larger);
    await host.advance(HOUR_MS);
    assert.ok(plugins.world.has(place('web', 'data').key), 'its pod has it');
    assert.equal(reconciler.actual().get(csi('data').id)?.sizeBytes, bytes(20));
    await reconciler.stop(0);
  });

/** A driver that grows a volume only while no pod has it. */
function refusesInUse({ world }: Bench['plugins']): Bench['plugins']['fault'] {
  return (kind) =>
    kind === 'expand' && world.has(place('web', 'data').key)
      ? { code: 'expand-in-use', message: 'in use', effect: 'none' }
      : undefined;
}

const FIRST = wanted('data', ['web']);
type Wanted = typeof FIRST;

/** What is done after a reboot for a volume that is wished otherwise since, at first and when all has been read. */
async function wishedOtherwise(otherwise: Wanted, gate: Partial<DesiredState> = {}) {
  const { plugins, reconciler, host } = await afterReboot(wish([FIRST]));
  reconciler.setDesired({ ...wish([otherwise]), ...gate });
  await host.advance(HOUR_MS);
  const made = () => plugins.made.splice(0).map(({ kind }) => kind);
  const [first, waits] = [made(), reconciler.obstacles().map(({ kind }) => kind)];
  reconciler.setDesired(wish([otherwise]));
  await host.advance(HOUR_MS);
  const then = made();
  assert.deepEqual(reconciler.obstacles(), []);
  const [volume] = reconciler.actual().values();
  const [place] = volume?.publications.values() ?? [];
  await reconciler.stop(0);
  return { first, waits, then, volume: volume?.spec, place: place?.spec };
}

const WITH_OPTIONS = { ...FIRST, spec: { ...FIRST.spec, mountOptions: ['noatime'] } } as Wanted;
const AS_DEVICE = { ...FIRST, spec: { ...FIRST.spec, mode: 'Block' } } as Wanted;
const READ_ONLY: Wanted = {
  ...FIRST,
  publications: new Map(
    [...FIRST.publications].map(([key, one]) => [key, { ...one, spec: { ...one.spec, readOnly: true } }]),
  ),
};
const UNREAD = { complete: false };
const FROZEN = { frozenPods: new Set(['web' as PodUid]) };

test('DR-17: what is wished otherwise since the reboot is made anew, as no pod has it', async () => {
  const { first } = await wishedOtherwise(WITH_OPTIONS);
  assert.deepEqual(first, ['unpublish', 'unstage', 'stage', 'publish']);
});

test('DR-17: while a source is unread it is set up as it was: who has the cluster may wait for that pod', async () => {
  const { first, waits } = await wishedOtherwise(WITH_OPTIONS, UNREAD);
  assert.deepEqual([first, waits], [['stage', 'publish'], []]);
});

test('DR-17: a pod is given no files for a device, whatever is unread: it waits, and is told that', async () => {
  const { first, waits, then, volume } = await wishedOtherwise(AS_DEVICE, UNREAD);
  assert.deepEqual([first, waits], [[], ['gate-closed']]);
  assert.deepEqual(then, ['unpublish', 'unstage', 'stage', 'publish']);
  assert.ok(volume?.kind === 'csi' && volume.mode === 'Block');
});

for (const [name, gate] of Object.entries({ unread: UNREAD, frozen: FROZEN }))
  test(`DR-17: a pod that is to read only by now is never given what it may write: ${name}`, async () => {
    const { then, place } = await wishedOtherwise(READ_ONLY, gate);
    assert.deepEqual(
      [then.filter((kind) => kind !== 'stage'), place?.readOnly],
      [['unpublish', 'publish'], true],
    );
  });
