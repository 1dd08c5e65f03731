/**
 * Volumes of kind local: directories and disks of the machine that pods share, and what must be true of them when all
 * is healed. Drawn from a stream of their own, and off in most seeds, so that those of before keep their stories.
 */
import { type AbsolutePath, below, type DeviceNumber } from '../../mount/host.ts';
import { temporaryPath } from '../../mount/temporary-file.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { type Inode, inodesOf } from './file-tree.ts';
import { NAMESPACE, NODE_NAME, type SimPod } from './manifests.ts';
import type { Random } from './random.ts';
import type { SimKernel } from './sim-kernel.ts';
import { HOST_DATA } from './sim-paths.ts';
import type { Simulation } from './simulate.ts';
import type { Plan } from './swarm.ts';

export interface LocalVolume {
  readonly kind: 'local';
  /** The volume's name in the pod. */
  readonly name: string;
  /** The PersistentVolume's, and that of its directory. */
  readonly specName: string;
  readonly readOnly: boolean;
}

export interface LocalsPlan {
  /** Probability that a pod has such a volume. */
  readonly share: number;
  /** Probability that such a volume is the device of a disk. */
  readonly devices: number;
}

export const NO_LOCALS: LocalsPlan = { share: 0, devices: 0 };

/** The share of the seeds that have such volumes. */
const SEEDS_SHARE = 0.3;
const DIRECTORIES = ['local-1', 'local-2'] as const;
/** A disk that is blank at first; its node lies where the directories do. */
const DISK = 'local-disk';
/** No disk of a driver has it. */
const DISK_NUMBER = '259:7' as DeviceNumber;
const SPEC_NAMES = [...DIRECTORIES, DISK] as const;
/** A disk that pods have as it is. */
const RAW = 'local-raw';
const RAW_NUMBER = '259:8' as DeviceNumber;
/** The share of the seeds with local volumes in which that disk is one of them, drawn from a stream of its own. */
const RAW_SEEDS_SHARE = 0.4;
/** What is in each directory, as the administrator left it. */
const CONTENT = 'identity';
/** Made after the walk; that setgid gives it the group is not simulated. */
const MADE_PART: readonly string[] = ['part', 'deeper'];

export function withLocals(plan: Plan, random: Random): Plan {
  return random.chance(SEEDS_SHARE)
    ? { ...plan, locals: { ...plan.locals, share: random.pick([0.4, 0.8]) } }
    : plan;
}

export function withLocalDevices(plan: Plan, random: Random): Plan {
  if (!random.chance(RAW_SEEDS_SHARE) || plan.locals.share === 0) return plan;
  return { ...plan, locals: { ...plan.locals, devices: random.pick([0.3, 0.7]) } };
}

export function asDevice(volume: LocalVolume): LocalVolume {
  return { ...volume, specName: RAW };
}

/** Pods have the device and not files. */
export function isLocalDevice({ specName }: Pick<LocalVolume, 'specName'>): boolean {
  return specName === RAW;
}

export function drawLocalVolume(random: Random, name: string): LocalVolume {
  return { kind: 'local', name, specName: random.pick(SPEC_NAMES), readOnly: random.chance(0.2) };
}

function pathOf({ specName }: Pick<LocalVolume, 'specName'>): AbsolutePath {
  return below(HOST_DATA, specName);
}

/** A part that there is, or that is made; undefined: neither. */
export function partOfLocal({ specName, readOnly }: LocalVolume): string | undefined {
  if (specName === RAW) return undefined;
  if (specName !== DISK) return CONTENT;
  return readOnly ? undefined : MADE_PART.join('/');
}

/** Where it is staged; undefined: it is a directory. */
export function localStageOf(layout: Layout, { specName }: LocalVolume): AbsolutePath | undefined {
  return specName === DISK ? layout.localStage(specName) : undefined;
}

export function intentsOf(layout: Layout): readonly AbsolutePath[] {
  const intent = layout.formatIntent(DISK);
  return [intent, temporaryPath(intent)];
}

/** The root of its files. */
function rootOf(kernel: SimKernel, volume: Pick<LocalVolume, 'specName'>): Inode | undefined {
  const path = pathOf(volume);
  const content = kernel.localDisks.at(path)?.content;
  if (content !== undefined) return typeof content === 'string' ? undefined : content.root;
  const at = kernel.walk(path);
  return typeof at === 'string' ? undefined : at.inode;
}

export function installLocals(kernel: SimKernel, { devices }: LocalsPlan): void {
  for (const specName of DIRECTORIES) {
    const directory = pathOf({ specName });
    kernel.makeDirectory(directory, 0o755);
    kernel.makeFile(below(directory, CONTENT), Buffer.from(specName), 0o644);
  }
  const disk = kernel.localDisks.add(pathOf({ specName: DISK }));
  kernel.makeDeviceNode(disk.path, DISK_NUMBER);
  if (devices > 0) {
    kernel.devices.addFixed(RAW_NUMBER, RAW);
    kernel.makeDeviceNode(pathOf({ specName: RAW }), RAW_NUMBER);
  }
  kernel.synchronise(HOST_DATA);
}

export function localObjects({ devices }: LocalsPlan): readonly object[] {
  const names = devices > 0 ? [...SPEC_NAMES, RAW] : SPEC_NAMES;
  return names.flatMap((name) => {
    const accessModes = ['ReadWriteMany'];
    const mode = name === RAW ? { volumeMode: 'Block' } : {};
    const here = { key: 'kubernetes.io/hostname', operator: 'In', values: [NODE_NAME] };
    const volume = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        capacity: { storage: '1Gi' },
        ...mode,
        accessModes,
        claimRef: { namespace: NAMESPACE, name: claimOf(name) },
        local: { path: pathOf({ specName: name }) },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [here] }] } },
      },
    };
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: claimOf(name), namespace: NAMESPACE },
      spec: { ...mode, accessModes, volumeName: name, resources: { requests: { storage: '1Gi' } } },
    };
    return [volume, claim];
  });
}

export function localSource({ specName, readOnly }: LocalVolume): object {
  return { persistentVolumeClaim: { claimName: claimOf(specName), readOnly } };
}

function claimOf(specName: string): string {
  return `claim-${specName}`;
}

/** The directory itself, once, read-only where that is wished, and with a group all files have it. */
export function localDiffers(
  { kernel }: Simulation,
  pod: SimPod,
  volume: LocalVolume,
  target: string,
): string | undefined {
  if (isLocalDevice(volume)) return localDeviceDiffers(kernel, target);
  const stack = kernel.mountsAt(target);
  const only = stack.at(-1);
  if (only === undefined || stack.length > 1) return `${stack.length} layers mounted`;
  const root = rootOf(kernel, volume);
  if (root === undefined || only.root !== root) return 'something else than the volume is mounted';
  if (only.options.includes('ro') !== volume.readOnly)
    return `mounted ${only.options.join()}, wished read-only ${volume.readOnly}`;
  if (pod.fsGroup === undefined || volume.readOnly) return undefined;
  const { gid } = root;
  const other = inodesOf(root).find((inode) => inode.gid !== gid && !MADE_PART.includes(inode.name));
  return other === undefined ? undefined : `"${other.name}" has the group ${other.gid}, not ${gid}`;
}

/** The pod's link leads to the disk, which is bound to a place of ours and held open there. */
function localDeviceDiffers(kernel: SimKernel, link: string): string | undefined {
  const at = kernel.walk(link as AbsolutePath);
  if (typeof at === 'string' || at.inode.kind !== 'symlink') return 'there is no link';
  const held = at.inode.linkText as AbsolutePath;
  const device = kernel.deviceOf(held);
  if (device !== RAW_NUMBER) return `the link leads to ${device ?? 'no device'}`;
  const layers = kernel.mountsAt(held).length;
  return layers === 1 ? undefined : `${layers} layers mounted at ${held}`;
}

/** Where nothing is when no pod has a device of this kind. */
export function isOfLocalDevices({ localDevices, podFolders }: Layout, path: string): boolean {
  const links = podFolders('any').localLinks.split('/').slice(-2).join('/');
  return path === localDevices || path.endsWith(`/${links}`);
}

/** What is to be held open of it; undefined: it is no device. */
export function heldOf(volume: Pick<LocalVolume, 'specName'>): DeviceNumber | undefined {
  return isLocalDevice(volume) ? RAW_NUMBER : undefined;
}

/** DL-01: nothing is made in a directory but what pods ask for, and nothing of it goes. */
export function localLost({ kernel, plan }: Simulation): string | undefined {
  for (const specName of plan.locals.share > 0 ? DIRECTORIES : []) {
    const entries = rootOf(kernel, { specName })?.entries;
    if (entries === undefined) return `${specName}: the directory is gone`;
    const content = entries.get(CONTENT)?.content ?? new Uint8Array();
    if (Buffer.from(content).toString() !== specName) return `${specName}: its data is gone`;
    if (entries.size > 1) return `${specName}: ${[...entries.keys()].join()} are in it`;
  }
  return undefined;
}
