/** The Node object of this machine: followed once, for all who read it or write to it. */
import { WENT_BACK_MS } from '../../../kubernetes/api/list-age.ts';
import type { ApiObjectEnvelope } from '../../../kubernetes/api/api-object.ts';
import type { ApiTransport } from '../../../kubernetes/api/api-transport.ts';
import { createReflector, type Reflection } from '../../../kubernetes/api/reflector.ts';
import { oneNode } from '../../../kubernetes/api/resource-path.ts';
import { compareResourceVersions } from '../../../kubernetes/api/resource-version.ts';
import type { Cancel, Clock } from '../../../mount/host.ts';

export interface NodeObjectParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly nodeName: string;
}

export interface NodeObject {
  start(): void;
  stop(): void;
  /** What the watch says. */
  reflection(): Reflection;
  /** The newest that anybody has read, by watch or answer; undefined when it is not there, or was not read yet. */
  current(): ApiObjectEnvelope | undefined;
  /** The server has answered with it. An older one than is known changes nothing. */
  learn(node: ApiObjectEnvelope): void;
  /** The server does not have it as it is known, and has told nothing newer: it is listed anew. */
  doubt(): void;
  onChange(listener: () => void): Cancel;
  /** Each state that the watch tells, in order, though a newer one is known. */
  onState(listener: (state: NodeState) => void): Cancel;
}

export interface NodeState {
  /** Undefined: there is none. */
  readonly node: ApiObjectEnvelope | undefined;
  /** It was listed anew: between it and the state before there may have been others. */
  readonly isAfterGap: boolean;
}

/** Lists that are newer than all that was seen may have the Node as it was before, and go on so: it was set back. */
class EarlierNode {
  readonly #clock: NodeObjectParts['clock'];
  readonly #relist: () => void;
  /** Host clock: when the Node that is known was read. */
  #knownMs = Number.NEGATIVE_INFINITY;
  /** When the first of these lists was asked for. */
  #sinceMs: number | undefined;
  #cancel: Cancel = () => {};

  constructor(clock: NodeObjectParts['clock'], relist: () => void) {
    this.#clock = clock;
    this.#relist = relist;
  }

  noteKnown(): void {
    this.forget();
    this.#knownMs = this.#clock.nowMs();
  }

  forget(): void {
    this.#cancel();
    this.#sinceMs = undefined;
  }

  isInsistedOn(
    listed: ApiObjectEnvelope | undefined,
    known: ApiObjectEnvelope | undefined,
    askedMs: number | undefined,
  ): boolean {
    if (askedMs === undefined || !isEarlier(listed, known)) {
      this.forget();
      return false;
    }
    // What is known may have been written after this list was asked for.
    if (askedMs <= this.#knownMs) return false;
    if (this.#sinceMs === undefined) {
      this.#sinceMs = askedMs;
      // Whoever has nothing to write of the Node is refused nothing, and asks for no list.
      this.#cancel = this.#clock.timer(WENT_BACK_MS, this.#relist);
    }
    return askedMs - this.#sinceMs >= WENT_BACK_MS;
  }
}

function isEarlier(one: ApiObjectEnvelope | undefined, other: ApiObjectEnvelope | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  return compareResourceVersions(one.resourceVersion, other.resourceVersion) < 0;
}

export function createNodeObject({ transport, clock, random, nodeName }: NodeObjectParts): NodeObject {
  const listeners = new Set<() => void>();
  const stateListeners = new Set<(state: NodeState) => void>();
  let newest: ApiObjectEnvelope | undefined;
  let wasThere = false;
  let listedMs: number | undefined;
  let setBackMs: number | undefined;
  const earlier = new EarlierNode(clock, () => reflector.relist());

  function take(node: ApiObjectEnvelope): boolean {
    if (newest !== undefined && compareResourceVersions(node.resourceVersion, newest.resourceVersion) <= 0)
      return false;
    newest = node;
    earlier.noteKnown();
    return true;
  }

  function tell(): void {
    for (const listener of [...listeners]) listener();
  }

  function tellState(state: NodeState): void {
    for (const listener of [...stateListeners]) listener(state);
  }

  function look(): void {
    const { objects, ...heard } = reflector.current();
    const [seen] = objects?.values() ?? [];
    const isListed = heard.listedMs !== listedMs;
    if (isListed) tellState({ node: seen, isAfterGap: listedMs !== undefined });
    listedMs = heard.listedMs;
    // What anybody has read before is of a state that is no more.
    if (heard.setBackMs !== setBackMs) newest = undefined;
    setBackMs = heard.setBackMs;
    if (isListed && earlier.isInsistedOn(seen, newest, listedMs)) newest = undefined;
    if (seen !== undefined) take(seen);
    else if (wasThere && objects !== undefined) newest = undefined;
    wasThere = seen !== undefined;
    tell();
  }

  const reflector = createReflector({
    transport,
    clock,
    random,
    selection: oneNode(nodeName),
    onChange: look,
    onEvent: (node) => tellState({ node, isAfterGap: false }),
  });
  return {
    start: () => reflector.start(),
    stop() {
      earlier.forget();
      reflector.stop();
      for (const told of [listeners, stateListeners]) told.clear();
    },
    reflection: () => reflector.current(),
    current: () => newest,
    learn(node) {
      if (take(node)) tell();
    },
    doubt: () => reflector.relist(),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onState(listener) {
      stateListeners.add(listener);
      return () => stateListeners.delete(listener);
    },
  };
}
