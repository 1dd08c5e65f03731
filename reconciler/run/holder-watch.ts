/**
 * Before a place is taken down: does anybody still have something of it? While somebody has, it stays, and he is looked
 * for again until he has gone. A manifest that was deleted says that the pod is not wanted; that its containers have
 * ended only the kernel knows, and what it does not say counts as "they run".
 */
import { fail, type Failure, type Result } from '../../mount/failure.ts';
import { holderText, type PlaceHolder } from '../../mount/holder/place-holder.ts';
import type { AbsolutePath, Cancel, Host } from '../../mount/host.ts';
import { isDevice, isOrphan } from '../../plugins/kinds/volume-questions.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { podOf, type PodUid, type PublicationKey, type VolumeId } from '../../plugins/volume.ts';
import type { BeliefView } from '../model/belief.ts';
import type { ActualVolume } from '../model/actual-state.ts';
import { type DesiredState, isPodWanted } from '../model/desired-state.ts';
import { isBeside, type Operation } from '../model/operation.ts';
import { createTakenPlaces, type TakenPlaces } from './taken-places.ts';

export interface HolderWatchParts {
  readonly host: Pick<Host, 'findPlaceHolders' | 'nowMs' | 'timer'>;
  readonly layout: Layout;
  readonly belief: BeliefView;
  readonly desired: () => DesiredState;
  /** Somebody else has it now, or nobody any more. */
  readonly onChanged: (volume: VolumeId) => void;
}

export interface HolderWatch {
  /**
   * Undefined at once: nobody is looked for. Settles with why it has to stay, or why its place is another volume's;
   * undefined: nobody has it.
   */
  look(operation: Operation): Promise<Failure | undefined> | undefined;
  /** The runtime's word that the containers of the pod have ended: it is looked again at once. */
  released(pod: PodUid): void;
  /** It is over; who waits for its place is told. */
  ended(operation: Operation): void;
  /**
   * An operator's word: what is left of the pod goes, whoever has it. Until nothing is left, it is wanted again, or the
   * agent ends.
   */
  forceRelease(pod: PodUid): void;
  /** To be told of each new wish, before anything is done by it. */
  noteWish(): void;
  stop(): void;
}

/** How long an answer is good for: in a drain one look serves all that come down meanwhile. */
const FRESH_MS = 1_000;
/** The kernel tells nobody when a process lets go, so it is asked again: soon, and for 5 % of one processor at most. */
const AGAIN_MS_MIN = 1_000;
const AGAIN_MS_MAX = 30_000;
const SHARE_OF_COST = 20;
/**
 * A copy of all mounts that does not follow ours and that nobody uses is no container of the pod. It may be of a
 * container that is just being made, which takes seconds; and of a service that has had it for months, or of whoever
 * tries something with `unshare -m`, who must not keep each volume of a drain here.
 */
const COPY_HOLD_MS = 60_000;
const BLOCKER_LENGTH_MAX = 512;

interface Place {
  readonly volume: VolumeId;
  readonly key: PublicationKey;
  readonly pod: PodUid;
  readonly path: AbsolutePath;
}

interface Answer {
  readonly atMs: number;
  readonly holders: Result<readonly PlaceHolder[]>;
}

export function createHolderWatch(parts: HolderWatchParts): HolderWatch {
  const watch = new Watch(parts);
  return {
    look: (operation) => watch.look(operation),
    ended: (operation) => watch.ended(operation),
    released: (pod) => watch.released(pod),
    forceRelease: (pod) => watch.forceRelease(pod),
    noteWish: () => watch.noteWish(),
    stop: () => watch.stop(),
  };
}

class Watch implements HolderWatch {
  readonly #parts: HolderWatchParts;
  readonly #takenPlaces: TakenPlaces;
  readonly #answers = new Map<AbsolutePath, Answer>();
  /** The places that somebody had when they were to go, with what was told of it. */
  readonly #held = new Map<AbsolutePath, { readonly volume: VolumeId; readonly told: string }>();
  /** Since when nothing but copies was found. */
  readonly #copiedSinceMs = new Map<AbsolutePath, number>();
  readonly #forced = new Set<PodUid>();
  #pass: Promise<void> | undefined;
  #costMs = 0;
  #cancel: Cancel | undefined;
  #stopped = false;

  constructor(parts: HolderWatchParts) {
    this.#parts = parts;
    this.#takenPlaces = createTakenPlaces(parts);
  }

  look(operation: Operation): Promise<Failure | undefined> | undefined {
    const { belief, desired, layout } = this.#parts;
    if (operation.kind === 'publish') {
      const wanted = desired().volumes.get(operation.volume);
      const place = wanted?.publications.get(operation.publication);
      if (wanted === undefined || place === undefined) return undefined;
      const path = layout.mountPoint(wanted.spec, place.spec);
      // Whoever is given it now was not there when it was looked the last time.
      this.#answers.delete(path);
      const taken = this.#takenPlaces.why(wanted.spec.id, operation.publication, path);
      return taken && Promise.resolve(taken);
    }
    if (operation.kind !== 'unpublish' || isBeside(operation)) return undefined;
    const volume = belief.volumes.get(operation.volume);
    // In quarantine another node may have it by now: it comes down, whoever loses it.
    if (volume === undefined || volume.quarantine !== undefined) return undefined;
    const place = this.#placeOf(volume, operation.publication);
    return place === undefined || this.#forced.has(place.pod) ? undefined : this.#why(place);
  }

  ended(operation: Operation): void {
    this.#takenPlaces.ended(operation);
  }

  released(pod: PodUid): void {
    for (const { volume, path } of this.#unwanted().filter((one) => one.pod === pod)) {
      this.#answers.delete(path);
      this.#parts.onChanged(volume);
    }
  }

  forceRelease(pod: PodUid): void {
    this.#forced.add(pod);
    this.released(pod);
  }

  noteWish(): void {
    const { belief } = this.#parts;
    for (const pod of this.#forced)
      if (this.#isWanted(pod) || belief.ofPod(pod).length === 0) this.#forced.delete(pod);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  async #why(place: Place): Promise<Failure | undefined> {
    const holders = await this.#holdersOf(place);
    const failure = this.#judge(place, holders);
    const told = toldOf(failure);
    if (told === undefined) {
      this.#held.delete(place.path);
      this.#copiedSinceMs.delete(place.path);
    } else {
      this.#held.set(place.path, { volume: place.volume, told });
      this.#lookAgainLater();
    }
    return failure;
  }

  async #holdersOf(place: Place): Promise<Result<readonly PlaceHolder[]>> {
    const { host } = this.#parts;
    const askedMs = host.nowMs();
    // A look that began before the question may have passed by whoever came since.
    for (;;) {
      const known = this.#answers.get(place.path);
      if (known !== undefined && known.atMs >= askedMs - FRESH_MS) return known.holders;
      await (this.#pass ?? this.#begin([place, ...this.#unwanted()]));
      if (this.#stopped) return UNKNOWN;
    }
  }

  /** One look for all that is to come down: what each place costs is nothing beside the walk over the processes. */
  #begin(places: readonly Place[]): Promise<void> {
    const pass = this.#ask([...new Set(places.map(({ path }) => path))]).finally(() => {
      this.#pass = undefined;
    });
    this.#pass = pass;
    return pass;
  }

  async #ask(paths: readonly AbsolutePath[]): Promise<void> {
    const { host, layout } = this.#parts;
    const atMs = host.nowMs();
    const found = await host.findPlaceHolders(paths, layout.pods);
    this.#costMs = host.nowMs() - atMs;
    this.#answers.clear();
    for (const [index, path] of paths.entries()) {
      const holders = found.ok ? { ok: true as const, value: found.value[index] ?? [] } : found;
      // Good for as long after its end as before: a failure is not asked for again by each of many at once.
      this.#answers.set(path, { atMs: found.ok ? atMs : host.nowMs(), holders });
    }
  }

  #judge(place: Place, holders: Result<readonly PlaceHolder[]>): Failure | undefined {
    const { path, pod } = place;
    if (!holders.ok) {
      const message = `whether anybody still has it cannot be seen, so it stays: ${holders.failure.message}`;
      return { ...holders.failure, message, effect: 'none' };
    }
    const all = holders.value;
    const isCopied = all.every(({ how }) => how === 'copy');
    if (!isCopied || all.length === 0) this.#copiedSinceMs.delete(path);
    if (all.length === 0) return undefined;
    const nowMs = this.#parts.host.nowMs();
    const sinceMs = this.#copiedSinceMs.get(path) ?? nowMs;
    if (isCopied) this.#copiedSinceMs.set(path, sinceMs);
    if (isCopied && nowMs - sinceMs >= COPY_HOLD_MS) return undefined;
    const bound = isCopied ? `, at most ${COPY_HOLD_MS / 1_000} s` : '';
    // By its uid: who is replaced leaves a name that can mean his successor, and is refused.
    const message = this.#isWanted(pod)
      ? `${this.#whyItGoes(place)}, and somebody still has it: it stays until he has ended${bound}`
      : `the pod is not wanted any more, and somebody still has the volume: it stays until he has ended${bound}, ` +
        `or for "mooring release ${pod} --force"`;
    const blocker = all.map(holderText).join(', ').slice(0, BLOCKER_LENGTH_MAX);
    return { code: 'volume-held', message, effect: 'none', blocker };
  }

  #lookAgainLater(): void {
    if (this.#cancel !== undefined || this.#stopped) return;
    const delayMs = Math.min(AGAIN_MS_MAX, Math.max(AGAIN_MS_MIN, SHARE_OF_COST * this.#costMs));
    this.#cancel = this.#parts.host.timer(delayMs, () => {
      this.#cancel = undefined;
      void this.#lookAgain();
    });
  }

  async #lookAgain(): Promise<void> {
    const places = this.#unwanted();
    const waiting = new Map(places.map((place) => [place.path, place]));
    for (const path of this.#held.keys()) {
      if (waiting.has(path)) continue;
      this.#held.delete(path);
      this.#copiedSinceMs.delete(path);
    }
    if (this.#held.size === 0) return;
    await (this.#pass ?? this.#begin(places));
    if (this.#stopped) return;
    for (const [path, { volume, told }] of this.#held) {
      const place = waiting.get(path);
      const answer = this.#answers.get(path);
      if (place === undefined || answer === undefined) continue;
      const now = toldOf(this.#judge(place, answer.holders));
      if (now === told) continue;
      // Said once: who hears of it may look no more, as of a volume in quarantine.
      if (now === undefined) this.#held.delete(path);
      else this.#held.set(path, { volume, told: now });
      this.#parts.onChanged(volume);
    }
    this.#lookAgainLater();
  }

  /** An operator's word is heard of no such pod: the next one would find its volumes gone from under it. */
  #isWanted(pod: PodUid): boolean {
    return isPodWanted(this.#parts.desired().volumes, pod);
  }

  #whyItGoes({ volume, key }: Place): string {
    const isWantedThere = this.#parts.desired().volumes.get(volume)?.publications.has(key) === true;
    return isWantedThere ? 'it is to be set up anew' : 'the pod does not want this volume any more';
  }

  /** All that stands and is not wanted, as far as anybody could have it. */
  #unwanted(): readonly Place[] {
    const { belief, desired } = this.#parts;
    const { volumes } = desired();
    return [...belief.volumes].flatMap(([id, volume]) => {
      const wanted = volumes.get(id)?.publications;
      const gone = [...volume.publications.keys()].filter((key) => wanted?.has(key) !== true);
      return gone.flatMap((key) => this.#placeOf(volume, key) ?? []);
    });
  }

  #placeOf({ spec, publications }: ActualVolume, key: PublicationKey): Place | undefined {
    const publication = publications.get(key)?.spec;
    // What is the machine's own stays anyway, and who has a device open is a matter of the kernel and of the driver.
    const isOwn = traitsOf(spec).isInPlace === true && !isOrphan(spec);
    if (publication === undefined || isOwn || isDevice(spec)) return undefined;
    const path = this.#parts.layout.mountPoint(spec, publication);
    return { volume: spec.id, key, pod: podOf(key), path };
  }
}

/** Who has it, and until when, as people are told; undefined: nobody. */
function toldOf(failure: Failure | undefined): string | undefined {
  return failure?.code === 'volume-held' ? `${failure.blocker} ${failure.message}` : failure?.code;
}

const UNKNOWN = fail({ code: 'no-longer-wanted', message: 'the agent ends', effect: 'none' });
