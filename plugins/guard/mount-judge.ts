/** Whose file system is mounted at a place: the volume's own, or somebody else's? */
import { bounded, done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import {
  type Host,
  type MountIdentity,
  type MountPlace,
  parentOf,
  type AbsolutePath,
} from '../../mount/host.ts';
import { type ExpectedPlace, lookAtPlaces } from '../../mount/expected-place.ts';
import { type Ground, strangerFailure } from '../../mount/ground.ts';
import { isProven, nameOfMount, sightOf } from '../../mount/mount-sight.ts';
import type { MountEntry, MountTable } from '../../mount/mount-table.ts';
import { isOwnTmpfs } from '../../mount/mounter.ts';
import { volumeDataIn } from '../layout/volume-data.ts';
import { doubtful } from '../steps.ts';
import type { VolumeSpec } from '../volume.ts';
import { isInDoubt } from './own-look.ts';
import type { PlaceParts, WatchedPlace } from './watched-place.ts';

export interface MountJudgeParts extends PlaceParts {
  readonly host: Host;
  readonly ground: Ground;
}

/** What was mounted when it was looked at, first where the call is about, as it is to be still when the verb begins. */
export type Look = readonly ExpectedPlace[];

/** So often a look is repeated that was taken under a mount which had gone when the table was read. */
const LOOKS_MAX = 3;

/** The table is read only when what is seen is not what was proven, or when that was in doubt. */
export class MountJudge {
  readonly #parts: MountJudgeParts;

  constructor(parts: MountJudgeParts) {
    this.#parts = parts;
  }

  /** Before a call: what is mounted at the first of the places; a failure when one is not what is known of it. */
  async look(places: readonly WatchedPlace[]): Promise<Result<Look>> {
    const [first] = places;
    if (first === undefined) return ok([]);
    for (let looks = 1; looks <= LOOKS_MAX; looks += 1) {
      const looked = await this.#lookOnce(first, places);
      if (!looked.ok) return looked;
      if (looked.value !== 'outdated') return ok(looked.value);
    }
    const message = `what is mounted over the directories above ${first.path} comes and goes while it is looked at`;
    return fail({ code: 'mount-foreign', message, effect: 'none', blocker: parentOf(first.path) });
  }

  async #lookOnce(first: WatchedPlace, places: readonly WatchedPlace[]): Promise<Result<Look | 'outdated'>> {
    const asked = { path: first.path, places: places.map(({ path }) => path) };
    const seen = await this.#parts.host.perform(lookAtPlaces, asked);
    if (!seen.ok) return fail({ ...seen.failure, effect: 'none' });
    const looked: ExpectedPlace[] = [];
    for (const [index, at] of seen.value.entries()) {
      const place = places[index] ?? first;
      const grounded = await this.#parts.ground.refuseStranger(place.path, at.within);
      if (!grounded.ok) return grounded;
      const outdated = await this.#isOutdated(place.path, at);
      if (!outdated.ok) return outdated;
      if (outdated.value) return ok('outdated');
      const judged = await this.#judge(place, at.mountId);
      if (!judged.ok) return judged;
      looked.push({ path: place.path, ...at });
    }
    return ok(looked);
  }

  /** It was taken under somebody's mount, which has gone since: what he hid is bare now. */
  async #isOutdated(path: AbsolutePath, { within }: MountPlace): Promise<Result<boolean>> {
    if ((this.#parts.ground.expectedRound(path) ?? within) === within) return ok(false);
    const table = await this.#readTable();
    return table.ok ? ok(table.value.byId(within) === undefined) : fail({ ...table.failure, effect: 'none' });
  }

  async #judge(watched: WatchedPlace, mountId: number | undefined): Promise<Result<void>> {
    const { proven } = watched;
    const isAsProven = mountId === proven?.mountId && !isInDoubt(watched);
    if (isAsProven || (proven === undefined && this.#isDevice(watched.spec))) return done;
    const table = await this.#readTable();
    if (!table.ok) return fail({ ...table.failure, effect: 'none' });
    const strange =
      proven === undefined
        ? await this.#judgeUnproven(watched, table.value)
        : this.#judgeProven(watched, proven, table.value);
    return strange === undefined ? done : fail(strange);
  }

  /** Found and not proven: a call before a crash may have made it, a kubelet before us, or somebody else. */
  async #judgeUnproven(
    { path, spec, staged, isPlain }: WatchedPlace,
    table: MountTable,
  ): Promise<Failure | undefined> {
    const stack = table.at(path);
    const top = stack.at(-1);
    if (top === undefined) return undefined;
    if (stack.some(({ device }) => device !== top.device)) return strangerFailure(path, top);
    const { mountToldBy, isInline } = this.#parts.traits;
    if (mountToldBy === 'plugin') return undefined;
    if (mountToldBy === undefined) return isPlain || !this.#isOwn(top) ? strangeThere(path, top) : undefined;
    if (staged !== undefined && !isOfKind(top, staged)) return strangeThere(path, top);
    if (top.fsType !== 'tmpfs' || top.root !== '/') return undefined;
    // Nothing that lasts is kept in memory; what an inline volume's driver mounted has its papers beside it.
    if (isInline?.(spec) !== true && staged?.device !== top.device) return strangeThere(path, top);
    const papers = await this.#parts.host.inspect(volumeDataIn(parentOf(path)));
    return papers.ok && papers.value.kind === 'absent' ? strangeThere(path, top) : undefined;
  }

  /** After an OK: is what is there now the volume? What came meanwhile, and is what was proven, costs no look. */
  async after(
    place: WatchedPlace | undefined,
    made: MountIdentity | undefined,
    before: Look,
  ): Promise<Result<void>> {
    if (place === undefined || made === undefined || !this.#hasOwnKind(place.spec)) return done;
    const known = place.proven ?? place.staged;
    if (known === undefined) return this.#judgeFirst(place, made, before);
    if (known.device === made.device) return done;
    if (majorOf(known.device) === majorOf(made.device) && known.fsType === undefined) return done;
    const table = await this.#readTable();
    if (!table.ok) return doubtful<never>(table);
    const top = table.value.at(place.path).at(-1);
    if (top === undefined || !isProven(top, made) || isOfKind(top, known)) return done;
    return fail({ ...strangeThere(place.path, top), effect: 'unknown' });
  }

  /**
   * Nothing is known of the volume yet, and somebody may have mounted there since the look: seen when his mount lies
   * over another file system. One that the driver finds in an empty place cannot be told from the driver's own.
   */
  async #judgeFirst({ path }: WatchedPlace, made: MountIdentity, [before]: Look): Promise<Result<void>> {
    const isOver = before?.mountId !== undefined && before.mountId !== made.mountId;
    if (!isOver && made.fsType !== 'tmpfs') return done;
    const table = await this.#readTable();
    if (!table.ok) return doubtful<never>(table);
    const stack = table.value.at(path);
    const top = stack.at(-1);
    const isAlone = top === undefined || stack.every(({ device }) => device === top.device);
    return isAlone ? done : fail({ ...strangerFailure(path, top), effect: 'unknown' });
  }

  /** What is still mounted after a teardown may be somebody else's, which came meanwhile or lay below. */
  async blame(place: WatchedPlace | undefined, failure: Failure): Promise<Failure> {
    const isLeft = failure.code === 'unpublished-still-mounted' || failure.code === 'unstaged-still-mounted';
    if (!isLeft || place?.proven === undefined) return failure;
    const table = await this.#readTable();
    const stranger = table.ok ? this.#judgeProven(place, place.proven, table.value) : undefined;
    return stranger === undefined ? failure : { ...failure, ...stranger, effect: failure.effect };
  }

  #judgeProven({ path, spec }: WatchedPlace, proven: MountIdentity, table: MountTable): Failure | undefined {
    const sight = sightOf(table, path, proven);
    if (sight.kind === 'seen') return this.#isOwn(sight.entry) ? undefined : strangeThere(path, sight.entry);
    if (sight.kind === 'covered') return strangerFailure(path, sight.by);
    const { shown } = sight;
    if (shown === undefined) return undefined;
    // A later one of ours that is not written down may be what his lies over.
    if (!this.#isOwn(shown)) return strangeThere(path, shown);
    if (!this.#hasOwnKind(spec)) return undefined;
    // Mounted again by its driver, late, it may have another number; it is of the same kind.
    return isOfKind(shown, proven) ? undefined : strangeThere(path, shown);
  }

  /** The kernel gives a number again, of a mount and of a device: what we mount ourselves has our label, too. */
  #isOwn(entry: MountEntry): boolean {
    const isMemory = entry.fsType === 'tmpfs' || entry.fsType === 'hugetlbfs';
    return this.#parts.traits.mountToldBy !== undefined || !isMemory || isOwnTmpfs(entry);
  }

  /** A file system that stays on the kind of device that it was on. */
  #hasOwnKind(spec: VolumeSpec): boolean {
    return this.#parts.traits.mountToldBy === 'device' && !this.#isDevice(spec);
  }

  #isDevice(spec: VolumeSpec): boolean {
    return this.#parts.traits.isDevice?.(spec) === true;
  }

  #readTable(): Promise<Result<MountTable>> {
    const { host, layout } = this.#parts;
    return host.readMountTable(layout.root);
  }
}

function strangeThere(path: AbsolutePath, top: MountEntry): Failure {
  return bounded({
    code: 'mount-foreign',
    message: `what is mounted at ${path} is not the volume: ${nameOfMount(top)}`,
    effect: 'none',
    blocker: nameOfMount(top),
  });
}

/** Could it be a mount of the same volume: on a block device where that was on one, and of the same type if known? */
function isOfKind(entry: MountEntry, { device, fsType }: MountIdentity): boolean {
  if (entry.device === device) return true;
  return majorOf(entry.device) === majorOf(device) && (fsType === undefined || entry.fsType === fsType);
}

function majorOf(device: string): string {
  return device.slice(0, device.indexOf(':'));
}
