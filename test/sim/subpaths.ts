/**
 * Parts of volumes that pods want bound, and what must be true of the binds. Drawn from a stream of their own, and off
 * in most seeds, so that those of before keep their stories.
 */
import { type AbsolutePath, below, isBelow } from '../../mount/host.ts';
import { type PodUid, publicationKey } from '../../plugins/volume.ts';
import type { Inode } from './file-tree.ts';
import { isLocalDevice, partOfLocal } from './local-volumes.ts';
import type { PodVolume, SimPod } from './manifests.ts';
import { placeIn } from './pod-volume.ts';
import type { Random } from './random.ts';
import type { Mount } from './sim-kernel.ts';
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
  if (volume.kind === 'local') return partOfLocal(volume);
  if (volume.kind === 'nfs') return OF_DISK;
  // A disk that is blank at first has nothing.
  if (volume.kind === 'iscsi') return undefined;
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
  return volumes.flatMap((volume) => {
    const path = subpaths[volume.name];
    return path === undefined || isDevice(volume) ? [] : [{ name: volume.name, path }];
  });
}

/** By the wish of now: a disk may become one while pods have it, and has no parts then. */
function isDevice(volume: PodVolume): boolean {
  if (volume.kind === 'local') return isLocalDevice(volume);
  return volume.kind === 'csi' && volume.disk.wishedBlock;
}

/** What it was made as stands until no pod has it. */
function isStillDevice(volume: PodVolume): boolean {
  return volume.kind === 'csi' && volume.disk.block;
}

export interface WantedBind {
  readonly target: AbsolutePath;
  readonly part: AbsolutePath;
}

/** Where a part of the volume has to be bound, and where the volume has it; undefined: no part of it is wanted. */
export function bindOf(sim: Simulation, pod: SimPod, volume: PodVolume): WantedBind | undefined {
  const path = pod.subpaths[volume.name];
  if (path === undefined || isDevice(volume) || isStillDevice(volume)) return undefined;
  const { layout } = sim.world;
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

/**
 * DL-04: before anything of a volume is taken down, what is bound of it has gone. What is bound of another volume of
 * the same name stays.
 */
export function checkBindsGone(sim: Simulation, what: string, path: string): void {
  const owner = sim.world.layout.ownerOf(path);
  if (owner?.kind !== 'volume') return;
  const directory = sim.world.layout.subpathDirectory({ pod: { uid: owner.pod }, specName: owner.specName });
  const others = placesOf(sim, owner).filter(
    (one) => one.path !== path && !isBelow(one.path, path as AbsolutePath),
  );
  const left = sim.kernel.mounts().find((mount) => {
    if (!isBelow(mount.target, directory) || sim.kernel.strangers.has(mount)) return false;
    return (
      isPartOf(sim, mount, path as AbsolutePath) || !others.some((one) => isPartOf(sim, mount, one.path))
    );
  });
  if (left !== undefined) sim.violate('DL-04', `${what} while ${left.target} is bound of it`);
}

interface BindOwner {
  readonly pod: PodUid;
  readonly specName: string;
}

interface KnownPlace {
  readonly path: AbsolutePath;
  readonly handle: string | undefined;
}

/** Where volumes of this name are in the pod, as the agent knows them. */
function placesOf(sim: Simulation, { pod, specName }: BindOwner): readonly KnownPlace[] {
  const { layout } = sim.world;
  const known = [...(sim.earlyView()?.reconciler.actual().values() ?? [])];
  return known.flatMap(({ spec, publications }): readonly KnownPlace[] => {
    const place = publications.get(publicationKey(pod, specName));
    if (place === undefined || (spec.kind === 'orphan' && layout.ownerOf(spec.path)?.kind === 'subpath'))
      return [];
    const handle = spec.kind === 'csi' ? spec.volumeHandle : undefined;
    return [{ path: layout.mountPoint(spec, place.spec), handle }];
  });
}

/** Is what is mounted in the tree that one sees at the path? */
function isPartOf({ kernel }: Simulation, mount: Mount, path: AbsolutePath): boolean {
  const place = kernel.walk(path);
  if (typeof place === 'string') return false;
  for (let at: Inode | undefined = mount.root; at !== undefined; at = at.parent)
    if (at === place.inode) return true;
  return false;
}

/**
 * It may go though its pod is wanted: the pod wants no part there, because its manifest changed, or it does not show
 * any more what the pod wants, and goes to be bound again.
 */
export function isStaleBind(sim: Simulation, path: string): boolean {
  const owner = sim.world.layout.ownerOf(path);
  const pods = [...sim.world.pods.values()];
  const pod = owner?.kind === 'subpath' ? pods.find(({ uid }) => uid === owner.pod) : undefined;
  if (owner?.kind !== 'subpath') return false;
  if (pod === undefined)
    return isUnwantedPart(sim, owner, path) || isOfOldContent(sim, owner, path as AbsolutePath);
  const binds = pod.volumes.map((volume) => bindOf(sim, pod, volume));
  const bind = binds.find((one) => one?.target === path);
  return bind === undefined || bindDiffers(sim, bind) !== undefined;
}

/** The last manifest of a pod that was replaced a moment ago, as far as the agent has read, has no part there. */
function isUnwantedPart(sim: Simulation, owner: BindOwner, path: string): boolean {
  const volumes = [...(sim.view()?.reconciler.desired().volumes.values() ?? [])];
  const places = volumes.flatMap(({ publications }) => [...publications.values()].map(({ spec }) => spec));
  const ofPod = places.filter(({ pod }) => pod.uid === owner.pod);
  const parts = ofPod.flatMap((place) =>
    (place.subpaths ?? []).map((one) => sim.world.layout.subpath(place, one)),
  );
  return ofPod.length > 0 && !parts.some((one) => one === path);
}

/** A pod that vanished is refreshed as well: it shows what its volume has not any more. */
function isOfOldContent(sim: Simulation, owner: BindOwner, path: AbsolutePath): boolean {
  const mount = sim.kernel.mountsAt(path).at(-1);
  return mount !== undefined && !placesOf(sim, owner).some((one) => isPartOf(sim, mount, one.path));
}

/**
 * Where the volume is mounted of which a part is bound at the path, as the agent knows it, and its handle if a driver
 * has it; undefined: no bind, or of nothing that is known.
 */
export function volumeOfBind(sim: Simulation, path: string): KnownPlace | undefined {
  const owner = sim.world.layout.ownerOf(path);
  if (owner?.kind !== 'subpath') return undefined;
  const places = placesOf(sim, owner);
  const mount = sim.kernel.mountsAt(path as AbsolutePath).at(-1);
  return places.find((one) => mount !== undefined && isPartOf(sim, mount, one.path)) ?? places[0];
}
