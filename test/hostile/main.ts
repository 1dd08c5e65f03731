/**
 * `npm run hostile [-- --minutes N] [--seed S]`: the shipped agent on the real kernel in a world that mounts over
 * everything, kills disks, answers late and lies about the manifests, drawn by chance; judged from outside.
 *
 * Exits 1 when something was believed that is not so, somebody's mount or data was taken away, or anything leaked. The
 * same seed draws the same happenings; what they meet depends on time, so a finding is seldom repeated to the letter.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { runInPrivateNamespace, storyArguments } from '../demo/private-namespace.ts';
import { createRandom } from '../sim/random.ts';
import { endLie, happen } from './happenings.ts';
import { HostileWorld } from './hostile-world.ts';
import { isMountPoint, kernelMounts, loopDevicesOf } from './kernel.ts';
import { HostileOracle } from './oracle.ts';

const { values: flags } = parseArgs({
  args: [...storyArguments()],
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
});
const SEED_MAX = 2 ** 31;
const seed = flags.seed === undefined ? randomInt(SEED_MAX) : Number(flags.seed);
const minutes = Number(flags.minutes);
const HAPPENS_EVERY_MS_MAX = 1_500;
const LOOK_EVERY_MS = 250;
const CONVERGE_MS = 240_000;
const LINES_SHOWN = 80;

process.exitCode = await runInPrivateNamespace({
  name: 'hostile',
  purpose: 'hostile',
  prepare: async () => undefined,
  tell: storm,
});

async function storm(scratch: string, interrupted: AbortSignal): Promise<number> {
  process.stdout.write(`hostile: ${minutes} minutes, seed ${seed}\n`);
  const lines: string[] = [];
  const startMs = performance.now();
  const tell = (line: string): void => {
    const text = `${((performance.now() - startMs) / 1_000).toFixed(2).padStart(8)} ${line}`;
    lines.push(text);
    if (flags.verbose) process.stderr.write(`${text}\n`);
  };
  const world = new HostileWorld({ scratch, random: createRandom(seed), tell, interrupted });
  const oracle = new HostileOracle(world);
  let happened = 0;
  try {
    await world.build();
    const untilMs = performance.now() + minutes * 60_000;
    let nextMs = 0;
    while (performance.now() < untilMs && oracle.findings.length === 0) {
      interrupted.throwIfAborted();
      if (performance.now() >= nextMs) {
        await happen(world);
        happened += 1;
        nextMs = performance.now() + world.random.below(HAPPENS_EVERY_MS_MAX);
      }
      await oracle.look();
      await sleep(LOOK_EVERY_MS);
    }
    if (oracle.findings.length === 0) await calm(world, oracle, interrupted);
  } catch (error) {
    if (interrupted.aborted) throw error;
    oracle.judgeWorld(error instanceof Error ? error.message : String(error));
  } finally {
    await world.close();
  }
  if (oracle.findings.length > 0) {
    process.stdout.write(
      `${lines.slice(-LINES_SHOWN).join('\n')}\n--- the agent's last words\n${world.log(LINES_SHOWN)}\n`,
    );
    process.stdout.write(`${oracle.findings.length} findings, the first: ${oracle.findings[0]}\n`);
    process.stdout.write(`again: npm run hostile -- --minutes ${minutes} --seed ${seed}\n`);
  }
  process.stdout.write(
    `hostile: seed ${seed}, ${happened} happenings, ${world.driver.calls} driver calls, ${oracle.checks} looks, ` +
      `${oracle.readies} times ready, ${oracle.findings.length} findings\n`,
  );
  return oracle.findings.length === 0 ? 0 : 1;
}

/** Everything is healed: what is wanted comes up, with all data; then it goes, and nothing is left anywhere. */
async function calm(world: HostileWorld, oracle: HostileOracle, interrupted: AbortSignal): Promise<void> {
  world.tell('the storm is over');
  world.driver.mood = () => ({ kind: 'good' });
  await endLie(world);
  for (const foreign of [...world.foreign].reverse()) await world.unmountForeign(foreign);
  for (const disk of world.disks) await disk.hang(false);
  await world.startAgent();
  replacePodsOfDead(world);
  const up = await until(world, interrupted, ({ pods, summary }) => {
    const wanted = [...world.wanted.keys()];
    const isReady = (uid: string): boolean => pods.find((one) => one.uid === uid)?.ready === true;
    return wanted.every(isReady) && pods.length === wanted.length && summary.operationsRunning === 0;
  });
  if (up !== undefined) return oracle.judgeConvergence(`not all that is wanted comes up: ${up}`);
  await oracle.judgeData();
  for (const uid of [...world.wanted.keys()]) world.podGoes(uid);
  const down = await until(
    world,
    interrupted,
    ({ pods, volumes }) => pods.length + volumes.length + world.driver.lateEffects() === 0,
  );
  if (down !== undefined) return oracle.judgeConvergence(`not all goes that nobody wants: ${down}`);
  oracle.judgeEnd([
    ...world.driver.remains(),
    ...kernelMounts()
      .filter(({ target }) => target.startsWith(`${world.root}/`))
      .map(({ target }) => `mount ${target}`),
    ...loopDevicesOf(world.scratch),
  ]);
}

/**
 * As the status tells the user to: who ran on a file system that died goes, and who is new to it must come up. Of one
 * that an agent of before gave it to nobody knows whether it ran.
 */
function replacePodsOfDead(world: HostileWorld): void {
  const dead = world.disks.filter(({ deadSinceMs }) => deadSinceMs !== undefined);
  for (const pod of [...world.wanted.values()]) {
    const { uid, handle, ran, sinceMs } = pod;
    const mayHaveRun = ran || (sinceMs < world.startedMs && isMountPoint(world.targetOf(pod)));
    if (!mayHaveRun || dead.every((disk) => disk.handle !== handle)) continue;
    world.podGoes(uid);
    world.tell(`${uid} goes, and for it ${world.podComes(handle)}`);
  }
}

/** Undefined when it came to hold; otherwise what the agent says is in the way. */
async function until(
  world: HostileWorld,
  interrupted: AbortSignal,
  holds: (status: StatusDocument) => boolean,
): Promise<string | undefined> {
  const endMs = performance.now() + CONVERGE_MS;
  let last: StatusDocument | undefined;
  while (performance.now() < endMs) {
    interrupted.throwIfAborted();
    await world.unmountForeignLeft();
    last = (await world.status()) ?? last;
    if (last !== undefined && holds(last)) return undefined;
    await sleep(LOOK_EVERY_MS);
  }
  const reasons = (last?.pods ?? []).flatMap(({ name, volumes }) =>
    volumes.flatMap(({ state, reason, name: volume }) =>
      state === 'mounted'
        ? []
        : [`${name}/${volume} is ${state}: ${reason?.code ?? 'no reason'}: ${reason?.message ?? ''}`],
    ),
  );
  const volumes = (last?.volumes ?? []).map(
    ({ id, rungs, reason }) =>
      `${id} ${JSON.stringify(rungs)} ${reason?.code ?? ''} ${reason?.message ?? ''}`,
  );
  return [...reasons, ...volumes].slice(0, 12).join('; ') || 'nothing says why';
}
