/** A kind of volume that the product does not have goes up and down: nothing but its folder and its line knows it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../agent/config/config.ts';
import { createPlugins } from '../../agent/node/create-plugins.ts';
import { conflictOf } from '../../agent/resolve/volume-conflict.ts';
import { createGround } from '../../mount/ground.ts';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';
import type { RunningDriverRegistry } from '../../plugins/csi/driver/driver-registry.ts';
import { registerKind, traitsOf } from '../../plugins/kinds/kinds.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import type { DesiredVolume } from '../../reconciler/model/desired-state.ts';
import { createReconciler } from '../../reconciler/reconciler.ts';
import { reconstruct } from '../../reconciler/recovery/reconstruct.ts';
import { createRecordStore } from '../../reconciler/recovery/record-store.ts';
import { recover } from '../../reconciler/recovery/recover.ts';
import { freshHost, layout, ROOT } from '../plugins/local-world.ts';
import type { MemoryHost } from '../plugins/memory-host.ts';
import { SHARE, shareSpec } from '../plugins/share/share-kind.ts';
import { settled } from './bench-host.ts';
import { place, wanted, wish } from './world.ts';

registerKind(SHARE);

test('the list of kinds is closed when it was asked once', () => {
  assert.equal(traitsOf(shareSpec('music', 'a.example')), SHARE.traits);
  assert.throws(() => registerKind({ ...SHARE }), /closed/);
});

const STAGED = below(layout.plugins, 'mooring.test', 'share', 'music');
const RESYNC_MS = 60_000;
const NO_DRIVERS: Partial<Config> = {
  nodeName: 'node',
  csiDeadlineMs: 1_000,
  staticDrivers: [],
  drivers: new Map(),
};
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

function wantedShare(pods: readonly string[], server = 'a.example'): DesiredVolume {
  return { ...wanted('music', pods), spec: shareSpec('music', server) };
}

const targetOf = (pod: string): string => `${ROOT}/pods/${pod}/volumes/mooring.test~share/pv-music`;

/** An agent's reconciler over the machine, and all kinds as the agent has them: guarded, with their parts. */
async function startOn(machine: MemoryHost) {
  // What is due soon is due at the next turn; the resync never comes.
  const timer: Host['timer'] = (delayMs, fire) => {
    if (delayMs >= RESYNC_MS) return () => {};
    const due = setImmediate(fire);
    return () => clearImmediate(due);
  };
  const host: Host = { ...machine, timer };
  const ground = createGround(host, layout.root, [layout.pods, layout.plugins]);
  const drivers: Pick<RunningDriverRegistry, 'get' | 'suspect'> = { get: () => undefined, suspect() {} };
  const { plugins } = createPlugins(
    {
      host,
      config: NO_DRIVERS as unknown as Config,
      operationTimes: { timed: (plugin) => plugin },
      deniedHostPaths: [],
      volumesHere: { list: () => [] },
      log: { warn() {} },
    },
    layout,
    drivers as RunningDriverRegistry,
    ground,
  );
  const records = createRecordStore(host, layout);
  const loaded = await records.load();
  const table = await host.readMountTable(layout.root);
  assert.ok(loaded.ok && table.ok);
  assert.ok(ground.learn(table.value).ok);
  const recovered: ActualState = recover({
    records: loaded.value.records,
    table: table.value,
    shown: new Map(),
    bootId: host.bootId,
    layout,
  });
  const reconciler = createReconciler({
    host,
    layout,
    plugins,
    records,
    recovered,
    log: SILENT,
    backOff: { firstMs: 500, maxMs: 8_000 },
    laneWidth: () => 4,
    resyncMs: RESYNC_MS,
  });
  const scan = { host, layout, ground, known: reconciler.actual(), isWanted: () => true };
  reconciler.takeReconstructed(await reconstruct(scan, 'whole'));
  return {
    reconciler,
    async want(volumes: readonly DesiredVolume[]) {
      reconciler.setDesired(wish(volumes));
      for (let turn = 0; turn < 20; turn += 1) await settled();
      assert.deepEqual(reconciler.running(), []);
    },
  };
}

test('a kind of the tests alone is staged once, shared by two pods, and leaves nothing', async () => {
  const host = freshHost();
  const agent = await startOn(host);
  const before = host.describe(ROOT);

  await agent.want([wantedShare(['web', 'db'])]);
  assert.deepEqual(agent.reconciler.obstacles(), []);
  host.plant(`${targetOf('web')}/song`, { kind: 'file', content: 'la' });
  assert.equal(host.read(`${targetOf('db')}/song`), 'la');
  assert.equal(host.read(`${STAGED}/song`), 'la');

  await agent.want([wantedShare(['db'])]);
  assert.deepEqual(host.names(`${ROOT}/pods`), ['db']);
  assert.equal(host.read(`${targetOf('db')}/song`), 'la');

  await agent.want([]);
  assert.deepEqual(host.describe(ROOT), before);
  assert.equal(agent.reconciler.actual().size, 0);
});

test('after a restart a kind of the tests alone is proven by its mounts, and taken down by its record', async () => {
  const host = freshHost();
  const before = host.describe(layout.plugins);
  await (await startOn(host)).want([wantedShare(['web', 'db'])]);
  const standing = host.describe(ROOT);
  const effects = host.effects();
  const second = await startOn(host);
  const [volume] = second.reconciler.actual().values();
  assert.equal(volume?.staged.kind, 'present');
  assert.deepEqual(
    [...(volume?.publications.values() ?? [])].map((one) => one.presence.kind),
    ['present', 'present'],
  );
  await second.want([wantedShare(['web', 'db'])]);
  assert.deepEqual(host.describe(ROOT), standing);
  assert.equal(host.effects(), effects);
  await second.want([]);
  assert.deepEqual(host.describe(layout.plugins), before);
  assert.deepEqual(host.names(`${ROOT}/pods`), []);
});

test('MT-15: what somebody mounts over a volume of a kind of the tests alone is named, and stays', async () => {
  const host = freshHost();
  const agent = await startOn(host);
  const before = host.describe(ROOT);
  await agent.want([wantedShare(['web'])]);
  const target = targetOf('web') as AbsolutePath;
  const evil = { fsType: 'tmpfs', source: 'evil', target, options: [] } as const;
  assert.ok((await host.mount(evil)).ok);
  await agent.want([]);
  const [obstacle] = agent.reconciler.obstacles();
  assert.equal(obstacle?.code, 'mount-stacked');
  assert.match(obstacle?.message ?? '', /"evil"/);
  assert.ok((await host.unmount(target)).ok);
  await agent.want([wantedShare(['web'])]);
  await agent.want([]);
  assert.deepEqual(host.describe(ROOT), before);
});

test('what staging fixes of a kind of the tests alone is told by its table', async () => {
  const host = freshHost();
  const agent = await startOn(host);
  await agent.want([wantedShare(['web'])]);
  await agent.want([wantedShare(['web', 'db'], 'b.example')]);
  assert.deepEqual(
    agent.reconciler
      .obstacles()
      .map(({ code, message, publication }) => [code, publication, message.slice(0, 42)]),
    [['volume-in-use', place('db', 'music').key, 'the volume stands with server a.example, a']],
  );
  await agent.want([wantedShare(['db'], 'b.example')]);
  assert.deepEqual(host.names(`${ROOT}/pods`), ['db']);
  const [web, db] = [place('web', 'music').pod, place('db', 'music').pod];
  const conflict = conflictOf(
    { spec: shareSpec('music', 'a.example', 'x'), pod: web },
    { spec: shareSpec('music', 'b.example', 'y'), pod: db },
  );
  assert.match(conflict?.failure.message ?? '', /with another server$/);
});
