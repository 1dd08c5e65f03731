/** Belief against the kernel: what we thought mounted and is not, or is another, becomes unsure. Pure. */
import type { Failure } from '../mount/failure.ts';
import type { MountTable } from '../mount/mount-table.ts';
import type { Layout } from '../plugins/layout.ts';
import type { PublicationKey } from '../plugins/volume.ts';
import type { ActualPublication, ActualVolume } from './actual-state.ts';
import { isMountedAs } from './recover.ts';
import type { ShownDevices } from './shown-device.ts';

const LOST: Failure = {
  code: 'mount-lost',
  message: 'the mount that was made here is gone or is another one now',
  effect: 'unknown',
};

export interface Loss {
  /** Undefined: it is the staged mount. */
  readonly publication: PublicationKey | undefined;
  readonly failure: Failure;
}

export interface Verified {
  /** The same object when nothing is lost. */
  readonly volume: ActualVolume;
  readonly losses: readonly Loss[];
}

/** Only mounts whose identity was noted are judged; of a block volume also what the pod sees of it. */
export function verifyMounts(
  volume: ActualVolume,
  table: MountTable,
  shown: ShownDevices,
  layout: Layout,
): Verified {
  const { spec } = volume;
  const losses: Loss[] = [];
  let doubted = volume;
  if (spec.kind === 'csi' && volume.staged.kind === 'present' && volume.stagedMount !== undefined) {
    const staging = layout.stagingPath(spec);
    if (!isMountedAs(table, staging, volume.stagedMount)) {
      doubted = { ...doubted, staged: { kind: 'unsure', because: LOST } };
      losses.push({ publication: undefined, failure: { ...LOST, blocker: staging } });
    }
  }
  const publications = new Map<PublicationKey, ActualPublication>(volume.publications);
  for (const [key, publication] of volume.publications) {
    if (publication.presence.kind !== 'present' || publication.mount === undefined) continue;
    const mountPoint = layout.mountPoint(spec, publication.spec);
    const failure = isMountedAs(table, mountPoint, publication.mount)
      ? deviceLost(publication, shown, layout)
      : { ...LOST, blocker: mountPoint };
    if (failure === undefined) continue;
    losses.push({ publication: key, failure });
    publications.set(key, { ...publication, presence: { kind: 'unsure', because: failure } });
    doubted = { ...doubted, publications };
  }
  return { volume: doubted, losses };
}

/** We hold the device that the pod was given; what its link leads to is the driver's. */
function deviceLost(
  { spec, mount }: ActualPublication,
  shown: ShownDevices,
  layout: Layout,
): Failure | undefined {
  const { link, published } = layout.blockPublication(spec);
  const given = mount?.blockDevice;
  const now = shown.get(link);
  if (given === undefined || !shown.has(link) || now === given) return undefined;
  const common = { effect: 'unknown', blocker: published } as const;
  return now === undefined
    ? {
        ...common,
        code: 'mount-lost',
        message: `device ${given} is held, but the pod’s link ${link} leads to no device any more`,
      }
    : {
        ...common,
        code: 'device-changed',
        message: `the pod was given device ${given}, but its link ${link} leads to ${now} now`,
      };
}
