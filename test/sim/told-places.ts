/**
 * Which places pods were told of: what nobody was told of may go although it is wanted, to be set up otherwise. And of
 * which places what came late goes back: they had gone already, and no pod was told of them since.
 */
import type { FailureCode } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import {
  hasDevice,
  type PublicationKey,
  type PublicationSpec,
  type VolumeId,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import type {
  ActualPublication,
  ActualState,
  ActualVolume,
  Presence,
} from '../../reconciler/model/actual-state.ts';
import type { DesiredVolume } from '../../reconciler/model/desired-state.ts';
import { isBeside, type Operation } from '../../reconciler/model/operation.ts';
import { placeBeside, placesBeside } from '../../reconciler/model/tombstone.ts';
import type { VolumeInFlight } from '../../reconciler/run/volume-operation.ts';
import type { Mount } from './sim-kernel.ts';

type Places = ReadonlyMap<VolumeId, ReadonlyMap<PublicationKey, readonly AbsolutePath[]>>;

interface Place {
  readonly volume: VolumeId;
  readonly publication: PublicationKey;
}

/** A record says within that time that a pod was told; a kill before it is as one before it was told. */
const WRITTEN_MS = 100;

export class ToldPlaces {
  readonly #layout: Layout;
  readonly #nowMs: () => number;
  readonly #nodeIdOf: (driver: string) => string | undefined;
  readonly #mountAt: (path: AbsolutePath) => Mount | undefined;
  /** Which mount was there when a pod was told of the path last. */
  readonly #mounts = new Map<AbsolutePath, Mount | undefined>();
  readonly #told = new Map<VolumeId, Map<PublicationKey, readonly AbsolutePath[]>>();
  readonly #late = new Map<VolumeId, Map<PublicationKey, readonly AbsolutePath[]>>();
  readonly #seen = new Map<VolumeId, ActualVolume>();
  /** Places that were being taken down after the event before. */
  #leaving: readonly Place[] = [];
  /** When a pod was told first of the places that begin there. */
  readonly #sinceMs = new Map<AbsolutePath | undefined, number>();
  /** Nothing but what is mounted there may say so: the life before ended a moment after, or a record was damaged. */
  readonly #unwritten = new Set<readonly AbsolutePath[]>();

  /**
   * `mountAt`: what is mounted there now; its number may be that of another one that has gone. `nodeIdOf`: what the
   * driver calls this node, as far as the agent has heard.
   */
  constructor(
    layout: Layout,
    mountAt: (path: AbsolutePath) => Mount | undefined,
    nowMs: () => number,
    nodeIdOf: (driver: string) => string | undefined,
  ) {
    this.#layout = layout;
    this.#nodeIdOf = nodeIdOf;
    this.#mountAt = mountAt;
    this.#nowMs = nowMs;
  }

  /** After every event: from the first moment that a place is believed present until it is believed absent. */
  look(actual: ActualState, running: readonly Pick<VolumeInFlight, 'operation' | 'phase'>[]): void {
    const leaving = running.flatMap(({ operation, phase }) =>
      operation.kind === 'unpublish' && phase === 'running' ? [operation] : [],
    );
    for (const [id, volume] of actual) {
      if (this.#seen.get(id) === volume) continue;
      this.#seen.set(id, volume);
      const before = this.#told.get(id);
      const told = new Map<PublicationKey, readonly AbsolutePath[]>();
      for (const [key, { presence, spec, untold }] of volume.publications) {
        // It was taken down, and is begun anew, within this event (seed 253453489).
        const isAnew = untold === true && has(this.#leaving, id, key) && !has(leaving, id, key);
        const known = isAnew ? undefined : before?.get(key);
        if (known === undefined && presence.kind !== 'present') continue;
        const paths = known ?? this.#pathsOf(volume.spec, spec);
        told.set(key, paths);
        if (known === undefined) this.#sinceMs.set(paths[0], this.#nowMs());
        if (presence.kind !== 'present') continue;
        this.#unwritten.delete(paths);
        for (const path of paths) this.#mounts.set(path, this.#mountAt(path));
      }
      this.#told.set(id, told);
      this.#lookForLate(id, volume);
    }
    this.#leaving = leaving;
    for (const id of this.#told.keys()) {
      if (actual.has(id)) continue;
      this.#told.delete(id);
      this.#late.delete(id);
      this.#seen.delete(id);
    }
  }

  /** What was told a moment ago may be in no record (seed 136194754). */
  lifeEnded(): void {
    const recentMs = this.#nowMs() - WRITTEN_MS;
    for (const places of this.#told.values())
      for (const paths of places.values())
        if ((this.#sinceMs.get(paths[0]) ?? recentMs) > recentMs) this.#unwritten.add(paths);
  }

  /** A record may tell now of a moment before (seed 222428499). */
  recordDamaged(): void {
    for (const places of this.#told.values()) for (const paths of places.values()) this.#unwritten.add(paths);
  }

  /** And it was mounted, and that has gone or is another one. */
  #isForgotten(paths: readonly AbsolutePath[]): boolean {
    if (!this.#unwritten.has(paths)) return false;
    return paths.some((path) => {
      const mount = this.#mounts.get(path);
      return mount !== undefined && this.#mountAt(path) !== mount;
    });
  }

  /** It is attached under a name that its driver does not give this node any more (DR-17). */
  #isCalledOtherwise({ spec, attached, attachedNode }: ActualVolume): boolean {
    if (spec.kind !== 'csi' || attached.kind === 'absent' || attachedNode === undefined) return false;
    const now = this.#nodeIdOf(spec.driver);
    return now !== undefined && now !== attachedNode;
  }

  #toldOf(volume: VolumeId): ReadonlySet<PublicationKey> {
    const told = [...(this.#told.get(volume) ?? [])];
    return new Set(told.filter(([, paths]) => !this.#isForgotten(paths)).map(([key]) => key));
  }

  /** From the moment that it is begun, whatever its tries run into, until the place is believed present or absent. */
  #lookForLate(id: VolumeId, volume: ActualVolume): void {
    const before = this.#late.get(id);
    const late = new Map<PublicationKey, readonly AbsolutePath[]>();
    for (const [key, place] of volume.publications) {
      if (place.presence.kind !== 'unsure' || place.untold !== true) continue;
      const isLate = isComeLate(place) || before?.has(key) === true;
      if (isLate) late.set(key, this.#pathsOf(volume.spec, place.spec));
    }
    for (const { key } of placesBeside(volume)) {
      const place = placeBeside(volume, key);
      const paths = place === undefined ? [] : this.#pathsOf(place.spec, place.publication);
      late.set(key, [...(late.get(key) ?? []), ...paths]);
    }
    this.#late.set(id, late);
  }

  #pathsOf(volume: VolumeSpec, place: PublicationSpec): readonly AbsolutePath[] {
    const { target, mountPoint, devicePublication } = this.#layout;
    const paths = [target(volume, place), mountPoint(volume, place)];
    return hasDevice(volume) ? [...paths, devicePublication(volume, place).published] : paths;
  }

  /** No container outlives the power. */
  forgetAll(): void {
    this.#late.clear();
    this.#told.clear();
    this.#seen.clear();
    this.#mounts.clear();
    this.#sinceMs.clear();
    this.#unwritten.clear();
  }

  has(path: string): boolean {
    return [...this.#told.values()].some((places) =>
      [...places.values()].some((paths) => paths.some((one) => one === path) && !this.#isForgotten(paths)),
    );
  }

  /** What is mounted there has come since: no pod was told of it (seed 639463128). */
  isNew(path: AbsolutePath): boolean {
    const mount = this.#mountAt(path);
    return mount !== undefined && mount !== this.#mounts.get(path);
  }

  /** What may have come of a call that was given up goes back there. */
  isGivenBack(path: string): boolean {
    return isAmong(this.#late, path) && !this.has(path);
  }

  /** Is the operation the give-back of a place beside what the volume is by now, of which no pod was told? */
  isGiveBack(operation: Operation, known: ActualVolume | undefined): boolean {
    if (!isBeside(operation) || !('publication' in operation) || known === undefined) return false;
    const place = placeBeside(known, operation.publication);
    return place !== undefined && !this.#pathsOf(place.spec, place.publication).some((one) => this.has(one));
  }

  /**
   * Is the operation the way down of what is wanted otherwise than it was set up, or of a place beside another pod's of
   * a volume for one pod alone, and of which no pod was told?
   */
  isRenewal(operation: Operation, known: ActualVolume | undefined, wanted: DesiredVolume): boolean {
    if (known === undefined || !traitsOf(known.spec).isShared) return false;
    const told = this.#toldOf(operation.volume);
    const isElsewhere =
      saysOtherwise(known, wanted) ||
      this.#isCalledOtherwise(known) ||
      isForOtherGroup(known, wanted) ||
      isHadOtherwise(known.attached, known.staged);
    if (!('publication' in operation)) {
      const isOther = isElsewhere || JSON.stringify(known.spec) !== JSON.stringify(wanted.spec);
      return told.size === 0 && isOther;
    }
    const { publication } = operation;
    if (!told.has(publication) && isForOnePod(known, wanted) && known.publications.size > 1) return true;
    const places = [known, wanted].map((one) => one.publications.get(publication)?.spec);
    const [there, then] = [known, wanted].map(({ spec }, index) => JSON.stringify([spec, places[index]]));
    const isHad = isHadOtherwise(known.publications.get(publication)?.presence);
    return !told.has(publication) && (isElsewhere || isHad || there !== then);
  }
}

function has(places: readonly Place[], volume: VolumeId, key: PublicationKey): boolean {
  return places.some((one) => one.volume === volume && one.publication === key);
}

/** Its attachment is the one it was set up under, and says something else of it by now. */
function saysOtherwise(known: ActualVolume, { attachment }: DesiredVolume): boolean {
  if (attachment === undefined || attachment.uid !== known.attachmentUid) return false;
  return JSON.stringify(known.publishContext) !== JSON.stringify(attachment.publishContext);
}

/** Its driver may have been told a group, as it staged, that is no group of the pods that want it. */
function isForOtherGroup({ stagedFor, staged }: ActualVolume, { publications }: DesiredVolume): boolean {
  if (stagedFor === undefined || staged.kind === 'absent') return false;
  return [...publications.values()].every(({ spec }) => spec.fsGroup?.gid !== stagedFor.fsGroup?.gid);
}

/** What stands otherwise than the wish has it (ALREADY_EXISTS), or in its driver's books alone (D-52). */
const OTHERWISE: ReadonlySet<string> = new Set<FailureCode>(['driver-conflict', 'staged-not-mounted']);

/** So its driver has answered, or the kernel after its OK. */
function isHadOtherwise(...presences: readonly (Presence | undefined)[]): boolean {
  return presences.some((one) => {
    if (one?.kind !== 'unsure' || typeof one.because !== 'object') return false;
    return OTHERWISE.has(one.because.code);
  });
}

function isForOnePod(...volumes: readonly Pick<DesiredVolume, 'spec'>[]): boolean {
  return volumes.some(({ spec }) => spec.kind === 'csi' && spec.accessModes.join() === 'ReadWriteOncePod');
}

function isAmong(volumes: Places, path: string): boolean {
  return [...volumes.values()].some((places) =>
    [...places.values()].some((paths) => paths.some((one) => one === path)),
  );
}

/** It had gone, and a call that was given up has made it since; no pod was told of it. */
export function isComeLate({ presence, untold }: ActualPublication): boolean {
  if (untold !== true || presence.kind !== 'unsure') return false;
  return typeof presence.because === 'object' && presence.because.code === 'late-effect';
}
