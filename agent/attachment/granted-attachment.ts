/** The rung `attach` in a cluster: it and this node agree that a volume may be here, and both have said so. */
import { createGathered, type Gathered } from '../../mount/process/gathered.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import { fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { createAttachmentNames } from '../../kubernetes/objects/attachment-name.ts';
import type { GrantedAttachment } from '../../plugins/csi/attach/attachment.ts';
import type { Log } from '../../mount/process/log.ts';
import { noLongerWanted } from '../../plugins/steps.ts';
import type { Attached, VolumeCall } from '../../plugins/plugin.ts';
import { csiVolumeId, type CsiVolumeSpec, type VolumeId } from '../../plugins/volume.ts';
import { type ActualState, type ActualVolume, isSetUp } from '../../reconciler/model/actual-state.ts';
import type { StandingWord } from '../resolve/standing-word.ts';
import type { NodeObject } from '../source/cluster/node-object.ts';
import { type AttachedList, createAttachedList, type ListingChange } from './attached-list.ts';
import { createAttachmentBook, type AttachmentBook } from './attachment-book.ts';
import { type AttachmentFacts, attachmentVerdict, notAttached, type Standing } from './attachment-verdict.ts';
import { createDriverReport, type DriverReport } from './driver-report.ts';
import {
  driversOf,
  isAwaited,
  isComing,
  isLosable,
  isOnlyCalled,
  isTold,
  mayBeLost,
  namesInUse,
} from './attachment-rung.ts';
import { type FollowedVolumes, followedVolumes } from './followed-volumes.ts';
import { createInUseReport, type InUseReport } from './in-use-report.ts';
import { createStandingTimes, type StandingTimes } from './standing-times.ts';
import type { AnnouncingDrivers, DiskReading, StandingWatch } from './standing-watch.ts';

export interface ClusterAttachmentParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly node: NodeObject;
  readonly nodeName: string;
  /** As the server names us among the writers of an object. */
  readonly writer: string;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

export interface ClusterAttachment extends GrantedAttachment, StandingWatch {
  stop(): void;
}

/**
 * Guarantees: a volume is on the Node's list of volumes in use, acknowledged by the server, before it is granted, and
 * until its rungs are down; a grant is read from the server after that acknowledgement; no answer is never absence.
 */
export function createClusterAttachment(parts: ClusterAttachmentParts): ClusterAttachment {
  return new AttachmentByCluster(parts);
}

/** What changes within this is looked at once: each change of each volume is one. */
const LOOK_MS = 20;
const UNREPORTED = Number.POSITIVE_INFINITY;
/** What an attachment has said is told so long without a read. */
const WORD_MS = 10_000;

class AttachmentByCluster implements ClusterAttachment {
  readonly #parts: ClusterAttachmentParts;
  readonly #report: InUseReport;
  readonly #book: AttachmentBook;
  readonly #drivers: DriverReport;
  readonly #list: AttachedList;
  readonly #grantListeners = new Set<(volume: VolumeId) => void>();
  readonly #wordListeners = new Set<() => void>();
  #actual: () => ActualState = () => new Map();
  #followed: FollowedVolumes = new Map();
  readonly #standing: StandingTimes;
  /** Granted in this life: while the server is silent its last word counts. */
  readonly #granted = new Set<VolumeId>();
  /**
   * Refused, and whoever asked was not told of anything since. The value is on the host's clock: what the server said
   * before does not count; `UNREPORTED`: the list of volumes in use was not acknowledged for it.
   */
  readonly #refused = new Map<VolumeId, number>();
  /** The words of the last look. */
  #said = '[]';
  readonly #nameOf: (spec: CsiVolumeSpec) => string;
  readonly #gathered: Gathered;

  constructor(parts: ClusterAttachmentParts) {
    this.#parts = parts;
    this.#nameOf = createAttachmentNames(parts.nodeName);
    this.#standing = createStandingTimes(parts.clock);
    this.#gathered = createGathered(parts.clock, LOOK_MS, () => this.#follow());
    const onExhausted = (driver: string): void => this.#drivers.exhausted(driver);
    this.#book = createAttachmentBook({
      ...parts,
      onExhausted,
      onChange: (one) => this.#attachmentChanged(one),
    });
    this.#report = createInUseReport({
      ...parts,
      standing: () => namesInUse(this.#actual()),
      onSettled: () => this.#tellWaiting(),
    });
    this.#list = createAttachedList({
      ...parts,
      onNewest: (isChanged) => this.#listChanged(isChanged),
      onState: (change) => this.#nodeTold(change),
    });
    const onRenamed = (): void => this.#tellWaiting();
    this.#drivers = createDriverReport({ ...parts, onRenamed, usedDrivers: () => driversOf(this.#actual()) });
  }

  begin(actual: () => ActualState, drivers: AnnouncingDrivers): void {
    this.#actual = actual;
    this.#drivers.begin(drivers);
    this.#list.begin();
    this.#report.begin();
    this.#follow();
  }

  look(): void {
    this.#gathered.soon();
  }

  #follow(): void {
    const followed = followedVolumes(this.#actual(), this.#nameOf);
    for (const id of this.#granted) if (!this.#actual().has(id)) this.#granted.delete(id);
    this.#followed = followed;
    this.#book.keep(new Set(followed.keys()));
    // What is granted was asked for just now, and who is not followed yet is asked about below.
    for (const { spec, name } of this.#standing.note(followed))
      if (!this.#granted.has(spec.id)) this.#book.hint(name);
    // One that only comes is asked for by its attach, when its use is acknowledged: what was said before counts not.
    for (const { name, volume } of followed.values())
      if (isTold(volume) || this.#book.isFollowed(name)) this.#book.answer(name, isComing(volume));
    this.#report.look();
    this.#tellMissed();
    this.#noteWords();
  }

  /** What changed between a refusal and the look at it was news of a volume that nobody followed yet. */
  #tellMissed(): void {
    for (const { spec, name, volume } of this.#followed.values()) {
      const refusedMs = this.#refused.get(spec.id);
      if (!isAwaited(volume) || refusedMs === undefined || this.#book.heardMs(name) < refusedMs) continue;
      const standing = { stands: isSetUp(volume), uid: volume.attachmentUid };
      const verdict = this.#verdict(spec, name, this.#book.answer(name, true), standing);
      if (verdict.kind === 'granted') this.#tellGrant(spec.id);
    }
  }

  /** A word is about what stands, so it may be another because of what was done here. */
  #noteWords(): void {
    const words = [...this.#followed.values()].map(({ spec }) => [spec.id, this.wordOf(spec.id)] as const);
    const said = JSON.stringify(words.filter(([, word]) => word !== undefined));
    if (said === this.#said) return;
    this.#said = said;
    this.#tellWord();
  }

  diskRead(read: DiskReading | Failure): void {
    this.#report.diskRead(read);
  }

  stop(): void {
    this.#gathered.stop();
    this.#list.stop();
    this.#report.stop();
    this.#drivers.stop();
    this.#book.stop();
    this.#grantListeners.clear();
    this.#wordListeners.clear();
  }

  isNeeded({ attachRequired }: CsiVolumeSpec): boolean {
    return attachRequired !== false;
  }

  async attach(spec: CsiVolumeSpec, call: VolumeCall): Promise<Result<Attached>> {
    if (!call.stillWanted()) return noLongerWanted();
    const reported = await this.#report.use(csiVolumeId(spec.driver, spec.volumeHandle));
    if (!reported.ok) {
      this.#refused.set(spec.id, UNREPORTED);
      return reported;
    }
    this.#list.noteUsed(spec);
    const name = this.#nameOf(spec);
    const askedMs = this.#parts.clock.nowMs();
    const { standsUnder } = call.facts;
    // Before the Node lists it, its last word is told, however often somebody asks.
    const isFresh = this.#book.heardMs(name) >= askedMs - WORD_MS;
    const isEarly = standsUnder === undefined && isFresh && !this.#list.has(spec);
    // After the acknowledgement: what was read before may be an attachment that was taken back since.
    const answer = isEarly ? this.#book.answer(name, true) : await this.#book.readNow(name);
    if (!isEarly && answer.kind === 'absent') this.#list.noteAbsent(spec, askedMs);
    const standing = { stands: standsUnder !== undefined, uid: standsUnder };
    const verdict = this.#verdict(spec, name, answer, standing);
    const renaming = standsUnder === undefined ? this.#drivers.renaming(spec.driver) : undefined;
    if (verdict.kind === 'granted' && renaming !== undefined) {
      this.#refused.set(spec.id, UNREPORTED);
      return fail(notAttached(spec, { kind: 'wait', message: renaming }, 'unknown'));
    }
    if (verdict.kind !== 'granted') {
      // One without an answer is asked for again by the book, which tells; or it was answered beside this read.
      this.#refused.set(spec.id, answer.kind === 'unknown' ? askedMs : Number.NEGATIVE_INFINITY);
      return fail(notAttached(spec, verdict, 'unknown'));
    }
    this.#granted.add(spec.id);
    return ok({ publishContext: verdict.publishContext, attachmentUid: verdict.uid });
  }

  async detach(spec: CsiVolumeSpec, call: VolumeCall): Promise<Result<void>> {
    if (!call.stillWanted()) return noLongerWanted();
    const released = await this.#report.release(csiVolumeId(spec.driver, spec.volumeHandle));
    if (released.ok) this.#granted.delete(spec.id);
    else this.#refused.set(spec.id, UNREPORTED);
    return released;
  }

  onChange(listener: (volume: VolumeId) => void): Cancel {
    this.#grantListeners.add(listener);
    return () => this.#grantListeners.delete(listener);
  }

  standing(): readonly VolumeId[] {
    const isAskedAbout = (one: ActualVolume): boolean => isLosable(one) || isOnlyCalled(one);
    return [...this.#actual().values()].filter(isAskedAbout).map(({ spec }) => spec.id);
  }

  wordOf(id: VolumeId): StandingWord | undefined {
    const volume = this.#actual().get(id);
    if (volume?.spec.kind !== 'csi' || !isTold(volume)) return undefined;
    const { spec } = volume;
    const name = this.#nameOf(spec);
    const answer = this.#book.answer(name, isComing(volume));
    // What was granted goes on while the server is silent. After a restart it has to say so once more.
    if (answer.kind === 'unknown' && this.#granted.has(id)) return undefined;
    const uid = answer.kind === 'present' ? answer.sight.uid : undefined;
    const standing = { stands: !isOnlyCalled(volume), uid: volume.attachmentUid };
    const verdict = this.#verdict(spec, name, answer, standing);
    if (verdict.kind === 'granted') return { word: undefined, uid, said: verdict };
    if (!mayBeLost(volume)) return undefined;
    const blocked = notAttached(spec, verdict, 'none');
    return { word: { lost: verdict.kind === 'lost', blocked }, uid };
  }

  onWord(listener: () => void): Cancel {
    this.#wordListeners.add(listener);
    return () => this.#wordListeners.delete(listener);
  }

  #verdict(spec: CsiVolumeSpec, name: string, answer: AttachmentFacts['answer'], standing: Standing) {
    const { driver } = spec;
    const askedMs = this.#book.askedMs(name);
    const isOfBefore = askedMs < this.#standing.sinceMs(name);
    const said = { isListed: this.#list.has(spec), isNew: this.#list.isNew(spec, askedMs), isOfBefore };
    const { nodeName } = this.#parts;
    return attachmentVerdict({ ...said, answer, name, driver, nodeName }, standing);
  }

  /** What the controller lists is another: whose volume it is may be another, too. Who was refused reads it himself. */
  #nodeTold(change: (spec: CsiVolumeSpec) => ListingChange): void {
    for (const { spec, name, volume } of this.#followed.values()) {
      const how = change(spec);
      if (how === 'unseen' && mayBeLost(volume)) this.#book.doubt(name);
      if (how !== 'changed') continue;
      if (mayBeLost(volume) || (isComing(volume) && !this.#refused.has(spec.id))) this.#book.hint(name);
    }
  }

  #listChanged(isChanged: (spec: CsiVolumeSpec) => boolean): void {
    for (const { spec, name } of this.#followed.values()) if (isChanged(spec)) this.#attachmentChanged(name);
  }

  #attachmentChanged(name: string): void {
    const followed = this.#followed.get(name);
    if (followed === undefined) return;
    if (isAwaited(followed.volume)) this.#tellGrant(followed.spec.id);
    if (mayBeLost(followed.volume) || isOnlyCalled(followed.volume)) this.#tellWord();
  }

  /** Nobody may have looked yet at those that were refused a moment ago. */
  #tellWaiting(): void {
    for (const [volume, askedMs] of [...this.#refused]) if (askedMs === UNREPORTED) this.#tellGrant(volume);
    for (const { spec, volume } of this.#followed.values()) if (isAwaited(volume)) this.#tellGrant(spec.id);
  }

  #tellGrant(volume: VolumeId): void {
    this.#refused.delete(volume);
    for (const listener of [...this.#grantListeners]) listener(volume);
  }

  #tellWord(): void {
    for (const listener of [...this.#wordListeners]) listener();
  }
}
