/** What a walk that was cut short leaves: files of two groups, and other pods that have them. Pure. */
import type { Failure, FailureCode } from '../../mount/failure.ts';
import type { PublicationSpec } from '../../plugins/volume.ts';
import { type ActualPublication, type ActualVolume, isCovered } from './actual-state.ts';

/**
 * A place is down that was never surely there: its walk may have ended half-way. Of the pods that have the volume with
 * another group one gets it back whole: its place is unsure, so it is published and walked again. It is the last of
 * them, as the last one to come has the volume when all goes well. Nothing is done about a dead file system: no walk
 * could, and the pods that have it keep their places.
 */
export function doubtGroups(now: ActualVolume, gone: ActualPublication | undefined): ActualVolume {
  const taken = gone?.presence.kind === 'unsure' ? groupOf(gone.spec) : undefined;
  if (taken === undefined || now.sickness !== undefined) return now;
  const robbed = [...now.publications.values()].findLast(({ presence, spec }) => {
    const gid = groupOf(spec);
    return presence.kind === 'present' && gid !== undefined && gid !== taken;
  });
  if (robbed === undefined) return now;
  const because: Failure = {
    code: 'group-unfinished',
    message: `the volume was being given to group ${taken} for a pod that is gone: part of it may have that group`,
    effect: 'unknown',
  };
  const doubted: ActualPublication = { ...robbed, presence: { kind: 'unsure', because } };
  return { ...now, publications: new Map(now.publications).set(robbed.spec.key, doubted) };
}

/** What is in doubt of such a place is not whether its pod has the volume. */
const DOUBTS_OF_HOLDERS: ReadonlySet<FailureCode> = new Set([
  'group-unfinished',
  'subpath-lost',
  'hold-lost',
]);

/** A pod has it, though somebody mounted over it, took a part of it or its hold, or its group is in doubt. */
export function isHeld({ presence }: ActualPublication): boolean {
  if (presence.kind !== 'unsure' || isCovered(presence)) return presence.kind !== 'absent';
  return typeof presence.because === 'object' && DOUBTS_OF_HOLDERS.has(presence.because.code);
}

/** The group that a place of this sort gives the files to. */
function groupOf({ fsGroup, readOnly }: PublicationSpec): number | undefined {
  return readOnly ? undefined : fsGroup?.gid;
}
