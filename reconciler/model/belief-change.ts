/** The one door through which belief changes: as an operation begins, and as it ends. Pure. */
import { assert, type Failure, type FailureCode } from '../../mount/failure.ts';
import type { MountIdentity } from '../../mount/host.ts';
import { isDevice, isInline } from '../../plugins/kinds/volume-questions.ts';
import {
  isMoreThan,
  isSameSubpaths,
  type PublicationKey,
  type PublicationSpec,
  RECONSTRUCTED,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import {
  ABSENT,
  type ActualPublication,
  type ActualVolume,
  BEGUN,
  isSetUp,
  mountLeft,
  type Presence,
  PRESENT,
  isRestarted,
  RESTARTED,
  untoldPlace,
  type VolumeOutcome,
} from './actual-state.ts';
import { doubtGroups } from './group-doubt.ts';
import { climbs, isBeside, type Operation, publicationOf } from './operation.ts';
import { noteDevices } from './quarantine.ts';
import { asTold, placeToClimbBy } from './staged-spec.ts';
import { withGivenBack } from './tombstone.ts';

function presenceOf(volume: ActualVolume, operation: Operation): Presence {
  const key = publicationOf(operation);
  if (key !== undefined) return volume.publications.get(key)?.presence ?? ABSENT;
  return operation.kind === 'stage' || operation.kind === 'unstage' ? volume.staged : volume.attached;
}

/**
 * The volume as it must be believed from the moment an operation may have an effect: a rung about to be climbed is
 * `unsure` before the first effect, and so it is in the record (D-7).
 */
export function begin(
  known: ActualVolume,
  operation: Operation,
  publication: PublicationSpec | undefined,
): ActualVolume {
  // From now on its driver has been told, and of what the spec says.
  const isAsked = climbs(operation.kind) && known.reconstructed === true;
  const volume = isAsked ? { ...known, reconstructed: undefined } : known;
  switch (operation.kind) {
    case 'expand':
    case 'clean':
      return volume;
    case 'attach':
      return volume.attached.kind === 'absent' ? { ...volume, attached: BEGUN } : volume;
    case 'stage':
      return volume.staged.kind === 'absent' ? { ...volume, staged: BEGUN } : volume;
    case 'publish': {
      assert(publication !== undefined, 'a publish operation names its publication');
      const there = volume.publications.get(operation.publication);
      return withPublication(volume, beginPublish(volume.spec, there, publication));
    }
    case 'unstage':
      return volume.staged.kind === 'present' ? { ...volume, staged: BEGUN } : volume;
    case 'detach':
      return volume.attached.kind === 'present' ? { ...volume, attached: BEGUN } : volume;
    case 'unpublish': {
      if (isBeside(operation)) return volume;
      const there = volume.publications.get(operation.publication);
      if (there?.presence.kind !== 'present') return volume;
      return withPublication(volume, { ...there, presence: BEGUN });
    }
  }
}

function beginPublish(
  volume: VolumeSpec,
  there: ActualPublication | undefined,
  wanted: PublicationSpec,
): ActualPublication {
  if (there === undefined) {
    return untoldPlace(withoutPartsOfDevice(volume, wanted), BEGUN);
  }
  const climbing = withSubpathsKnown(there.spec, placeToClimbBy(volume, there, wanted));
  const spec = withoutPartsOfDevice(volume, climbing);
  // Which of them are bound as they are wished now is not known from here on, nor after a crash.
  const isBinding = there.presence.kind === 'present' && !isSameSubpaths(there.spec, spec);
  return { ...there, spec, mount: mountLeft(there), presence: isBinding ? BEGUN : there.presence };
}

/** That it had some, or may have, is remembered until it is down: some of them may still be there. */
function withSubpathsKnown(before: PublicationSpec, now: PublicationSpec): PublicationSpec {
  const mayHave = before.subpaths !== undefined || before.origin === RECONSTRUCTED;
  return mayHave && now.subpaths === undefined ? { ...now, subpaths: [] } : now;
}

/** Nothing of a device can be bound, and files that are wished by now are not there before it is down. */
function withoutPartsOfDevice(volume: VolumeSpec, place: PublicationSpec): PublicationSpec {
  return isDevice(volume) && place.subpaths !== undefined ? { ...place, subpaths: [] } : place;
}

/**
 * The only way belief changes after an operation. `before` is the volume as it was when the operation began.
 * A failure with effect `none` puts the rung back to what it was; one with effect `unknown` makes it unsure. A failure
 * that says that the rung below is not what we believed makes that one unsure: it is done again first.
 */
export function learn(
  believed: ActualVolume,
  before: ActualVolume,
  operation: Operation,
  outcome: VolumeOutcome,
): ActualVolume {
  const told = asTold(believed, before, operation, outcome);
  const now = outcome.kind === 'failed' ? doubtBelow(told, operation, outcome.failure) : told;
  const reached =
    outcome.kind === 'failed'
      ? afterFailure(before, believed, operation, outcome.failure)
      : afterSuccess(operation);
  const learnt = outcome.kind === 'done' ? outcome.learnt : {};
  switch (operation.kind) {
    case 'expand':
      return learnExpansion(now, outcome);
    case 'clean':
      return outcome.kind === 'done' && now.quarantine !== undefined
        ? { ...now, quarantine: { ...now.quarantine, verified: true } }
        : now;
    case 'attach':
      return {
        ...now,
        attached: reached,
        publishContext: learnt.publishContext ?? now.publishContext,
        attachedNode: reached.kind === 'absent' ? undefined : now.attachedNode,
        // What stands was set up under the attachment of then, whatever there is now.
        attachmentUid: isSetUp(now)
          ? (now.attachmentUid ?? learnt.attachmentUid)
          : (learnt.attachmentUid ?? now.attachmentUid),
      };
    case 'detach':
      return {
        ...now,
        attached: reached,
        publishContext: reached.kind === 'absent' ? undefined : now.publishContext,
        attachedNode: reached.kind === 'absent' ? undefined : now.attachedNode,
      };
    case 'stage':
      return noteDevices({
        ...now,
        staged: reached,
        stagedFor: reached.kind === 'absent' ? undefined : now.stagedFor,
        stagedMount: outcome.kind === 'done' ? knownMount(now.stagedMount, learnt.mount) : now.stagedMount,
        wasMountPoint: outcome.kind === 'done' ? learnt.isMountPoint : now.wasMountPoint,
        sizeBytes: now.sizeBytes ?? learnt.sizeBytes,
      });
    case 'unstage':
      return useForgotten({
        ...now,
        staged: reached,
        stagedFor: reached.kind === 'absent' ? undefined : now.stagedFor,
        stagedMount: reached.kind === 'absent' ? undefined : now.stagedMount,
        wasMountPoint: reached.kind === 'absent' ? undefined : now.wasMountPoint,
      });
    case 'publish': {
      const published = learnPublication(now, operation.publication, reached, outcome);
      const isAsBefore = outcome.kind === 'failed' && outcome.failure.effect === 'none';
      return sizeForgotten(isAsBefore ? withPartsOf(before, operation.publication, published) : published);
    }
    case 'unpublish': {
      if (isBeside(operation))
        return outcome.kind === 'done' ? withGivenBack(believed, before, operation.publication) : believed;
      const left = useForgotten(learnPublication(now, operation.publication, reached, outcome));
      const gone = reached.kind === 'absent' ? before.publications.get(operation.publication) : undefined;
      return doubtGroups(left, gone);
    }
  }
}

function learnExpansion(now: ActualVolume, outcome: VolumeOutcome): ActualVolume {
  if (outcome.kind === 'done') {
    const { sizeBytes = now.sizeBytes } = outcome.learnt;
    const grew =
      sizeBytes !== undefined && (now.sizeBytes === undefined || isMoreThan(sizeBytes, now.sizeBytes));
    return { ...now, sizeBytes: grew ? sizeBytes : now.sizeBytes, refusedExpansion: undefined };
  }
  const { code, message } = outcome.failure;
  const { toBytes } = outcome;
  if (toBytes === undefined || (code !== 'expand-in-use' && code !== 'expand-infeasible')) return now;
  const because = code === 'expand-in-use' ? 'in-use' : 'infeasible';
  return { ...now, refusedExpansion: { toBytes, because, message } };
}

/** A size is only known of what stands or may yet come. */
function sizeForgotten(volume: ActualVolume): ActualVolume {
  const mayStand = volume.publications.size > 0 || volume.staged.kind !== 'absent';
  return mayStand || volume.tombstones !== undefined ? volume : { ...volume, sizeBytes: undefined };
}

/** "In use" ends on the way down with the last place, not with one that could not be set up. */
function useForgotten(volume: ActualVolume): ActualVolume {
  const isInUse = volume.publications.size > 0 || volume.refusedExpansion?.because !== 'in-use';
  return sizeForgotten(isInUse ? volume : { ...volume, refusedExpansion: undefined });
}

/** What the kernel (first two) or the driver (CSI: FAILED_PRECONDITION) holds against the rung below. */
const SHAKES_BELOW: ReadonlySet<FailureCode> = new Set([
  'staged-not-mounted',
  'device-changed',
  'driver-precondition',
]);

function doubtBelow(volume: ActualVolume, operation: Operation, failure: Failure): ActualVolume {
  if (!SHAKES_BELOW.has(failure.code)) return volume;
  const doubted: Presence = { kind: 'unsure', because: failure };
  if (operation.kind === 'publish' && volume.staged.kind === 'present') return { ...volume, staged: doubted };
  // What the driver says of a stage may be about the attachment; what the kernel says is about the stage itself.
  const isShaken = operation.kind === 'stage' && failure.code === 'driver-precondition';
  if (isShaken && volume.attached.kind === 'present') return { ...volume, attached: doubted };
  return volume;
}

function learnPublication(
  now: ActualVolume,
  key: PublicationKey,
  reached: Presence,
  outcome: VolumeOutcome,
): ActualVolume {
  const known = now.publications.get(key);
  if (known === undefined) return now;
  if (reached.kind === 'absent') {
    const publications = new Map(now.publications);
    publications.delete(key);
    return { ...now, publications };
  }
  if (outcome.kind === 'done') {
    const { generation, sizeBytes } = outcome.learnt;
    const { untold: _, ...place } = known;
    const mount = knownMount(known.mount, outcome.learnt.mount);
    const published = withPublication(now, { ...place, presence: reached, generation, mount });
    return noteDevices({ ...published, sizeBytes: now.sizeBytes ?? sizeBytes });
  }
  const isEnded = isInline(now.spec) && outcome.failure.ended === true;
  return withPublication(now, { ...known, presence: reached, ...(isEnded ? { ended: true } : {}) });
}

/** A publish that left all as it was has left the binds, too; what was found on disk may have unknown ones. */
function withPartsOf(before: ActualVolume, key: PublicationKey, learnt: ActualVolume): ActualVolume {
  const [was, now] = [before.publications.get(key), learnt.publications.get(key)];
  if (was === undefined || now === undefined || isSameSubpaths(was.spec, now.spec)) return learnt;
  const { subpaths: _, ...spec } = now.spec;
  const { subpaths = was.spec.origin === RECONSTRUCTED ? [] : undefined } = was.spec;
  return withPublication(learnt, { ...now, spec: subpaths === undefined ? spec : { ...spec, subpaths } });
}

/** All that is known of the mount that was known, if what was found is the same one. */
function knownMount(
  known: MountIdentity | undefined,
  found: MountIdentity | undefined,
): MountIdentity | undefined {
  const isSame =
    known?.mountId === found?.mountId &&
    known?.device === found?.device &&
    known?.blockDevice === found?.blockDevice;
  return isSame && known !== undefined ? { ...known, ...found } : found;
}

function afterSuccess(operation: Operation): Presence {
  return operation.kind === 'attach' || operation.kind === 'stage' || operation.kind === 'publish'
    ? PRESENT
    : ABSENT;
}

function afterFailure(
  before: ActualVolume,
  now: ActualVolume,
  operation: Operation,
  failure: Failure,
): Presence {
  if (failure.effect !== 'none') return { kind: 'unsure', because: failure };
  const was = presenceOf(before, operation);
  // Found on disk while the operation ran: it was there before, and only we did not know.
  return was.kind === 'absent' && isRestarted(presenceOf(now, operation)) ? RESTARTED : was;
}

function withPublication(volume: ActualVolume, entry: ActualPublication): ActualVolume {
  return { ...volume, publications: new Map(volume.publications).set(entry.spec.key, entry) };
}
