/** An API server as a source of objects: the pods that are bound to this node, and what they lead to. */
import type { ApiObjectEnvelope } from '../../../kubernetes/api/api-object.ts';
import type { ApiTransport } from '../../../kubernetes/api/api-transport.ts';
import { createReflector, type Reflection, type Reflector } from '../../../kubernetes/api/reflector.ts';
import { allCsiDrivers, podsOfNode } from '../../../kubernetes/api/resource-path.ts';
import type { Failure } from '../../../mount/failure.ts';
import type { Cancel, Host } from '../../../mount/host.ts';
import type { PodUid } from '../../../plugins/volume.ts';
import type { NodeSight, ObjectsSource, SourcePart, SourceReading } from '../objects-source.ts';
import type { ClaimProtection } from '../../claim/claim-desk.ts';
import { type ClusterObjects, createClusterObjects } from './cluster-objects.ts';
import type { ClusterReport } from '../cluster-report.ts';
import { DetachClock } from './detach-clock.ts';
import { LookPace } from '../look-pace.ts';
import type { NodeObject } from './node-object.ts';
import { createPodShrinkGuard, type PodBelief } from './pod-shrink-guard.ts';
import { createReferenceBook, type ReferenceBook } from './reference-book.ts';

export interface ClusterSourceParts {
  readonly host: Pick<Host, 'nowMs' | 'timer' | 'random'>;
  readonly transport: ApiTransport;
  readonly nodeName: string;
  /** Started and stopped with the source. */
  readonly node: NodeObject;
  /** Makes sure of claims that are being deleted. */
  readonly claims: ClaimProtection;
}

/** A watch that is lost and opened again within this is nothing to tell. */
const TROUBLE_MS = 10_000;
/** A start does not wait longer for an answer: a node comes up without its API server. */
const START_MS_MAX = 2_000;
/** An empty list of pods is only believed when a second one, asked for so much later, is empty, too. */
const EMPTY_AGAIN_MS = 10_000;

/** Between two lists that are to confirm what is missing. */
const LIST_AGAIN_MS = 5_000;

const NOTHING_HEARD: SourcePart['objects'] = [];

/**
 * Guarantees: what cannot be read is never absent, and takes nothing down; nothing is shown before the pods of this
 * node, its Node object and the CSIDriver objects were listed; it never goes back to an earlier state of the server.
 */
export function createClusterSource(parts: ClusterSourceParts): ObjectsSource {
  return new ClusterSource(parts);
}

class ClusterSource implements ObjectsSource {
  readonly name: string;
  readonly #parts: ClusterSourceParts;
  readonly #pods: Reflector;
  readonly #node: NodeObject;
  readonly #drivers: Reflector;
  readonly #book: ReferenceBook;
  readonly #objects: ClusterObjects;
  readonly #guard = createPodShrinkGuard();
  readonly #detachClock = new DetachClock();
  /** What was said last of each pod that is believed to be there. */
  #known = new Map<string, ApiObjectEnvelope>();
  readonly #listeners = new Set<() => void>();
  #onFirstWord: () => void = () => {};
  #sight: NodeSight | undefined;
  #reading: SourceReading = { complete: false, parts: [] };
  #state: Pick<ClusterReport, 'state' | 'sinceMs' | 'message'>;
  #hasNodeBeenSeen = false;
  /** The last list of pods, by the time when it was asked for, and whether it had any: events after it do not count. */
  #lastList: { readonly listedMs: number; readonly isEmpty: boolean } | undefined;
  /** Host clock: when a list of pods was empty for the first time. */
  #emptySinceMs: number | undefined;
  /** Host clock: before that no further list is asked for. */
  #listAgainMs = Number.NEGATIVE_INFINITY;
  #isComplete = false;
  #cancelAgain: Cancel = () => {};
  readonly #pace: LookPace;
  #cancelSoon: Cancel | undefined;
  #isStopped = false;

  constructor(parts: ClusterSourceParts) {
    const { host, transport, nodeName, claims } = parts;
    this.#parts = parts;
    this.#pace = new LookPace(host);
    this.name = transport.server;
    this.#state = { state: 'connecting', sinceMs: host.nowMs(), message: 'nothing was read yet' };
    const random = (): number => host.random();
    const shared = { transport, clock: host, random, onChange: () => this.#lookSoon() };
    this.#pods = createReflector({ ...shared, selection: podsOfNode(nodeName) });
    this.#node = parts.node;
    this.#node.onChange(() => this.#lookSoon());
    this.#drivers = createReflector({ ...shared, selection: allCsiDrivers() });
    this.#book = createReferenceBook(shared);
    this.#objects = createClusterObjects({
      origin: originOf(transport, nodeName),
      book: this.#book,
      claims,
    });
    claims.onAnswer((reference, object) => {
      this.#book.learn({ kind: 'PersistentVolumeClaim', ...reference }, object);
      this.#lookSoon();
    });
  }

  async start(node: NodeSight): Promise<void> {
    this.#sight = node;
    const first = new Promise<void>((resolve) => {
      const cancel = this.#parts.host.timer(START_MS_MAX, resolve);
      this.#onFirstWord = () => {
        cancel();
        resolve();
      };
    });
    for (const one of this.#followed()) one.start();
    await first;
    this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelAgain();
    this.#cancelSoon?.();
    for (const one of this.#followed()) one.stop();
    this.#book.stop();
    this.#listeners.clear();
  }

  current(): SourceReading {
    return this.#reading;
  }

  onChange(listener: () => void): Cancel {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #followed(): readonly Pick<Reflector, 'start' | 'stop'>[] {
    return [this.#pods, this.#node, this.#drivers];
  }

  #reflections(): readonly Reflection[] {
    return [this.#pods.current(), this.#node.reflection(), this.#drivers.current()];
  }

  #nodes(): Reflection['objects'] {
    return this.#node.reflection().objects;
  }

  /** At once, unless there were looks just now: what changes before the next one is looked at together. */
  #lookSoon(): void {
    if (this.#isStopped || this.#cancelSoon !== undefined) return;
    const waitMs = this.#pace.waitMs();
    if (waitMs <= 0) return this.#look();
    this.#cancelSoon = this.#parts.host.timer(waitMs, () => this.#look());
  }

  #look(): void {
    if (this.#isStopped) return;
    const { host } = this.#parts;
    const nowMs = host.nowMs();
    this.#cancelAgain();
    this.#cancelSoon?.();
    this.#cancelSoon = undefined;
    const belief = this.#believe(nowMs);
    this.#hasNodeBeenSeen ||= (this.#nodes()?.size ?? 0) > 0;
    const isHeard = this.#reflections().every(({ objects }) => objects !== undefined);
    const isReady = isHeard && this.#hasNodeBeenSeen;
    const isEmptyBelieved = this.#isEmptyBelieved(nowMs);
    this.#isComplete ||= isReady && isEmptyBelieved;
    const doubt = this.#doubt(nowMs, isHeard);
    this.#noteState(nowMs, doubt);
    const [node] = this.#nodes()?.values() ?? [];
    const part = isReady ? this.#heardPart(nowMs) : this.#silentPart();
    this.#reading = {
      complete: this.#isComplete,
      parts: [doubt === undefined ? part : { ...part, unknown: true }],
      doubt,
      report: {
        cluster: {
          ...{ ...this.#state, server: this.name, pods: this.#known.size },
          detachClock: this.#detachClock.look({ node, pods: this.#known.values() }, nowMs),
        },
        ...(belief?.massRemoval === undefined ? {} : { massRemoval: belief.massRemoval }),
      },
    };
    this.#planLook(belief, nowMs);
    if (isHeard || doubt !== undefined) this.#onFirstWord();
    for (const listener of this.#listeners) listener();
    this.#pace.noteLook(nowMs);
  }

  /** Whom to believe of the pods; what was said of them last stays known. */
  #believe(nowMs: number): PodBelief | undefined {
    const { objects, listedMs, droppedByList } = this.#pods.current();
    if (objects === undefined || listedMs === undefined) return undefined;
    const uids = (all: Iterable<string>): ReadonlySet<PodUid> => new Set(all) as ReadonlySet<string> as never;
    const listing = { said: uids(objects.keys()), listedMs, droppedByList: uids(droppedByList) };
    const belief = this.#guard.look(listing, nowMs);
    const known = new Map<string, ApiObjectEnvelope>();
    for (const uid of belief.pods) {
      const envelope = objects.get(uid) ?? this.#known.get(uid);
      if (envelope !== undefined) known.set(uid, envelope);
    }
    this.#known = known;
    return belief;
  }

  /** The first list of a life says that there are no pods, and here stands something: it has to be said twice. */
  #isEmptyBelieved(nowMs: number): boolean {
    const { objects, listedMs } = this.#pods.current();
    if (objects === undefined || listedMs === undefined) return false;
    if (this.#lastList?.listedMs !== listedMs) this.#lastList = { listedMs, isEmpty: objects.size === 0 };
    if (!this.#lastList.isEmpty || this.#isComplete) return true;
    if (this.#sight === undefined || this.#sight.stake() === 'nothing') return true;
    this.#emptySinceMs ??= nowMs;
    return listedMs >= this.#emptySinceMs + EMPTY_AGAIN_MS;
  }

  #heardPart(nowMs: number): SourcePart {
    const node = this.#nodes()?.values() ?? [];
    const drivers = this.#drivers.current().objects?.values() ?? [];
    return this.#objects.part({ pods: this.#known.values(), others: [...node, ...drivers] }, nowMs);
  }

  /** Before everything was listed nothing is wanted, and nothing is unwanted either. */
  #silentPart(): SourcePart {
    return {
      name: this.name,
      objects: NOTHING_HEARD,
      rejected: [],
      unknown: true,
      frozenPods: new Set([...this.#known.keys()] as PodUid[]),
    };
  }

  #doubt(nowMs: number, isHeard: boolean): Failure | undefined {
    const { nodeName } = this.#parts;
    const troubles = this.#reflections().flatMap((one) => this.#troubleOf(one, nowMs, isHeard));
    const [trouble] = troubles;
    if (trouble !== undefined)
      return {
        code: 'source-unreadable',
        message: `the API server cannot be asked: ${trouble}`,
        effect: 'none',
      };
    if (!isHeard || (this.#nodes()?.size ?? 0) > 0) return undefined;
    const message = `the cluster has no Node ${nodeName}: make it, or let node_name be the name of one that is there`;
    return { code: 'source-unreadable', message, effect: 'none', blocker: `Node ${nodeName}` };
  }

  #troubleOf({ trouble }: Reflection, nowMs: number, isHeard: boolean): readonly string[] {
    if (trouble === undefined) return [];
    return !isHeard || nowMs - trouble.sinceMs >= TROUBLE_MS ? [trouble.failure.message] : [];
  }

  #noteState(nowMs: number, doubt: Failure | undefined): void {
    const followed = this.#isComplete ? 'following' : 'connecting';
    const state = doubt === undefined ? followed : 'broken';
    const message = doubt?.message ?? (state === 'following' ? '' : 'not everything was read yet');
    const sinceMs = state === this.#state.state ? this.#state.sinceMs : nowMs;
    this.#state = { state, sinceMs, message };
  }

  #planLook(belief: PodBelief | undefined, nowMs: number): void {
    const times: number[] = belief?.againMs === undefined ? [] : [belief.againMs];
    // By when the last one was asked for, not by this look: on a busy node there is always another look before that.
    if (belief?.isListNeeded === true) times.push(this.#listAgainMs);
    for (const { trouble } of this.#reflections())
      if (trouble !== undefined && nowMs - trouble.sinceMs < TROUBLE_MS)
        times.push(trouble.sinceMs + TROUBLE_MS);
    const emptyAgainMs = this.#emptyAgainMs();
    if (emptyAgainMs !== undefined) times.push(Math.max(emptyAgainMs, this.#listAgainMs));
    if (times.length === 0) return;
    const waitMs = Math.max(1, Math.min(...times) - nowMs);
    this.#cancelAgain = this.#parts.host.timer(waitMs, () => this.#again());
  }

  /** The time has come for a second word on what is missing, or for a look alone. */
  #again(): void {
    const nowMs = this.#parts.host.nowMs();
    const belief = this.#believe(nowMs);
    const isEmptyDue = nowMs >= (this.#emptyAgainMs() ?? Number.POSITIVE_INFINITY);
    if ((isEmptyDue || belief?.isListNeeded === true) && nowMs >= this.#listAgainMs) {
      this.#listAgainMs = nowMs + LIST_AGAIN_MS;
      this.#pods.relist();
    }
    this.#look();
  }

  /** When a list is to be asked for that says once more that there are no pods; undefined: none is needed. */
  #emptyAgainMs(): number | undefined {
    const { listedMs } = this.#pods.current();
    if (this.#isComplete || this.#emptySinceMs === undefined || listedMs === undefined) return undefined;
    const againMs = this.#emptySinceMs + EMPTY_AGAIN_MS;
    return listedMs < againMs ? againMs : undefined;
  }
}

/** Where the objects of a node are from, as pods and places keep it. */
export function originOf({ server }: Pick<ApiTransport, 'server'>, nodeName: string): string {
  return `${server} node ${nodeName}`;
}
