/**
 * One watch: what comes after its version, in order and each thing once, some time after it came about. What leaves the
 * selection is told as deleted. Bookmarks say how far it has come.
 */
import type { Cancel } from '../../../mount/host.ts';
import type { ApiFailure } from '../../../kubernetes/api/api-failure.ts';
import type { Random } from '../random.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { statusObject } from './api-answer.ts';
import { type ApiFaults, WATCH_STALL_MS_MAX } from './api-faults.ts';
import type { ApiTarget } from './api-path.ts';
import { InOrder } from './in-order.ts';
import { type Json, metadataOf } from './json-object.ts';
import { type Change, isIn, type ObjectStore } from './object-store.ts';

/** Whoever is told. */
export interface Watching {
  readonly line: (event: unknown) => void;
  /** Undefined: in order. */
  readonly ended: (failure?: ApiFailure) => void;
}

export interface WatchStreamParts {
  readonly store: ObjectStore;
  readonly time: Pick<VirtualTime, 'nowMs' | 'after'>;
  readonly random: Random;
  readonly faults: () => ApiFaults;
  readonly target: ApiTarget;
  readonly isSelected: (object: Json) => boolean;
  readonly watching: Watching;
  readonly onEnd: () => void;
}

const BOOKMARK_MS = 60_000;
const SECOND_MS = 1_000;
/** One of so many events comes in one piece of the stream with all that are on their way behind it. */
const PIECE = 4;
export const CONNECTION_LOST: ApiFailure = {
  code: 'unreachable',
  message: 'the connection was lost',
  effect: 'none',
};

export class WatchStream {
  readonly #parts: WatchStreamParts;
  readonly #events: InOrder;
  readonly #timers = new Set<Cancel>();
  #stopHearing: () => void = () => {};
  #isOver = false;
  #sent = 0;
  /** Nothing up to this version is told: the server may have yet to come to it, after a backup was restored. */
  #after = 0;

  constructor(parts: WatchStreamParts) {
    this.#parts = parts;
    this.#events = new InOrder(parts.time);
  }

  /** `version`: empty or `0`: what there is comes first. */
  begin(version: string): void {
    const { store, target, time } = this.#parts;
    const isFromStart = version === '' || version === '0';
    const sendsAll = isFromStart || target.query.get('sendInitialEvents') === 'true';
    if (sendsAll) this.#tellAll();
    else this.#after = Number(version);
    if (!sendsAll) for (const change of store.since(this.#after)) this.#hear(change);
    this.#stopHearing = store.onChange((change) => this.#hear(change));
    const seconds = Number(target.query.get('timeoutSeconds') ?? 0);
    if (seconds > 0) this.#timers.add(time.after(seconds * SECOND_MS, () => this.end()));
    if (target.query.get('allowWatchBookmarks') === 'true') this.#planBookmark();
  }

  /** Has anything come about that it was not told of yet? */
  isBehind(): boolean {
    return this.#events.size > 0;
  }

  /** History does not go back so far. */
  expire(): void {
    this.#silence();
    const object = statusObject(410, 'too old resource version');
    this.#events.send(() => {
      this.#parts.watching.line({ type: 'ERROR', object });
      this.#over(undefined);
    }, 0);
  }

  /** In order; what was not told yet is told by the next watch. */
  end(): void {
    this.#silence();
    this.#events.send(() => this.#over(undefined), 0);
  }

  /** The connection is lost. */
  cut(): void {
    this.#silence();
    this.#events.send(() => this.#over(CONNECTION_LOST), 0);
  }

  /** Whoever watched has gone. */
  drop(): void {
    this.#silence();
    this.#isOver = true;
    this.#parts.onEnd();
  }

  catchUp(): void {
    this.#events.flush();
  }

  #tellAll(): void {
    const { store, target, isSelected } = this.#parts;
    const { version } = store;
    for (const [, object] of store.list(target.collection))
      if (isSelected(object)) this.#send({ type: 'ADDED', object });
    if (target.query.get('sendInitialEvents') !== 'true') return;
    this.#send(this.#bookmark(version, { annotations: { 'k8s.io/initial-events-end': 'true' } }));
  }

  #planBookmark(): void {
    const { time, store } = this.#parts;
    this.#timers.add(
      time.after(BOOKMARK_MS, () => {
        if (store.version >= this.#after) this.#send(this.#bookmark(store.version));
        this.#planBookmark();
      }),
    );
  }

  #bookmark(version: number, more: Json = {}): object {
    const { kind, apiVersion } = this.#parts.target;
    const metadata = { resourceVersion: `${version}`, ...more };
    return { type: 'BOOKMARK', object: { kind, apiVersion, metadata } };
  }

  #hear(change: Change): void {
    const { target, isSelected } = this.#parts;
    if (change.version <= this.#after || !isIn(change.collection, target.collection)) return;
    const { before, after, version } = change;
    const was = before !== undefined && isSelected(before);
    const is = after !== undefined && isSelected(after);
    if (is) this.#send({ type: was ? 'MODIFIED' : 'ADDED', object: after });
    else if (was) {
      const metadata = { ...metadataOf(before), resourceVersion: `${version}` };
      this.#send({ type: 'DELETED', object: { ...before, metadata } });
    }
  }

  #send(event: object): void {
    const { random, faults } = this.#parts;
    const { watchLagMsMax, watchStall } = faults();
    const stallMs = random.chance(watchStall) ? random.between(1_000, WATCH_STALL_MS_MAX) : 0;
    this.#sent += 1;
    const isPiece = this.#sent % PIECE === 0;
    this.#events.send(() => {
      this.#parts.watching.line(event);
      if (isPiece) this.#events.flush();
    }, random.between(0, watchLagMsMax) + stallMs);
  }

  /** Nothing more is heard, and what was not told yet never is. */
  #silence(): void {
    this.#stopHearing();
    this.#stopHearing = () => {};
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#events.clear();
  }

  #over(failure: ApiFailure | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#silence();
    this.#parts.onEnd();
    this.#parts.watching.ended(failure);
  }
}
