/** Belief against the kernel's table: what we thought mounted and is not, or is another, becomes unsure. Pure. */
import type { Failure } from '../mount/failure.ts';
import type { MountTable } from '../mount/mount-table.ts';
import type { Layout } from '../plugins/layout.ts';
import type { PublicationKey } from '../plugins/volume.ts';
import type { ActualPublication, ActualVolume } from './actual-state.ts';
import { isMountedAs } from './recover.ts';

const LOST: Failure = {
  code: 'mount-lost',
  message: 'the mount that was made here is gone or is another one now',
  effect: 'unknown',
};

/** The same object when nothing is lost. Only mounts whose identity was noted are judged. */
export function lostMounts(volume: ActualVolume, table: MountTable, layout: Layout): ActualVolume {
  const { spec } = volume;
  let doubted = volume;
  if (spec.kind === 'csi' && volume.staged.kind === 'present' && volume.stagedMount !== undefined) {
    const staging = layout.stagingPath(spec);
    if (!isMountedAs(table, staging, volume.stagedMount)) {
      doubted = { ...doubted, staged: { kind: 'unsure', because: LOST } };
    }
  }
  const publications = new Map<PublicationKey, ActualPublication>(volume.publications);
  for (const [key, publication] of volume.publications) {
    if (publication.presence.kind !== 'present' || publication.mount === undefined) continue;
    if (isMountedAs(table, layout.mountPoint(spec, publication.spec), publication.mount)) continue;
    publications.set(key, { ...publication, presence: { kind: 'unsure', because: LOST } });
    doubted = { ...doubted, publications };
  }
  return doubted;
}
