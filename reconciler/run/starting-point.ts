/** What an operation begins from. Pure. */
import { assert } from '../../mount/failure.ts';
import type { Needs } from '../../plugins/plugin.ts';
import type { VolumeSpec } from '../../plugins/volume.ts';
import { type ActualVolume, isForgettable, isOnTheGround, onTheGround } from '../model/actual-state.ts';
import type { DesiredVolume } from '../model/desired-state.ts';
import { climbs, type Operation } from '../model/operation.ts';
import { knownSize } from './perform.ts';
import { specToClimbBy, stageFor } from '../model/staged-spec.ts';
import { pinnedTombstones } from '../model/tombstone.ts';

export interface Surroundings {
  readonly needsOf: (spec: VolumeSpec) => Needs | undefined;
  /** The uid of the attachment by which the volume is here now. */
  readonly attachmentUid: string | undefined;
}

/** What was believed when the operation began; what is wholly down climbs by today's wish, under today's attachment. */
export function startingPoint(
  known: ActualVolume | undefined,
  operation: Operation,
  wanted: DesiredVolume | undefined,
  { needsOf, attachmentUid: uidNow }: Surroundings,
): ActualVolume {
  if (wanted === undefined || !climbs(operation.kind)) {
    assert(known !== undefined, 'only a known volume descends');
    return known;
  }
  const spec = specToClimbBy(known, wanted.spec);
  const today = needsOf(spec);
  assert(today !== undefined, 'an operation is planned only when its needs are known');
  const { node, tellsGroup: _, ...needs } = today;
  // As for the size: after a crash, or without an answer, it is detached under the id that it was asked for under.
  const attachedNode = operation.kind === 'attach' ? (known?.attachedNode ?? node) : known?.attachedNode;
  const stagedFor = operation.kind === 'stage' ? stageFor(known, wanted, today) : known?.stagedFor;
  // Written down before it is set up: after a crash a growth wished meanwhile must not be taken for what it has.
  const sizeBytes = known?.sizeBytes ?? knownSize(wanted);
  const asked = { sizeBytes, attachedNode, stagedFor };
  if (known === undefined || isForgettable(known))
    return { ...onTheGround(spec, needs), ...asked, attachmentUid: uidNow };
  const attachmentUid = isOnTheGround(known) ? uidNow : (known.attachmentUid ?? uidNow);
  const tombstones = pinnedTombstones(known, spec);
  const both = bothNeeds(known.needs, operation.kind === 'expand' ? rungless(needs) : needs);
  if (isOnTheGround(known) && known.quarantine === undefined)
    return {
      ...onTheGround(spec, both),
      ...{ ...asked, attachmentUid, tombstones, isInherited: known.isInherited },
    };
  return { ...known, ...asked, spec, tombstones, needs: both, attachmentUid };
}

/** A driver may come back with other capabilities: the way up is today's, the way down is of all that was ever done. */
function bothNeeds(a: Needs, b: Needs): Needs {
  return { attach: a.attach || b.attach, stage: a.stage || b.stage, expand: b.expand };
}

/** A growth climbs no rung: what the driver can do besides is not done by it, and has not to be undone. */
function rungless({ expand }: Needs): Needs {
  return { attach: false, stage: false, expand };
}
