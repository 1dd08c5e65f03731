/** The VolumeAttachments of the volumes that are here or wait to be, each followed by its own name and no other. */
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { createReflector, type Reflector } from '../../kubernetes/api/reflector.ts';
import { attachmentPath, oneAttachment } from '../../kubernetes/api/resource-path.ts';
import { attachmentSight } from '../../kubernetes/objects/attachment-sight.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import {
  createNamedObject,
  type NamedAnswer,
  type NamedObject,
  type ReadPace,
} from '../source/cluster/named-object.ts';
import type { AttachmentAnswer } from './attachment-verdict.ts';

export interface AttachmentBookParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Something else is known of the attachment of that name. */
  readonly onChange: (name: string) => void;
  /** Whoever attaches for this driver was told RESOURCE_EXHAUSTED; once for each time. */
  readonly onExhausted: (driver: string) => void;
}

export interface AttachmentBook {
  /** What is known; followed from here on. `isWaitedFor`: it is asked for often until it is attached. */
  answer(name: string, isWaitedFor: boolean): AttachmentAnswer;
  isFollowed(name: string): boolean;
  /** What the server says now, asked for after the call; followed from here on. */
  readNow(name: string): Promise<AttachmentAnswer>;
  /** Host clock: when the server last told of it; -Infinity before. */
  heardMs(name: string): number;
  /** Host clock: when what is known of it was asked for; -Infinity before. */
  askedMs(name: string): number;
  /** A reason to believe that it is another one. */
  hint(name: string): void;
  /** It may have been replaced unseen: where no watch tells of that, it is read within half a minute. */
  doubt(name: string): void;
  /** All others are followed no more. */
  keep(names: ReadonlySet<string>): void;
  stop(): void;
}

const PACE: ReadPace = { waitingFirstMs: 300, waitingMaxMs: 10_000, standingMs: 600_000 };
/** A second read this much later, before what is gone is believed to be gone. */
const CONFIRM_MS = 2_000;
/** All nodes of a cluster lose their watches at once when its server is started again, and a node has many volumes. */
const DOUBT_MS_MAX = 30_000;
/** A right that is missing is tried again: an administrator may have added it. */
const DENIED_MS = 600_000;
/** gRPC's. */
const RESOURCE_EXHAUSTED = 8;

export function createAttachmentBook(parts: AttachmentBookParts): AttachmentBook {
  const followers = new Map<string, Follower>();
  const rights: WatchRight = { deniedUntilMs: Number.NEGATIVE_INFINITY, waiting: new Set() };

  function open(name: string, isReadFirst: boolean): Follower {
    const known = followers.get(name);
    if (known !== undefined) return known;
    const follower = new Follower({ parts, name, rights, isReadFirst });
    followers.set(name, follower);
    return follower;
  }

  return {
    answer: (name, isWaitedFor) => open(name, false).answer(isWaitedFor),
    isFollowed: (name) => followers.has(name),
    readNow: (name) => open(name, true).readNow(),
    heardMs: (name) => followers.get(name)?.heardMs() ?? Number.NEGATIVE_INFINITY,
    askedMs: (name) => followers.get(name)?.askedMs() ?? Number.NEGATIVE_INFINITY,
    hint: (name) => followers.get(name)?.hint(),
    doubt: (name) => followers.get(name)?.doubt(),
    keep(names) {
      for (const [name, follower] of followers) {
        if (names.has(name)) continue;
        followers.delete(name);
        follower.stop();
      }
    },
    stop() {
      for (const follower of followers.values()) follower.stop();
      followers.clear();
    },
  };
}

interface FollowerParts {
  readonly parts: AttachmentBookParts;
  readonly name: string;
  readonly rights: WatchRight;
  readonly isReadFirst: boolean;
}

interface WatchRight {
  /** Host clock: until then nobody tries to watch, as it was denied, or somebody is trying. */
  deniedUntilMs: number;
  /** Those that would. */
  readonly waiting: Set<() => void>;
}

/** Read by name, and beside that watched where this is allowed: then a change is a reason to read. */
class Follower {
  readonly #parts: AttachmentBookParts;
  readonly #name: string;
  readonly #rights: WatchRight;
  readonly #named: NamedObject;
  #watch: Reflector | undefined;
  #watched: string | undefined;
  #isWaitedFor = true;
  /** Host clock: when the first of the reads was asked for that found nothing. */
  #absentMs: number | undefined;
  #cancelConfirm: Cancel = () => {};
  #cancelDoubt: Cancel | undefined;
  #cancelWatch: Cancel = () => {};
  readonly #startWaiting = (): void => this.#startWatch();
  /** The error that was told. */
  #exhausted: string | undefined;

  constructor({ parts, name, rights, isReadFirst }: FollowerParts) {
    const { transport, clock, random } = parts;
    this.#parts = parts;
    this.#name = name;
    this.#rights = rights;
    this.#named = createNamedObject({
      transport,
      clock,
      random,
      path: attachmentPath(name),
      isWaitedFor: (answer) => {
        // What stands and is known not to be attached is taken down, and whoever wants it waits for it.
        const isWanted = this.#isWaitedFor || answer.kind !== 'unknown';
        return isWanted && !this.#isWatched() && !isAttached(answer);
      },
      pace: PACE,
      isReadFirst,
      onChange: () => this.#changed(),
    });
    if (clock.nowMs() >= rights.deniedUntilMs) this.#startWatch();
    else this.#watchLater();
  }

  answer(isWaitedFor: boolean): AttachmentAnswer {
    if (isWaitedFor && !this.#isWaitedFor) this.#named.read();
    this.#isWaitedFor = isWaitedFor;
    return this.#judged(this.#named.answer());
  }

  async readNow(): Promise<AttachmentAnswer> {
    return this.#judged(await this.#named.readNow());
  }

  heardMs(): number {
    return this.#named.heardMs();
  }

  askedMs(): number {
    return this.#named.askedMs();
  }

  hint(): void {
    this.#named.read();
  }

  doubt(): void {
    const { clock, random } = this.#parts;
    this.#cancelDoubt ??= clock.timer(random() * DOUBT_MS_MAX, () => {
      this.#cancelDoubt = undefined;
      if (!this.#isWatched()) this.#named.read();
    });
  }

  stop(): void {
    this.#cancelConfirm();
    this.#cancelDoubt?.();
    this.#waitNoMore();
    this.#named.stop();
    this.#watch?.stop();
  }

  #judged(answer: NamedAnswer): AttachmentAnswer {
    if (answer.kind === 'absent') return { kind: 'absent', isConfirmed: this.#isAbsenceConfirmed() };
    if (answer.kind === 'unknown')
      return { kind: 'unknown', isDenied: answer.isDenied === true, message: answer.message };
    const sight = attachmentSight(answer.object.uid, answer.object.value);
    if (sight !== undefined) return { kind: 'present', sight };
    return { kind: 'unknown', isDenied: false, message: 'it cannot be understood' };
  }

  #isAbsenceConfirmed(): boolean {
    return this.#absentMs !== undefined && this.#named.askedMs() >= this.#absentMs + CONFIRM_MS;
  }

  #changed(): void {
    if (this.#named.answer().kind === 'absent') this.#confirm();
    else this.#absentMs = undefined;
    this.#noteExhausted();
    this.#parts.onChange(this.#name);
  }

  /** The next try has another time, and another message. */
  #noteExhausted(): void {
    const answer = this.#judged(this.#named.answer());
    if (answer.kind !== 'present' || answer.sight.attachErrorCode !== RESOURCE_EXHAUSTED) return;
    const { attacher, uid, attachError, attachErrorTime } = answer.sight;
    const error = `${uid} ${attachErrorTime} ${attachError}`;
    if (error === this.#exhausted) return;
    this.#exhausted = error;
    this.#parts.onExhausted(attacher);
  }

  #confirm(): void {
    this.#absentMs ??= this.#named.askedMs();
    if (this.#isAbsenceConfirmed()) return;
    this.#cancelConfirm();
    this.#cancelConfirm = this.#parts.clock.timer(CONFIRM_MS + 1, () => this.#named.read());
  }

  #isWatched(): boolean {
    const { objects, trouble } = this.#watch?.current() ?? {};
    return objects !== undefined && trouble === undefined;
  }

  #startWatch(): void {
    const { transport, clock, random } = this.#parts;
    this.#waitNoMore();
    this.#watch = createReflector({
      transport,
      clock,
      random,
      selection: oneAttachment(this.#name),
      onChange: () => this.#heardOfWatch(),
    });
    this.#watch.start();
  }

  /** Only the first of many asks whether it may by now, and the others begin when it was let. */
  #watchLater(): void {
    const { clock } = this.#parts;
    this.#rights.waiting.add(this.#startWaiting);
    this.#cancelWatch = clock.timer(this.#rights.deniedUntilMs - clock.nowMs(), () => {
      if (clock.nowMs() < this.#rights.deniedUntilMs) return this.#watchLater();
      this.#rights.deniedUntilMs = clock.nowMs() + DENIED_MS;
      this.#startWatch();
    });
  }

  #waitNoMore(): void {
    this.#cancelWatch();
    this.#rights.waiting.delete(this.#startWaiting);
  }

  #noteRight(): void {
    this.#rights.deniedUntilMs = Number.NEGATIVE_INFINITY;
    for (const start of [...this.#rights.waiting]) start();
  }

  #heardOfWatch(): void {
    const { objects, trouble } = this.#watch?.current() ?? {};
    if (objects === undefined && trouble?.failure.code === 'denied') {
      this.#rights.deniedUntilMs = this.#parts.clock.nowMs() + DENIED_MS;
      this.#watch?.stop();
      this.#watch = undefined;
      return this.#watchLater();
    }
    if (objects !== undefined && trouble === undefined) this.#noteRight();
    const [seen] = objects?.values() ?? [];
    if (versionOf(seen) === this.#watched) return;
    this.#watched = versionOf(seen);
    this.#named.read();
  }
}

function versionOf(seen: ApiObjectEnvelope | undefined): string | undefined {
  return seen === undefined ? undefined : `${seen.uid} ${seen.resourceVersion}`;
}

/** And stays so, as far as is known: one that is being deleted will be gone, or another one in its place. */
function isAttached(answer: NamedAnswer): boolean {
  if (answer.kind !== 'present') return false;
  const sight = attachmentSight(answer.object.uid, answer.object.value);
  return sight?.attached === true && !sight.deleted;
}
