/** From the rename of a manifest to the last volume published, and what of it is the driver's own time. */
import { nowMs } from './clock.ts';
import { busyMs, type DriverCall, ownMs } from './noop-driver-process.ts';
import { type BenchPod, benchPod, bystanders } from './pods.ts';
import { percentile, type Spread, spreadOf } from './statistics.ts';
import { NOOP, type World } from './world.ts';

const WARM_UPS = 3;

export interface SinglePod {
  readonly total: Spread;
  readonly driver: Spread;
  /** Total less the driver's own time. */
  readonly overhead: Spread;
  /** The overhead in three parts: until the driver is called first, between its calls, after the last. */
  readonly before: Spread;
  readonly between: Spread;
  readonly after: Spread;
  /** From the removal of the manifest to the last mount gone. */
  readonly removal: Spread;
  /** The part of it from the first call to the driver on: without the wait for a removal to be believed. */
  readonly takingDown: Spread;
}

export interface ManyPods {
  readonly pods: number;
  /** Per pod, from the one rename that brings them all. */
  readonly perPod: Spread;
  /** The last pod of each repeat: p50 of the repeats. */
  readonly allMs: number;
  /** `allMs` less the time in which the driver worked on at least one call. */
  readonly overheadMs: number;
}

export interface Mounting {
  readonly single: SinglePod;
  /** One pod with a secret and no driver at all. */
  readonly secret: Spread;
  readonly many: readonly ManyPods[];
}

export async function measureMounting(
  world: World,
  repeats: number,
  manyRepeats: readonly (readonly [pods: number, times: number])[],
) {
  world.put('bystanders', bystanders(220))();
  const single: Parameters<typeof partsOf>[0][] = [];
  for (let index = -WARM_UPS; index < repeats; index += 1) {
    const run = await upAndDown(world, [
      benchPod({ name: `one-${index + WARM_UPS}`, driver: NOOP, csiVolumes: 1, others: [] }),
    ]);
    if (index >= 0) single.push(run);
  }
  const secret: number[] = [];
  for (let index = -WARM_UPS; index < repeats; index += 1) {
    const run = await upAndDown(world, [
      benchPod({ name: `quiet-${index + WARM_UPS}`, driver: NOOP, csiVolumes: 0, others: ['secret'] }),
    ]);
    if (index >= 0) secret.push(run.lastMs - run.renamedMs);
  }
  const many: ManyPods[] = [];
  for (const [pods, times] of manyRepeats) many.push(await measureMany(world, pods, times));
  return { single: singlePod(single.map(partsOf)), secret: spreadOf(secret), many } satisfies Mounting;
}

async function measureMany(world: World, pods: number, times: number): Promise<ManyPods> {
  const perPod: number[] = [];
  const all: number[] = [];
  const overhead: number[] = [];
  for (let time = 0; time < times; time += 1) {
    const wanted = Array.from({ length: pods }, (_, index) =>
      benchPod({ name: `of${pods}-${time}-${index}`, driver: NOOP, csiVolumes: 1, others: [] }),
    );
    const run = await upAndDown(world, wanted);
    perPod.push(...run.publishedMs.map((atMs) => atMs - run.renamedMs));
    all.push(run.lastMs - run.renamedMs);
    overhead.push(run.lastMs - run.renamedMs - busyMs(run.calls));
  }
  return { pods, perPod: spreadOf(perPod), allMs: percentile(all, 50), overheadMs: percentile(overhead, 50) };
}

interface Run {
  readonly renamedMs: number;
  readonly publishedMs: readonly number[];
  readonly lastMs: number;
  readonly calls: readonly DriverCall[];
  readonly removedMs: number;
  readonly goneMs: number;
  readonly callsDown: readonly DriverCall[];
}

/** The pods, by one manifest, until all is published; then without it until all is gone. */
async function upAndDown(world: World, pods: readonly BenchPod[]): Promise<Run> {
  const { log } = world;
  log.forget();
  await world.calls();
  const show = world.put(
    'pods',
    pods.flatMap(({ objects }) => objects),
  );
  const renamedMs = nowMs();
  show();
  const publications = pods.flatMap((pod) => pod.publications);
  const published = await log.until('volume published', publications);
  const calls = await world.calls();
  const removedMs = nowMs();
  world.remove('pods');
  const unpublished = await log.until('volume unpublished', publications);
  const unstaged = await log.until(
    'volume unstaged',
    pods.flatMap((pod) => pod.csiVolumes),
  );
  const callsDown = await world.calls();
  await world.untilIdle();
  const publishedMs = [...published.values()];
  const goneMs = Math.max(...unpublished.values(), ...unstaged.values());
  return { renamedMs, publishedMs, lastMs: Math.max(...publishedMs), calls, removedMs, goneMs, callsDown };
}

interface Parts {
  readonly total: number;
  readonly driver: number;
  readonly before: number;
  readonly between: number;
  readonly after: number;
  readonly removal: number;
  readonly takingDown: number;
}

function partsOf({ renamedMs, lastMs, calls, removedMs, goneMs, callsDown }: Run): Parts {
  const first = firstMs(calls);
  const last = Math.max(...calls.map(({ endMs }) => endMs));
  const driver = ownMs(calls);
  return {
    total: lastMs - renamedMs,
    driver,
    before: first - renamedMs,
    between: last - first - driver,
    after: lastMs - last,
    removal: goneMs - removedMs,
    takingDown: goneMs - firstMs(callsDown),
  };
}

function firstMs(calls: readonly DriverCall[]): number {
  return Math.min(...calls.map(({ startMs }) => startMs));
}

function singlePod(parts: readonly Parts[]): SinglePod {
  const spread = (value: (one: Parts) => number): Spread => spreadOf(parts.map(value));
  return {
    total: spread(({ total }) => total),
    driver: spread(({ driver }) => driver),
    overhead: spread(({ total, driver }) => total - driver),
    before: spread(({ before }) => before),
    between: spread(({ between }) => between),
    after: spread(({ after }) => after),
    removal: spread(({ removal }) => removal),
    takingDown: spread(({ takingDown }) => takingDown),
  };
}
