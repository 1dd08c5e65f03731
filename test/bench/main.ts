/**
 * `npm run bench [-- --short] [-- --json FILE]`: what Mooring costs on this machine, measured from outside at the
 * programs that are shipped. Prints a table and then one JSON document; with `--json` the document goes to the file.
 * In its place `--beside-kubelet [--rounds N]`, `--cluster [--pods N] [--reach watch]`, `--growth` or
 * `--cpu-prof DIR`, which print a table, or with `-o json` one document (docs/PERFORMANCE.md).
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DEFAULT_MANIFEST_LIMITS } from '../../agent/source/manifests/parse/manifest-limits.ts';
import { AGENT_BUNDLE, prepareBundles } from '../demo/bundles.ts';
import { runCommand } from '../demo/child-process.ts';
import { mountsBelow, unmountAll } from '../demo/machine.ts';
import { runInPrivateNamespace, storyArguments } from '../demo/private-namespace.ts';
import { figureTable } from './figure-table.ts';
import { groupsOf, machineFacts, type Measured } from './figures.ts';
import { measureBaseline } from './measure-baseline.ts';
import { measureBeside } from './measure-foreign.ts';
import { measureLoopStop } from './measure-manifests.ts';
import { measureMounting } from './measure-mounting.ts';
import { measureFullNode, measureLoopfile } from './measure-node.ts';
import { measureRestart, measureScale } from './measure-scale.ts';
import { measureSpecial, prepareSpecial, specialOf } from './special.ts';
import { createWorld, type World } from './world.ts';

interface Extent {
  readonly baselineRepeats: number;
  readonly singleRepeats: number;
  readonly many: readonly (readonly [pods: number, times: number])[];
  readonly idleSeconds: number;
  readonly scale: readonly number[];
  readonly hostile: number;
  readonly good: number;
  readonly foreign: number;
}

const FULL: Extent = {
  baselineRepeats: 60,
  singleRepeats: 30,
  many: [
    [10, 10],
    [100, 3],
  ],
  idleSeconds: 30,
  scale: [0, 500, 5_000],
  hostile: 100,
  good: 200,
  foreign: 30_000,
};
const SHORT: Extent = {
  baselineRepeats: 20,
  singleRepeats: 12,
  many: [
    [10, 3],
    [100, 1],
  ],
  idleSeconds: 5,
  scale: [0, 200],
  hostile: 25,
  good: 50,
  foreign: 3_000,
};

const { values: flags } = parseArgs({
  args: [...storyArguments()],
  options: {
    short: { type: 'boolean', default: false },
    json: { type: 'string' },
    'beside-kubelet': { type: 'boolean', default: false },
    rounds: { type: 'string', default: '3' },
    growth: { type: 'boolean', default: false },
    'cpu-prof': { type: 'string' },
    cluster: { type: 'boolean', default: false },
    pods: { type: 'string', default: '100' },
    reach: { type: 'string', default: 'get' },
    output: { type: 'string', short: 'o', default: 'table' },
  },
});
const special = specialOf({
  ...flags,
  besideKubelet: flags['beside-kubelet'],
  cpuProf: flags['cpu-prof'],
});

process.exitCode = await runInPrivateNamespace({
  name: 'bench',
  purpose: 'bench',
  prepare: async () =>
    (await prepareBundles()) ?? (special === undefined ? undefined : prepareSpecial(special)),
  tell: (scratch, interrupted) =>
    special === undefined ? measureAll(scratch, interrupted) : measureSpecial(special, scratch, interrupted),
});

async function measureAll(scratch: string, interrupted: AbortSignal): Promise<number> {
  const worlds: World[] = [];
  let measured: Measured | undefined;
  try {
    measured = await measure(scratch, flags.short ? SHORT : FULL, worlds, interrupted);
  } catch (error) {
    const reason = interrupted.aborted ? interrupted.reason : error;
    process.stderr.write(
      `\nThe bench stopped: ${reason instanceof Error ? reason.message : String(reason)}\n`,
    );
    if (!interrupted.aborted) for (const { log } of worlds) process.stderr.write(`${log.lastLines()}\n`);
  } finally {
    for (const world of worlds) await world.close();
    await unmountAll([...mountsBelow(scratch)].reverse());
  }
  return measured === undefined ? 1 : report(measured);
}

async function measure(
  scratch: string,
  extent: Extent,
  worlds: World[],
  interrupted: AbortSignal,
): Promise<Measured> {
  const startMs = performance.now();
  const stage = async <T>(what: string, act: () => Promise<T>): Promise<T> => {
    process.stderr.write(`${((performance.now() - startMs) / 1_000).toFixed(1).padStart(6)} s  ${what}\n`);
    return act();
  };
  const world = async (name: string, stages: boolean): Promise<World> => {
    const directory = join(scratch, name);
    mkdirSync(directory, { mode: 0o700 });
    const created = await createWorld({ directory, interrupted, stage: stages });
    worlds.push(created);
    return created;
  };
  const last = extent.scale.at(-1) ?? 0;
  const product: unknown = JSON.parse((await runCommand([AGENT_BUNDLE, 'version', '-o', 'json'])).output);

  const baseline = await stage('the machine itself', () => measureBaseline(scratch, extent.baselineRepeats));
  const small = await stage('start an agent', () => world('a', true));
  const mounting = await stage('pods seen -> published', () =>
    measureMounting(small, extent.singleRepeats, extent.many),
  );
  const full = await stage(`a full node, and ${extent.idleSeconds} s idle`, () =>
    measureFullNode(small, extent.idleSeconds),
  );
  const loopfile = await stage('loopfile volumes', () => measureLoopfile(small));
  await small.close();
  const large = await stage('start an agent for many volumes', () => world('b', false));
  const scale = await stage(`memory with ${extent.scale.join(', ')} volumes`, () =>
    measureScale(large, extent.scale),
  );
  const restart = await stage('restart', () => measureRestart(large, last));
  await stage('clean up', () => large.close());
  const loopStop = await stage(`${extent.hostile} hostile manifests`, () =>
    measureLoopStop({
      directory: join(scratch, 'c'),
      hostile: extent.hostile,
      hostileBytes: DEFAULT_MANIFEST_LIMITS.fileBytesMax,
      good: extent.good,
      interrupted,
    }),
  );
  const besides = await stage('start an agent beside others', () => world('d', false));
  const beside = await stage(`${extent.foreign} mounts of others`, () =>
    measureBeside(besides, extent.foreign),
  );
  await besides.close();
  const failures = worlds.flatMap(({ log }) => log.failures());
  const seconds = (performance.now() - startMs) / 1_000;
  return {
    product,
    short: flags.short,
    seconds,
    baseline,
    mounting,
    ...full,
    loopfile,
    scale,
    restart,
    loopStop,
    beside,
    failures,
  };
}

function report(measured: Measured): number {
  const groups = groupsOf(measured);
  process.stdout.write(`${figureTable(groups)}\n\n`);
  const document = JSON.stringify(
    { ...measured, machine: machineFacts(), at: new Date().toISOString(), groups },
    null,
    2,
  );
  if (flags.json === undefined) process.stdout.write(`${document}\n`);
  else writeFileSync(flags.json, `${document}\n`);
  const missed = groups.flatMap(({ figures }) => figures).filter(({ target }) => target?.met === false);
  for (const { title, target } of missed) process.stderr.write(`MISSED: ${title.trim()} ${target?.text}\n`);
  const { failures } = measured;
  if (failures.length > 0)
    process.stderr.write(`${failures.length} operations failed and were repeated: ${failures[0]}\n`);
  return missed.some(({ target }) => target?.kind === 'count') ? 1 : 0;
}
