/**
 * A call whose end nobody heard may take effect minutes later, whatever was asked and answered meanwhile: the handler
 * ends with the deadline, and the mount(8) that it started goes on (DR-05, RC-04). So of each such call a tombstone
 * stays in the volume's record: what was asked, and until when it can still come. What comes is given back through the
 * driver, because only the driver knows what else it holds; and at the end it is given back once more, seen or not,
 * because not every effect is a mount. Pure.
 */
import type { Failure } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import { isSameSpec, meansSame, placeFields } from '../../plugins/kinds/spec-fields.ts';
import { driverOf, isDevice, isInline, stagingPathOf } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { PublicationKey, PublicationSpec, VolumeSpec } from '../../plugins/volume.ts';
import {
  type ActualVolume,
  isOnTheGround,
  type PlaceBeside,
  type Presence,
  type Tombstone,
  untoldPlace,
  type VolumeOutcome,
} from './actual-state.ts';
import { isNodeOther } from './attachment-identity.ts';
import type { Operation } from './operation.ts';

export function tombstonesOf({ tombstones }: ActualVolume): readonly Tombstone[] {
  return tombstones ?? [];
}

/** Each with its own specification: that of the volume is another one once one of them was raised. */
function asAsked(volume: ActualVolume): readonly Tombstone[] {
  return tombstonesOf(volume).map((one) => ({ ...one, spec: one.spec ?? volume.spec }));
}

/** As it is to be written down before the call is made. */
export function withOpenCall(volume: ActualVolume, operation: Operation): ActualVolume {
  const asked = askedBy(volume, operation);
  if (asked === undefined) return volume;
  const before = tombstonesOf(volume).find((one) => isSame(volume, one, asked));
  return replaced(volume, asked, { ...(before ?? asked), open: true });
}

/**
 * What the end of the call says of it: answered, with whatever, this one has ended, and an older one may still come,
 * after the next teardown, too; not answered, it may come until then. `begun`: the volume as its driver was told.
 */
export function withCallEnded(
  volume: ActualVolume,
  begun: ActualVolume,
  operation: Operation,
  outcome: VolumeOutcome,
  untilMs: number,
): ActualVolume {
  const told = askedBy(begun, operation);
  if (told === undefined) return volume;
  // Another pod may have been told otherwise meanwhile.
  const asked = isSameSpec(begun.spec, volume.spec) ? told : { ...told, spec: begun.spec };
  const before = tombstonesOf(volume).find((one) => isSame(volume, one, asked));
  if (outcome.kind === 'failed' && outcome.failure.unanswered === true)
    return replaced(volume, asked, { ...asked, untilMs });
  if (before === undefined) return volume;
  return replaced(volume, asked, before.untilMs === undefined ? undefined : closed(before));
}

/** Found at a start: nobody hears any more how a call ended that was open, and less may be waited for by now. */
export function withNobodyListening(volume: ActualVolume, untilMs: number): ActualVolume {
  if (volume.tombstones === undefined) return volume;
  const tombstones = volume.tombstones.map((one) => ({
    ...closed(one),
    untilMs: isUntimed(one) ? untilMs : Math.min(one.untilMs ?? untilMs, untilMs),
  }));
  return { ...volume, tombstones };
}

/** Its time begins only with `withNobodyListening`. */
export function isUntimed({ open, untilMs }: Tombstone): boolean {
  return open === true || untilMs === undefined;
}

/**
 * Found after a reboot: what was started on this machine has ended with its boot and comes no more, so what may have
 * come before is given back now: mounts are gone, and what a driver keeps on disk is not. What a controller was asked
 * goes on.
 */
export function withBootEnded(volume: ActualVolume): ActualVolume {
  if (volume.tombstones === undefined) return volume;
  // The clock by which they were waited for has ended with its boot.
  const tombstones = asAsked(volume).map(({ untilMs: _, ...rest }) => rest);
  const ended = tombstones.filter(({ operation }) => operation === 'stage' || operation === 'publish');
  return ended.reduce(raisedForGood, { ...volume, tombstones });
}

/** Set up otherwise than before: what was asked before keeps its own specification. */
export function pinnedTombstones(known: ActualVolume, spec: VolumeSpec): ActualVolume['tombstones'] {
  const isAsBefore = known.tombstones === undefined || isSameSpec(known.spec, spec);
  return isAsBefore ? known.tombstones : asAsked(known);
}

/** The volume with nothing that was due any more: what may have come is in doubt, and so it is given back. */
export function withDueRaised(volume: ActualVolume, nowMs: number): ActualVolume {
  const due = asAsked(volume).filter(
    ({ open, untilMs }) => open !== true && untilMs !== undefined && untilMs <= nowMs,
  );
  return due.reduce(raisedForGood, volume);
}

/** What the kernel shows where nothing should be is in doubt; its tombstone stays, since more may come. */
export function withArrivedRaised(volume: ActualVolume, table: MountTable, layout: Layout): ActualVolume {
  const arrived = asAsked(volume).filter((one) =>
    pathsOf(volume, one, layout).some((path) => table.at(path).length > 0),
  );
  return arrived.reduce(
    (now, one) => (isElsewhere(now, one) ? markedFor(now, one, 'arrived') : raise(now, one)),
    volume,
  );
}

/**
 * Places of pods that are to be given back although the volume stands, because it stands as something else, elsewhere:
 * with it they do not go, and it must not wait for them to go.
 */
export function placesBeside(volume: ActualVolume): readonly PublicationSpec[] {
  return tombstonesOf(volume).flatMap((one) =>
    one.givenBack !== undefined && isElsewhere(volume, one) ? (one.publication ?? []) : [],
  );
}

/** The one of `placesBeside`, with the specification under which its driver was asked. */
export function placeBeside(volume: ActualVolume, key: PublicationKey): PlaceBeside | undefined {
  const one = tombstoneBeside(volume, key);
  return one?.publication && { spec: one.spec ?? volume.spec, publication: one.publication };
}

/** `now` without what was given back beside it; `before`: as it was when that was asked. */
export function withGivenBack(now: ActualVolume, before: ActualVolume, key: PublicationKey): ActualVolume {
  const given = tombstoneBeside(before, key);
  if (given === undefined) return now;
  const { givenBack, ...rest } = tombstonesOf(now).find((one) => isSame(now, one, given)) ?? given;
  return replaced(now, given, givenBack === 'at-last' ? undefined : rest);
}

/** When the next of them is due; undefined without any, or while the only ones are open, being given back or wait. */
export function nextDueMs(volume: ActualVolume): number | undefined {
  const times = tombstonesOf(volume).flatMap((one) =>
    one.untilMs === undefined || one.open === true || isSettledElsewhere(volume, one) ? [] : [one.untilMs],
  );
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Places of pods that nobody wonders about: what comes there is known to belong to the volume. */
export function latePlaces(volume: ActualVolume): readonly PlaceBeside[] {
  return tombstonesOf(volume).flatMap(({ publication, spec = volume.spec }) =>
    publication === undefined ? [] : [{ spec, publication }],
  );
}

/** Why nobody can say yet that the volume is clean; what is under another node id waits for the detach. */
export function lateFailure(volume: ActualVolume): Failure | undefined {
  const one = tombstonesOf(volume).find((each) => !isNodeOther(each, volume));
  if (one === undefined) return undefined;
  const message = `${titleOf(one)} was given up without an answer and may still take effect`;
  return { code: 'late-effect', message, effect: 'none' };
}

/** `publish for pod default/web`. */
export function titleOf({ operation, publication }: Tombstone): string {
  if (publication === undefined) return operation;
  const { namespace, name, uid } = publication.pod;
  return `${operation} for pod ${name === '' ? uid : `${namespace}/${name}`}`;
}

function askedBy(volume: ActualVolume, operation: Operation): Tombstone | undefined {
  if (driverOf(volume.spec) === undefined) return undefined;
  switch (operation.kind) {
    case 'attach':
    case 'detach':
      return { operation: operation.kind, node: volume.attachedNode };
    case 'stage':
      return { operation: 'stage' };
    case 'publish': {
      const publication = volume.publications.get(operation.publication)?.spec;
      return publication === undefined ? undefined : { operation: 'publish', publication };
    }
    default:
      return undefined;
  }
}

/**
 * What was asked of the same place under another specification is another call, and may be elsewhere. Two of the same
 * must never stand side by side: the one that is due first would take the other with it.
 */
function isSame(volume: ActualVolume, a: Tombstone, b: Tombstone): boolean {
  return (
    a.operation === b.operation &&
    a.publication?.key === b.publication?.key &&
    a.node === b.node &&
    isSameSpec(a.spec ?? volume.spec, b.spec ?? volume.spec)
  );
}

function tombstoneBeside(volume: ActualVolume, key: PublicationKey): Tombstone | undefined {
  return tombstonesOf(volume).find(
    (one) => one.givenBack !== undefined && one.publication?.key === key && isElsewhere(volume, one),
  );
}

/** Nothing more comes of it. */
function raisedForGood(volume: ActualVolume, one: Tombstone): ActualVolume {
  return isElsewhere(volume, one)
    ? markedFor(volume, one, 'at-last')
    : replaced(raise(volume, one), one, undefined);
}

/** A stage is never given back beside what stands: its driver may take the one for the other. */
function markedFor(
  volume: ActualVolume,
  one: Tombstone,
  givenBack: NonNullable<Tombstone['givenBack']>,
): ActualVolume {
  const isMarked = one.givenBack === givenBack || one.givenBack === 'at-last';
  if (isMarked || !isBesideWhatStands(volume, one)) return volume;
  return replaced(volume, one, { ...one, givenBack });
}

function replaced(volume: ActualVolume, rung: Tombstone, by: Tombstone | undefined): ActualVolume {
  const others = tombstonesOf(volume).filter((one) => !isSame(volume, one, rung));
  const all = by === undefined ? others : [...others, by];
  const { tombstones: _, ...rest } = volume;
  return all.length === 0 ? rest : { ...rest, tombstones: all };
}

function closed({ open: _, ...rest }: Tombstone): Tombstone {
  return rest;
}

/** It stands as something else now, with other places than those that were asked for, or under another node id. */
function isElsewhere(volume: ActualVolume, one: Tombstone): boolean {
  const { operation, spec = volume.spec } = one;
  if (operation === 'attach' || operation === 'detach') return isNodeOther(one, volume);
  if (isDown(volume)) return false;
  return placeFields(volume.spec).some((field) => !meansSame(volume.spec, spec, field));
}

/** In quarantine it comes down no further than to its attachment. */
function isDown(volume: ActualVolume): boolean {
  const isUnused = volume.staged.kind === 'absent' && volume.publications.size === 0;
  return volume.quarantine === undefined ? isOnTheGround(volume) : isUnused;
}

/** An inline volume ends with a place of it, wherever that is. */
function isBesideWhatStands(volume: ActualVolume, { operation, spec = volume.spec }: Tombstone): boolean {
  return operation === 'publish' && !isInline(spec) && !isInline(volume.spec);
}

/** It is due for nothing more: it goes with the call that gives it back, or waits until the volume is down. */
function isSettledElsewhere(volume: ActualVolume, one: Tombstone): boolean {
  if (!isElsewhere(volume, one)) return false;
  return one.givenBack === 'at-last' || !isBesideWhatStands(volume, one);
}

const CAME_LATE: Presence = {
  kind: 'unsure',
  because: {
    code: 'late-effect',
    message: 'a call that was given up without an answer may have taken effect since: it is given back',
    effect: 'unknown',
  },
};

/** What the ladder knows of the rung already, it takes care of. */
function raise(volume: ActualVolume, tombstone: Tombstone): ActualVolume {
  const { operation, publication, node, spec = volume.spec } = tombstone;
  const now = isDown(volume) ? { ...volume, spec, tombstones: pinnedTombstones(volume, spec) } : volume;
  // Taken away late, it is asked for again where it is wanted.
  if (operation === 'detach') return now.attached.kind === 'present' ? { ...now, attached: CAME_LATE } : now;
  if (operation === 'attach')
    return now.attached.kind === 'absent' ? { ...now, attached: CAME_LATE, attachedNode: node } : now;
  // The stage below may have been kept busy by it when it was undone.
  const staged = now.needs.stage && now.staged.kind === 'absent' ? CAME_LATE : now.staged;
  if (operation === 'stage') return { ...now, staged };
  if (publication === undefined || now.publications.has(publication.key)) return now;
  const place = untoldPlace(publication, CAME_LATE);
  return { ...now, staged, publications: new Map([...now.publications, [publication.key, place]]) };
}

function pathsOf(volume: ActualVolume, tombstone: Tombstone, layout: Layout): readonly AbsolutePath[] {
  const { operation, publication, spec = volume.spec } = tombstone;
  if (operation === 'attach' || operation === 'detach') return [];
  if (operation === 'stage') {
    const staging = volume.staged.kind === 'absent' ? stagingPathOf(spec, layout) : undefined;
    return staging === undefined ? [] : [staging];
  }
  const isTaken = publication !== undefined && volume.publications.has(publication.key);
  if (publication === undefined || (isTaken && !isElsewhere(volume, tombstone))) return [];
  const path = layout.mountPoint(spec, publication);
  return isDevice(spec) ? [path, layout.devicePublication(spec, publication).published] : [path];
}
