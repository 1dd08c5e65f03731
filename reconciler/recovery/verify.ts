/** Belief against the kernel: what we thought mounted and is not, or is another, becomes unsure. Pure. */
import type { Failure } from '../../mount/failure.ts';
import type { MountEntry, MountTable } from '../../mount/mount-table.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { isDevice, stagingPathOf } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { PublicationKey, VolumeSpec } from '../../plugins/volume.ts';
import {
  type ActualPublication,
  type ActualVolume,
  isCovered,
  isCoverFailure,
  isMountLost,
  PRESENT,
  type Presence,
} from '../model/actual-state.ts';
import { type Ground, strangerFailure } from '../../mount/ground.ts';
import type { AbsolutePath, MountIdentity } from '../../mount/host.ts';
import { sightOf } from '../../mount/mount-sight.ts';
import type { ShownDevices } from './pod-device.ts';
import { lostSubpath } from './subpath-sight.ts';

const LOST: Failure = {
  code: 'mount-lost',
  message: 'the mount that was made here is gone or is another one now',
  effect: 'unknown',
};

/** The kernel does not show what was proven to be there once. */
export function mountLost(path: AbsolutePath): Presence {
  return { kind: 'unsure', because: { ...LOST, blocker: path } };
}

/** What keeps the number of a pod's device from any other device is gone; the pod has the device as before. */
export function holdLost(held: AbsolutePath): Presence {
  return { kind: 'unsure', because: holdFailure(held) };
}

export interface Loss {
  /** Undefined: it is the staged mount. */
  readonly publication: PublicationKey | undefined;
  readonly failure: Failure;
}

export interface Verified {
  /** The same object when nothing is lost, regained or learnt. */
  readonly volume: ActualVolume;
  readonly losses: readonly Loss[];
  /** What lay over something of it is gone: it is believed again, without a call. */
  readonly regained: boolean;
}

/**
 * Only mounts whose identity was noted are judged, and what lies over the directories of the others; of a block volume
 * also what the pod sees of it. What is proven is never given up for what one sees instead: under somebody else's mount
 * it is in doubt for as long as that lies there, and then it is what it was.
 */
export function verifyMounts(
  volume: ActualVolume,
  table: MountTable,
  shown: ShownDevices,
  layout: Layout,
  ground: Pick<Ground, 'strangerOver'>,
): Verified {
  const { spec } = volume;
  const losses: Loss[] = [];
  let regained = false;
  let doubted = volume;
  const judge = (
    presence: Presence,
    path: AbsolutePath,
    mount: MountIdentity | undefined,
    whenSeen: () => Failure | undefined,
  ): { readonly presence: Presence; readonly mount: MountIdentity | undefined } => {
    if (presence.kind !== 'present' && !isCovered(presence)) return { presence, mount };
    const found = lookAt(table, path, mount, ground);
    const failure = found.failure ?? whenSeen();
    if (failure === undefined) {
      regained ||= presence.kind !== 'present';
      return { presence: presence.kind === 'present' ? presence : PRESENT, mount: found.mount };
    }
    if (isCovered(presence) && isCoverFailure(failure)) return { presence, mount };
    return { presence: { kind: 'unsure', because: failure }, mount };
  };
  const staging = stagingPathOf(spec, layout);
  if (staging !== undefined && volume.stagedMount !== undefined) {
    const now = judge(volume.staged, staging, volume.stagedMount, () => undefined);
    if (now.presence !== volume.staged || now.mount !== volume.stagedMount)
      doubted = { ...doubted, staged: now.presence, stagedMount: now.mount };
    if (now.presence !== volume.staged && now.presence.kind === 'unsure')
      losses.push({ publication: undefined, failure: becauseOf(now.presence) });
  }
  const publications = new Map<PublicationKey, ActualPublication>(volume.publications);
  for (const [key, publication] of volume.publications) {
    const subpathLost = (): Failure | undefined => lostSubpath(table, publication.spec, layout);
    const mountPoint = layout.mountPoint(spec, publication.spec);
    const gone = volume.sickness === undefined ? undefined : lostInDoubt(publication, table, mountPoint);
    const now =
      traitsOf(spec).isInPlace === true || gone !== undefined
        ? { ...publication, presence: gone ?? unless(publication.presence, subpathLost()) }
        : judge(publication.presence, mountPoint, publication.mount, () => {
            return (
              deviceCovered(spec, publication, table, layout, ground) ??
              deviceLost(spec, publication, shown, layout) ??
              subpathLost()
            );
          });
    if (now.presence === publication.presence && now.mount === publication.mount) continue;
    publications.set(key, { ...publication, presence: now.presence, mount: now.mount });
    doubted = { ...doubted, publications };
    if (now.presence !== publication.presence && now.presence.kind === 'unsure')
      losses.push({ publication: key, failure: becauseOf(now.presence) });
  }
  return { volume: doubted, losses, regained };
}

/** What is in doubt of a dead volume is not proven by being there, but no pod has it any more when it is gone. */
function lostInDoubt(
  { presence, mount }: ActualPublication,
  table: MountTable,
  path: AbsolutePath,
): Presence | undefined {
  if (presence.kind !== 'unsure' || mount === undefined || isMountLost(presence)) return undefined;
  if (isCovered(presence) || sightOf(table, path, mount).kind !== 'gone') return undefined;
  return mountLost(path);
}

/** What is there for certain, unless something of it is lost. */
function unless(presence: Presence, lost: Failure | undefined): Presence {
  return presence.kind === 'present' && lost !== undefined ? { kind: 'unsure', because: lost } : presence;
}

function lookAt(
  table: MountTable,
  path: AbsolutePath,
  mount: MountIdentity | undefined,
  ground: Pick<Ground, 'strangerOver'>,
): { readonly failure: Failure | undefined; readonly mount: MountIdentity | undefined } {
  if (mount === undefined) {
    const stranger = ground.strangerOver(table, path);
    return { failure: stranger === undefined ? undefined : strangerFailure(path, stranger), mount };
  }
  const sight = sightOf(table, path, mount);
  if (sight.kind === 'seen') return { failure: undefined, mount: completed(mount, sight.entry, table, path) };
  if (sight.kind === 'covered') return { failure: strangerFailure(path, sight.by), mount };
  return { failure: { ...LOST, blocker: path }, mount };
}

/** With what the table tells, once it is read anyway. */
function completed(
  mount: MountIdentity,
  { root, fsType, parentId }: MountEntry,
  table: MountTable,
  path: AbsolutePath,
): MountIdentity {
  if (mount.root !== undefined) return mount;
  return { ...mount, root, fsType, parentId, depth: table.at(path).length };
}

function becauseOf(presence: Presence): Failure {
  return presence.kind === 'unsure' && typeof presence.because === 'object' ? presence.because : LOST;
}

/** The link of a block volume lies in the pod's directory, away from what is mounted. */
function deviceCovered(
  spec: VolumeSpec,
  { spec: place }: ActualPublication,
  table: MountTable,
  layout: Layout,
  ground: Pick<Ground, 'strangerOver'>,
): Failure | undefined {
  if (!isDevice(spec)) return undefined;
  const { link } = layout.devicePublication(spec, place);
  const stranger = ground.strangerOver(table, link);
  return stranger === undefined ? undefined : strangerFailure(link, stranger);
}

function holdFailure(held: AbsolutePath): Failure {
  const message = 'no loop device holds the pod’s device any more: its number may be given to another device';
  return { code: 'hold-lost', message, effect: 'unknown', blocker: held };
}

/** We hold the device that the pod was given; what its link leads to is the driver's. */
function deviceLost(
  volume: VolumeSpec,
  { spec, mount }: ActualPublication,
  shown: ShownDevices,
  layout: Layout,
): Failure | undefined {
  const { link, published, held } = layout.devicePublication(volume, spec);
  const given = mount?.blockDevice;
  const seen = shown.get(link);
  if (given === undefined || seen === undefined) return undefined;
  const { device: now, isHeld } = seen;
  if (now === given) return isHeld === false ? holdFailure(held) : undefined;
  const common = { effect: 'unknown', blocker: published } as const;
  return now === undefined
    ? {
        ...common,
        code: 'mount-lost',
        message: `the pod was given device ${given}, but its link ${link} leads to no device any more`,
      }
    : {
        ...common,
        code: 'device-changed',
        message: `the pod was given device ${given}, but its link ${link} leads to ${now} now`,
      };
}
