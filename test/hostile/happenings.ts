/** What happens to a node, one thing at a time, drawn by chance. Each says what it did, or nothing if it could not. */
import { join } from 'node:path';
import type { CallMood } from './hostile-driver.ts';
import type { HostileWorld } from './hostile-world.ts';

type Happening = (world: HostileWorld) => Promise<string | undefined> | string | undefined;

const PODS_MAX = 8;
const FOREIGN_MAX = 3;
const LATE_MS_MAX = 25_000;
const LIE_MS_MIN = 3_000;
const LIE_MS_MAX = 8_000;

const HAPPENINGS: readonly (readonly [weight: number, Happening])[] = [
  [10, (world) => (world.wanted.size < PODS_MAX && !hidesManifests(world) ? world.podComes() : undefined)],
  [7, podGoes],
  [4, foreignMount],
  [1, (world) => mountOver(world, join(world.root, 'pods'))],
  [1, (world) => mountOver(world, join(world.root, 'plugins/kubernetes.io'))],
  [4, foreignUnmount],
  [4, diskDies],
  [2, diskHangs],
  [5, moodTurns],
  [3, agentCrashes],
  [1, manifestsLie],
];

export async function happen(world: HostileWorld): Promise<void> {
  const { random } = world;
  let left = random.next() * HAPPENINGS.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, act] of HAPPENINGS) {
    left -= weight;
    if (left >= 0) continue;
    const what = await act(world);
    if (what !== undefined) world.tell(what);
    return;
  }
}

function podGoes(world: HostileWorld): string | undefined {
  if (hidesManifests(world)) return undefined;
  const uids = [...world.wanted.keys()];
  if (uids.length < 2) return undefined;
  const uid = world.random.pick(uids);
  world.podGoes(uid);
  return `${uid} goes`;
}

function foreignMount(world: HostileWorld): Promise<string | undefined> | undefined {
  const paths = world.coverable();
  return paths.length === 0 ? undefined : mountOver(world, world.random.pick(paths));
}

async function mountOver(world: HostileWorld, path: string): Promise<string | undefined> {
  return world.foreign.length < FOREIGN_MAX ? world.mountForeign(path) : undefined;
}

async function foreignUnmount(world: HostileWorld): Promise<string | undefined> {
  const own = world.foreign.filter((one) => !one.hidesManifests);
  // Where one covers another, the later one goes first.
  const last = own.at(-1);
  if (last !== undefined) await world.unmountForeign(last);
  return undefined;
}

function diskDies(world: HostileWorld): Promise<string | undefined> {
  return world.random.pick(world.disks).die();
}

async function diskHangs(world: HostileWorld): Promise<string | undefined> {
  const disk = world.random.pick(world.disks);
  if (disk.kind !== 'fuse') return undefined;
  await disk.hang(!disk.isHung);
  return `${disk.handle} ${disk.isHung ? 'hangs' : 'answers again'}`;
}

function moodTurns(world: HostileWorld): string {
  const { random, driver } = world;
  const moods: readonly CallMood['kind'][] = ['good', 'good', 'busy', 'lost', 'late', 'silent'];
  const share = random.pick([0.1, 0.3, 0.6]);
  const kind = random.pick(moods);
  const draw = random.fork();
  driver.mood = () => {
    if (kind === 'good' || !draw.chance(share)) return { kind: 'good' };
    if (kind === 'busy' || kind === 'lost') return { kind };
    return { kind, afterMs: draw.between(1_000, LATE_MS_MAX) };
  };
  return `the driver is ${kind} in ${share} of its calls`;
}

async function agentCrashes(world: HostileWorld): Promise<string | undefined> {
  await world.endAgent('SIGKILL');
  // While it sleeps, the world goes on.
  for (let times = world.random.below(4); times > 0; times -= 1) {
    const what = await world.random.pick([foreignMount, foreignUnmount, diskDies, moodTurns])(world);
    if (what !== undefined) world.tell(`meanwhile: ${what}`);
  }
  if (world.random.chance(0.4)) {
    const what = await manifestsLie(world);
    if (what !== undefined) world.tell(`meanwhile: ${what}`);
  }
  await world.startAgent();
  return undefined;
}

/** For a while the directory does not say what is wished: empty, or another file system in its place. */
async function manifestsLie(world: HostileWorld): Promise<string | undefined> {
  if (world.areManifestsAway || hidesManifests(world)) return undefined;
  const forMs = world.random.between(LIE_MS_MIN, LIE_MS_MAX);
  const isCovered = world.random.chance(0.5);
  if (isCovered) await world.mountForeign(world.manifests);
  else if (world.isAgentUp) return undefined;
  else world.takeManifestsAway();
  setTimeout(() => void endLie(world), forMs);
  return `the manifests are ${isCovered ? 'covered' : 'gone'} for ${forMs} ms`;
}

export async function endLie(world: HostileWorld): Promise<void> {
  if (world.areManifestsAway) world.bringManifestsBack();
  const covering = world.foreign.find((one) => one.hidesManifests);
  if (covering !== undefined) await world.unmountForeign(covering);
}

function hidesManifests(world: HostileWorld): boolean {
  return world.foreign.some((one) => one.hidesManifests);
}
