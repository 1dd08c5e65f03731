/**
 * All objects of one selection, kept as the API server has them: a consistent list, then a watch with bookmarks, and a
 * list again when the watch cannot go on, or is silent. What is seen never goes back in time, until the server insists,
 * and what cannot be read is not absent.
 */
import type { Cancel, Clock } from '../../mount/host.ts';
import { Retries } from '../../mount/process/back-off.ts';
import { type ApiObjectEnvelope, readWatchEvent, type WatchEvent } from './api-object.ts';
import type { ApiFailure } from './api-failure.ts';
import type { ApiTransport } from './api-transport.ts';
import { ListAge, WENT_BACK } from './list-age.ts';
import {
  createListReader,
  type Listed,
  type ListReader,
  MALFORMED,
  OBJECTS_MAX,
  TOO_MANY,
  whole,
} from './read-list.ts';
import { type ResourceSelection, watchPath } from './resource-path.ts';
import { compareResourceVersions } from './resource-version.ts';
import { Silence } from './silence.ts';

export interface ReflectorParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly selection: ResourceSelection;
  /** Something of `current()` is another one now. Calls of one turn are one. */
  readonly onChange: () => void;
  /** Each change that the watch tells, in order: what it came to, undefined when it is gone. Lists are none. */
  readonly onEvent?: (object: ApiObjectEnvelope | undefined) => void;
}

/** What a reflector knows at one moment; host clock. */
export interface Reflection {
  /** Each object is found by its uid; undefined before the first list. */
  readonly objects: ReadonlyMap<string, ApiObjectEnvelope> | undefined;
  /** When the last list that counted was asked for. */
  readonly listedMs: number | undefined;
  /** As `listedMs`, of the last that counted by insistence: what was seen before it is of a state that is no more. */
  readonly setBackMs: number | undefined;
  /** Uids that the last list that counted no longer had, and no event had taken away before. */
  readonly droppedByList: ReadonlySet<string>;
  /** Why nothing is heard now, and since when. Undefined while a watch is open. */
  readonly trouble: { readonly failure: ApiFailure; readonly sinceMs: number } | undefined;
}

export interface Reflector {
  start(): void;
  stop(): void;
  current(): Reflection;
  /** Asks for one more consistent list, soon, and after one that is under way; what is known stays until then. */
  relist(): void;
}

const LINE_BYTES_MAX = 4 * 1_024 * 1_024;
const WATCH_SECONDS_MIN = 300;
const WATCH_SECONDS_MORE = 300;
const WATCH_END_MS = 30_000;
const RETRY = { firstMs: 800, maxMs: 30_000 } as const;
const HEALTHY_MS = 120_000;
const REOPEN_MS_MIN = 1_000;
/**
 * A stream that was open for so long was cut by somebody between, as balancers do with what is idle, and by no server
 * in trouble: it is opened again like one that has ended.
 */
const LIVED_MS = 5_000;
const HTTP_GONE = 410;

export function createReflector(parts: ReflectorParts): Reflector {
  return new ListingReflector(parts);
}

class ListingReflector implements Reflector {
  readonly #parts: ReflectorParts;
  readonly #lists: ListReader;
  #objects: Map<string, ApiObjectEnvelope> | undefined;
  #listedMs: number | undefined;
  #setBackMs: number | undefined;
  #droppedByList: ReadonlySet<string> = new Set();
  #trouble: Reflection['trouble'];
  /** The newest version seen of this selection. */
  #version: string | undefined;
  /** Where a stream last ended with a failure of the server's. */
  #failedAt: string | undefined;
  readonly #age = new ListAge();
  #cancel: Cancel = () => {};
  readonly #silence: Silence;
  #cancelHealth: Cancel = () => {};
  readonly #retries = new Retries(RETRY);
  #openedMs = Number.NEGATIVE_INFINITY;
  /** Grows with each attempt: what an earlier one still says is not heard. */
  #attempt = 0;
  /** A list is under way, or will be at its time. */
  #isListDue = false;
  /** How often one more list was asked for. */
  #wishes = 0;
  #isToTell = false;
  #isStopped = false;

  constructor(parts: ReflectorParts) {
    this.#parts = parts;
    this.#lists = createListReader(parts);
    this.#silence = new Silence(parts.clock, () => void this.#list());
  }

  start(): void {
    void this.#list();
  }

  stop(): void {
    this.#isStopped = true;
    this.#begin();
  }

  current(): Reflection {
    return {
      objects: this.#objects,
      listedMs: this.#listedMs,
      setBackMs: this.#setBackMs,
      droppedByList: this.#droppedByList,
      trouble: this.#trouble,
    };
  }

  /** Given up for the next one, the list of a server that takes its time would never come to its end. */
  relist(): void {
    this.#wishes += 1;
    if (!this.#isStopped && !this.#isListDue) void this.#list();
  }

  /** Ends what the last attempt has open. */
  #begin(): number {
    this.#cancel();
    this.#silence.end();
    this.#cancelHealth();
    this.#cancel = () => {};
    this.#isListDue = false;
    this.#attempt += 1;
    return this.#attempt;
  }

  async #list(): Promise<void> {
    const attempt = this.#begin();
    const wishes = this.#wishes;
    this.#isListDue = true;
    const listed = await this.#lists.read();
    if (this.#isStopped || attempt !== this.#attempt) return;
    if (!listed.ok) return this.#retry(listed.failure, 'list');
    const age = this.#age.of(listed.value, this.#version);
    if (age === 'older') return this.#retry(WENT_BACK, 'list');
    if (age === 'set-back') this.#setBackMs = listed.value.askedMs;
    this.#take(listed.value);
    if (wishes === this.#wishes) this.#watch();
    else void this.#list();
  }

  #take({ objects, resourceVersion, askedMs }: Listed): void {
    const before = this.#objects ?? new Map<string, ApiObjectEnvelope>();
    this.#droppedByList = new Set([...before.keys()].filter((uid) => !objects.has(uid)));
    this.#objects = new Map(objects);
    this.#listedMs = askedMs;
    this.#version = resourceVersion;
    this.#silence.forget();
    this.#tell();
  }

  #watch(): void {
    const { transport, clock, random, selection } = this.#parts;
    const attempt = this.#begin();
    const seconds = WATCH_SECONDS_MIN + Math.floor(random() * WATCH_SECONDS_MORE);
    this.#openedMs = clock.nowMs();
    let livedFromMs = Number.POSITIVE_INFINITY;
    const isMine = (): boolean => !this.#isStopped && attempt === this.#attempt;
    this.#cancel = transport.watch(
      {
        path: watchPath(selection, this.#version ?? '', seconds),
        lineBytesMax: LINE_BYTES_MAX,
        deadlineMs: seconds * 1_000 + WATCH_END_MS,
      },
      {
        opened: () => {
          livedFromMs = clock.nowMs();
          if (isMine()) this.#heard();
        },
        line: (value) => {
          if (isMine()) this.#hear(readWatchEvent(value));
        },
        ended: (failure) => {
          if (!isMine()) return;
          const isCut = failure?.code === 'unreachable' && clock.nowMs() - livedFromMs >= LIVED_MS;
          if (failure === undefined || isCut) this.#reopen();
          else if (failure.code === 'expired') this.#listSoon();
          // Opened again at the same version it would tell the same first; a page holds more than a line.
          else if (failure.code === 'too-large') this.#retry(failure, 'list');
          else this.#retry(failure, 'watch');
        },
      },
    );
    this.#silence.begin();
  }

  #heard(): void {
    this.#silence.noteOpened();
    this.#healthy();
    if (this.#trouble === undefined) return;
    this.#trouble = undefined;
    this.#tell();
  }

  #healthy(): void {
    this.#cancelHealth();
    this.#cancelHealth = this.#parts.clock.timer(HEALTHY_MS, () => this.#retries.reset());
  }

  #hear(event: WatchEvent | undefined): void {
    if (event === undefined) return this.#retry(MALFORMED, 'list');
    this.#silence.noteHeard();
    if (event.kind === 'error') {
      if (event.status === HTTP_GONE) return this.#listSoon();
      const { status, message } = event;
      const failure: ApiFailure = { code: 'failed', message: `${message} (${status})`, effect: 'none' };
      // What cannot be told it says of each watch from there (an object that it cannot decode): a list leads past it.
      const isAgain = this.#failedAt === this.#version;
      this.#failedAt = this.#version;
      return this.#retry(failure, isAgain ? 'list' : 'watch');
    }
    const version = event.kind === 'bookmark' ? event.resourceVersion : event.object.resourceVersion;
    // A watch tells nothing from before where it began: the server's data was set back under it.
    if (this.#version !== undefined && compareResourceVersions(version, this.#version) < 0)
      return this.#listSoon();
    this.#version = version;
    if (event.kind !== 'bookmark') this.#apply(event.kind, event.object);
  }

  #apply(kind: 'changed' | 'deleted', seen: ApiObjectEnvelope): void {
    const objects = this.#objects;
    const held = objects?.get(seen.uid);
    if (objects === undefined) return;
    if (kind === 'deleted') {
      if (held === undefined) return;
      objects.delete(seen.uid);
      this.#parts.onEvent?.(undefined);
      return this.#tell();
    }
    if (held !== undefined && compareResourceVersions(seen.resourceVersion, held.resourceVersion) <= 0)
      return;
    if (held === undefined && objects.size >= OBJECTS_MAX) return this.#retry(TOO_MANY, 'list');
    const object = whole(seen, this.#parts.selection);
    objects.set(seen.uid, object);
    this.#parts.onEvent?.(object);
    this.#tell();
  }

  /** A stream that ended in order is opened again at the version it had come to. */
  #reopen(): void {
    this.#begin();
    const waitMs = Math.max(0, this.#openedMs + REOPEN_MS_MIN - this.#parts.clock.nowMs());
    this.#cancel = this.#parts.clock.timer(waitMs, () => this.#watch());
  }

  /** What was missed meanwhile is not known; that is no trouble, if it does not happen all the time. */
  #listSoon(): void {
    this.#begin();
    this.#isListDue = true;
    const waitMs = Math.max(0, (this.#listedMs ?? 0) + REOPEN_MS_MIN - this.#parts.clock.nowMs());
    this.#cancel = this.#parts.clock.timer(waitMs, () => void this.#list());
  }

  #retry(failure: ApiFailure, next: 'list' | 'watch'): void {
    this.#begin();
    this.#isListDue = next === 'list';
    const { clock, random } = this.#parts;
    this.#trouble = { failure, sinceMs: this.#trouble?.sinceMs ?? clock.nowMs() };
    this.#tell();
    const waitMs = this.#retries.nextMs({ leastMs: failure.retryAfterMs, share: random() });
    this.#cancel = clock.timer(waitMs, () => (next === 'list' ? void this.#list() : this.#watch()));
  }

  #tell(): void {
    if (this.#isToTell) return;
    this.#isToTell = true;
    queueMicrotask(() => {
      this.#isToTell = false;
      if (!this.#isStopped) this.#parts.onChange();
    });
  }
}
