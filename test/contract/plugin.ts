/** What every VolumePlugin promises (plugins/plugin.ts), as sentences that any kind can be held to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FailureCode, Result } from '../../mount/failure.ts';
import type { PublicationCall, VolumePlugin } from '../../plugins/plugin.ts';
import { accept } from '../plugins/accept.ts';
import { CRASH } from '../plugins/memory-host.ts';

/** A machine with one volume that can be published on it, before anything of it is there. */
export interface PluginWorld {
  /** A new instance, as after a restart of the agent. */
  plugin(): VolumePlugin;
  readonly call: PublicationCall;
  /** The whole machine, comparable. */
  describe(): readonly string[];
  /** What the pod finds at its place; the same value as long as the pod cannot tell a difference. */
  seen(): unknown;
  /** Layers mounted where the pod sees the volume. */
  depth(): number;
  effects(): number;
  calls(): number;
  crashAt(n: number | undefined): void;
  failAt(n: number, code: FailureCode, moment: 'before' | 'after'): void;
}

const CODES = ['input-output', 'disk-full', 'mount-failed', 'deadline-passed'] as const;
const MOMENTS = ['before', 'after'] as const;

export function pluginContract(name: string, make: () => PluginWorld): void {
  const publish = (world: PluginWorld) => world.plugin().publish(world.call);
  const unpublish = (world: PluginWorld) => world.plugin().unpublish(world.call);

  /** A world in which it is published, and what that cost. */
  async function published(): Promise<PluginWorld> {
    const world = make();
    accept(await publish(world));
    return world;
  }

  async function cost(
    world: PluginWorld,
    act: () => Promise<Result<unknown>>,
  ): Promise<{ effects: number; calls: number }> {
    const before = { effects: world.effects(), calls: world.calls() };
    accept(await act());
    return { effects: world.effects() - before.effects, calls: world.calls() - before.calls };
  }

  test(`${name}: published twice it is one mount and the same content`, async () => {
    const world = await published();
    const once = { all: world.describe(), seen: world.seen(), depth: world.depth() };
    accept(await publish(world));
    assert.deepEqual({ all: world.describe(), seen: world.seen(), depth: world.depth() }, once);
    assert.ok(world.depth() <= 1, 'nothing stacks');
  });

  test(`${name}: the answer of publish is the same each time`, async () => {
    const world = make();
    const first = await publish(world);
    assert.deepEqual(await publish(world), first);
  });

  test(`${name}: after publish and unpublish nothing of it is left`, async () => {
    const world = make();
    const before = world.describe();
    accept(await publish(world));
    accept(await unpublish(world));
    assert.deepEqual(world.describe(), before);
    assert.equal(world.depth(), 0);
  });

  test(`${name}: taking down what was never put up succeeds and changes nothing`, async () => {
    const world = make();
    const before = world.describe();
    accept(await unpublish(world));
    assert.equal(world.effects(), 0);
    assert.deepEqual(world.describe(), before);
  });

  test(`${name}: taking down twice succeeds`, async () => {
    const world = await published();
    accept(await unpublish(world));
    accept(await unpublish(world));
  });

  test(`${name}: taking down needs no files and no secrets`, async () => {
    const before = make().describe();
    const world = await published();
    accept(await world.plugin().unpublish({ ...world.call, files: undefined }));
    assert.deepEqual(world.describe(), before);
  });

  test(`${name}: no verb does anything once the world has moved on`, async () => {
    const world = await published();
    const [plugin, call, before] = [
      world.plugin(),
      { ...world.call, stillWanted: () => false },
      world.describe(),
    ];
    for (const verb of ['attach', 'stage', 'publish', 'unpublish', 'unstage', 'detach'] as const) {
      const result = await plugin[verb](call);
      assert.ok(!result.ok, `${verb} was refused`);
      assert.deepEqual([result.failure.code, result.failure.effect], ['no-longer-wanted', 'none'], verb);
    }
    assert.deepEqual(world.describe(), before);
  });

  test(`${name}: a failed publish says honestly whether anything changed, and the next one ends the same`, async () => {
    const reference = make();
    const { calls } = await cost(reference, () => publish(reference));
    for (const [n, code, moment] of faults(calls)) {
      const world = make();
      const before = world.describe();
      world.failAt(n, code, moment);
      checkHonest(
        world,
        await publish(world),
        { before, after: reference.describe() },
        `${code} ${moment} call ${n}`,
      );
      accept(await publish(world));
      assert.deepEqual(world.describe(), reference.describe(), `${code} ${moment} call ${n}`);
    }
  });

  test(`${name}: a repeated publish that fails changes nothing that the pod sees`, async () => {
    const reference = await published();
    const { calls } = await cost(reference, () => publish(reference));
    for (const [n, code, moment] of faults(calls)) {
      const world = await published();
      const before = world.seen();
      world.failAt(n, code, moment);
      await publish(world);
      assert.deepEqual(world.seen(), before, `${code} ${moment} call ${n}`);
      assert.ok(world.depth() <= 1, 'nothing stacks');
    }
  });

  test(`${name}: a failed unpublish is honest, and the next one leaves nothing`, async () => {
    const clean = make().describe();
    const reference = await published();
    const { calls } = await cost(reference, () => unpublish(reference));
    for (const [n, code, moment] of faults(calls)) {
      const world = await published();
      const before = world.describe();
      world.failAt(n, code, moment);
      checkHonest(world, await unpublish(world), { before, after: clean }, `${code} ${moment} call ${n}`);
      accept(await unpublish(world));
      assert.deepEqual(world.describe(), clean, `${code} ${moment} call ${n}`);
    }
  });

  test(`${name}: after a crash at any effect of publish, publishing again ends like no crash`, async () => {
    const reference = make();
    const { effects } = await cost(reference, () => publish(reference));
    for (let n = 1; n <= effects; n += 1) {
      const world = make();
      await crashed(world, n, () => publish(world));
      accept(await publish(world));
      assert.deepEqual(world.describe(), reference.describe(), `crash at effect ${n} of ${effects}`);
      assert.deepEqual(world.seen(), reference.seen(), `crash at effect ${n} of ${effects}`);
    }
  });

  test(`${name}: after a crash at any effect of publish, unpublish leaves nothing`, async () => {
    const reference = make();
    const clean = reference.describe();
    const { effects } = await cost(reference, () => publish(reference));
    for (let n = 1; n <= effects; n += 1) {
      const world = make();
      await crashed(world, n, () => publish(world));
      accept(await unpublish(world));
      assert.deepEqual(world.describe(), clean, `crash at effect ${n} of ${effects}`);
    }
  });

  test(`${name}: after a crash at any effect of unpublish, unpublishing again leaves nothing`, async () => {
    const clean = make().describe();
    const reference = await published();
    const { effects } = await cost(reference, () => unpublish(reference));
    for (let n = 1; n <= effects; n += 1) {
      const world = await published();
      await crashed(world, n, () => unpublish(world));
      accept(await unpublish(world));
      assert.deepEqual(world.describe(), clean, `crash at effect ${n} of ${effects}`);
    }
  });
}

/** `ok` means that all of it is done, `none` that nothing is. */
function checkHonest(
  world: PluginWorld,
  result: Result<unknown>,
  { before, after }: { readonly before: readonly string[]; readonly after: readonly string[] },
  when: string,
): void {
  if (result.ok) assert.deepEqual(world.describe(), after, `said done: ${when}`);
  else if (result.failure.effect === 'none')
    assert.deepEqual(world.describe(), before, `said no effect: ${when}`);
}

/** Every call, with every kind of fault, told before or after the fact. */
function* faults(calls: number): Generator<[number, FailureCode, 'before' | 'after']> {
  for (let n = 1; n <= calls; n += 1) {
    for (const code of CODES) for (const moment of MOMENTS) yield [n, code, moment];
  }
}

async function crashed(world: PluginWorld, n: number, act: () => Promise<unknown>): Promise<void> {
  world.crashAt(n);
  await assert.rejects(act, (thrown) => thrown === CRASH);
  world.crashAt(undefined);
}
