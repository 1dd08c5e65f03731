/**
 * Parts of volumes that pods want bound, and what must be true of the binds. Drawn from a stream of their own, and off
 * in most seeds, so that those of before keep their stories.
 */
import { type AbsolutePath, below, isBelow } from '../../mount/host.ts';
import { publicationKey } from '../../plugins/volume.ts';
import type { PodVolume, SimPod } from './manifests.ts';
import { placeIn } from './pod-volume.ts';
import type { Random } from './random.ts';
import type { Simulation } from './simulate.ts';

/** The path of the part, by the name of the volume. */
export type Subpaths = Readonly<Record<string, string>>;

const CONTAINER = 'main';
const SEEDS_SHARE = 0.3;
const MADE = 'part/deeper';
/** A file that every disk has. */
const OF_DISK = 'identity';

/** Probability that a volume has such a part; 0 in most seeds. */
export function drawSubpathShare(random: Random): number {
  return random.chance(SEEDS_SHARE) ? random.pick([0.3, 0.8]) : 0;
}

export function drawSubpaths(random: Random, share: number, volumes: readonly PodVolume[]): Subpaths {
  const drawn: Record<string, string> = {};
  for (const volume of volumes) {
    const path = partOf(volume);
    if (share > 0 && random.chance(share) && path !== undefined) drawn[volume.name] = path;
  }
  return drawn;
}

/** Files of disks and of what the wish brings, directories that are made elsewhere; undefined for devices. */
function partOf(volume: PodVolume): string | undefined {
  if (volume.kind === 'csi') return volume.disk.block || volume.disk.wishedBlock ? undefined : OF_DISK;
  if (volume.kind === 'inline' || volume.kind === 'image') return undefined;
  if (volume.kind === 'secret' || volume.kind === 'config-map') return Object.keys(volume.source.data)[0];
  return volume.kind === 'downward-api' || volume.kind === 'projected' ? 'name' : MADE;
}

/** The mounts of the pod's container, in their order: those of whole volumes first. */
export function mountsOf(pod: SimPod, whole: readonly PodVolume[]): readonly object[] {
  const parts = partsOf(pod).map(({ name, path }) => ({ name, mountPath: `/part/${name}`, subPath: path }));
  return [...whole.map(({ name }) => ({ name, mountPath: `/data/${name}` })), ...parts];
}

function partsOf({ volumes, subpaths }: SimPod): readonly { readonly name: string; readonly path: string }[] {
  return volumes.flatMap(({ name }) => {
    const path = subpaths[name];
    return path === undefined ? [] : [{ name, path }];
  });
}

export interface WantedBind {
  readonly target: AbsolutePath;
  readonly part: AbsolutePath;
}

/** Where a part of the volume has to be bound, and where the volume has it; undefined: no part of it is wanted. */
export function bindOf(sim: Simulation, pod: SimPod, volume: PodVolume): WantedBind | undefined {
  const path = pod.subpaths[volume.name];
  if (path === undefined) return undefined;
  const { layout } = sim.world;
  const isDevice = (one: PodVolume): boolean => one.kind === 'csi' && one.disk.wishedBlock;
  const whole = pod.volumes.filter((one) => !isDevice(one)).length;
  const index = whole + partsOf(pod).findIndex(({ name }) => name === volume.name);
  const target = layout.subpath(placeIn(pod, volume), { container: CONTAINER, index });
  const root = sim.world.targetOf(pod, volume) as AbsolutePath;
  return { target, part: below(root, ...path.split('/')) };
}

/** Is it what the volume has there now, seen once? */
export function bindDiffers(sim: Simulation, { target, part }: WantedBind): string | undefined {
  const stack = sim.kernel.mountsAt(target);
  if (stack.length !== 1) return `${target}: ${stack.length} layers mounted`;
  return stack[0]?.root === rootOfPart(sim, part)
    ? undefined
    : `${target}: something else than ${part} is bound`;
}

/** Files of the wish are links to those of their generation. */
function rootOfPart({ kernel }: Simulation, part: AbsolutePath): unknown {
  const at = kernel.walk(part);
  if (typeof at === 'string') return undefined;
  if (at.inode.kind !== 'symlink') return at.inode;
  const directory = part.slice(0, part.lastIndexOf('/')) as AbsolutePath;
  const data = kernel.walk(below(directory, '..data'));
  if (typeof data === 'string') return undefined;
  const name = at.inode.linkText.split('/').at(-1) ?? '';
  const file = kernel.walk(below(directory, data.inode.linkText, name));
  return typeof file === 'string' ? undefined : file.inode;
}

/** DL-04: before anything of a volume is taken down, what is bound of it has gone. */
export function checkBindsGone(sim: Simulation, what: string, path: string): void {
  const owner = sim.world.layout.ownerOf(path);
  if (owner?.kind !== 'volume') return;
  const directory = sim.world.layout.subpathDirectory({ pod: { uid: owner.pod }, specName: owner.specName });
  const left = sim.kernel
    .mounts()
    .find((mount) => isBelow(mount.target, directory) && !sim.kernel.strangers.has(mount));
  if (left !== undefined) sim.violate('DL-04', `${what} while ${left.target} is bound of it`);
}

/** It does not show any more what its pod wants there, and goes to be bound again. */
export function isStaleBind(sim: Simulation, path: string): boolean {
  for (const pod of sim.world.pods.values()) {
    for (const volume of pod.volumes) {
      const bind = bindOf(sim, pod, volume);
      if (bind?.target === path) return bindDiffers(sim, bind) !== undefined;
    }
  }
  return false;
}

/** Where the volume is mounted of which a part is bound at the path, as the agent knows it; undefined: no bind. */
export function volumeOfBind(sim: Simulation, path: string): string | undefined {
  const { layout } = sim.world;
  const owner = layout.ownerOf(path);
  if (owner?.kind !== 'subpath') return undefined;
  for (const { spec, publications } of sim.earlyView()?.reconciler.actual().values() ?? []) {
    const place = publications.get(publicationKey(owner.pod, owner.specName));
    if (place !== undefined) return layout.mountPoint(spec, place.spec);
  }
  return undefined;
}
