/** Says in the events of a cluster what keeps volumes from where they should be: a pod that waits shows why. */
import type { ApiFailure } from '../../kubernetes/api/api-failure.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { eventPath, eventsPath } from '../../kubernetes/api/resource-path.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import { Retries } from '../../mount/process/back-off.ts';
import { createGathered, type Gathered } from '../../mount/process/gathered.ts';
import type { Log } from '../../mount/process/log.ts';
import { type DueEvent, EventBook } from './event-book.ts';
import { type EventView, volumeEvents } from './volume-event.ts';

export interface EventReporterParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs' | 'wallMs' | 'timer'>;
  readonly nodeName: string;
  /** By which the pods of the cluster are told from others. */
  readonly origin: string;
  /** As the events name who says it. */
  readonly component: string;
  readonly log: Pick<Log, 'warn'>;
}

/** What the reporter looks at. */
export interface EventWatch {
  view(): EventView;
  onChange(listener: () => void): Cancel;
}

/**
 * Guarantees: a trouble that stands is said within seconds, a wait within half a minute, and again every 5 minutes; at
 * most one write at a time, and none while nothing is in the way; a server that does not take them costs one try in a
 * minute, and what is said meanwhile waits, bounded. A namespace of which it takes none keeps back those of no other.
 * Nothing of a volume depends on it.
 */
export interface EventReporter {
  begin(watch: EventWatch): void;
  stop(): void;
}

/** A change is one of many: what is in the way is looked at once for all of them. */
const LOOK_MS = 1_000;
const QUEUE_MAX = 1_000;
const RETRY = { firstMs: 1_000, maxMs: 60_000 } as const;
const BOUNDS = { answerBytesMax: 1_048_576, deadlineMs: 10_000 } as const;
/** Kubernetes allows 253, and the id and a dot come after it. */
const SUBJECT_NAME_MAX = 230;

export function createEventReporter(parts: EventReporterParts): EventReporter {
  return new QueueOfEvents(parts);
}

class QueueOfEvents implements EventReporter {
  readonly #parts: EventReporterParts;
  readonly #book = new EventBook();
  /** Each is found by its id: of one that waits only the newest is sent. */
  readonly #queue = new Map<string, DueEvent>();
  #watch: EventWatch | undefined;
  /** Those of which the last write has failed for now; who comes first is tried first. */
  readonly #failing = new Set<string>();
  #isSending = false;
  /** Why nothing is tried for a time. */
  #waitsFor: ApiFailure | undefined;
  #isStopped = false;
  readonly #retries = new Retries(RETRY);
  #told: string | undefined;
  readonly #gathered: Gathered;
  #cancelNext: Cancel = () => {};
  #cancelRetry: Cancel = () => {};
  #cancelWatch: Cancel = () => {};

  constructor(parts: EventReporterParts) {
    this.#parts = parts;
    this.#gathered = createGathered(parts.clock, LOOK_MS, () => this.#look());
  }

  begin(watch: EventWatch): void {
    this.#watch = watch;
    this.#cancelWatch = watch.onChange(() => this.#gathered.soon());
    this.#gathered.soon();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelWatch();
    this.#gathered.stop();
    this.#cancelNext();
    this.#cancelRetry();
  }

  #look(): void {
    if (this.#watch === undefined) return;
    const { clock, origin } = this.#parts;
    const nowMs = clock.nowMs();
    const { due, nextMs } = this.#book.look(volumeEvents(this.#watch.view(), origin), nowMs);
    for (const event of due) this.#enqueue(event);
    this.#cancelNext();
    if (nextMs !== undefined) this.#cancelNext = clock.timer(nextMs - nowMs, () => this.#look());
    void this.#send();
  }

  /** A repetition gives way to what was never said. */
  #enqueue(event: DueEvent): void {
    this.#queue.delete(event.id);
    if (this.#queue.size >= QUEUE_MAX) {
      const repeated = [...this.#queue.values()].find(({ count }) => count > 1);
      if (repeated === undefined) return;
      this.#queue.delete(repeated.id);
    }
    this.#queue.set(event.id, event);
  }

  async #send(): Promise<void> {
    if (this.#isSending || (this.#waitsFor !== undefined && !this.#mayGoOn(this.#waitsFor))) return;
    this.#cancelRetry();
    this.#waitsFor = undefined;
    this.#isSending = true;
    for (let event = this.#next(); event !== undefined; event = this.#next()) {
      const failure = await this.#write(event);
      if (this.#isStopped) return;
      const namespace = namespaceOf(event.subject.namespace);
      this.#failing.delete(namespace);
      if (failure !== undefined && isForNow(failure)) {
        this.#failing.add(namespace);
        this.#retryLater(failure);
        break;
      }
      // Another one of that id may have come meanwhile: it is said, and more of it in five minutes.
      this.#queue.delete(event.id);
      if (failure === undefined) this.#retries.reset();
      this.#tell(failure);
    }
    if (this.#queue.size === 0) this.#failing.clear();
    this.#isSending = false;
  }

  /** What failed in the server may be of one namespace, and others are tried. That it is away or busy is of all. */
  #mayGoOn({ code, retryAfterMs }: ApiFailure): boolean {
    return code === 'failed' && retryAfterMs === undefined && this.#unhindered() !== undefined;
  }

  #unhindered(): DueEvent | undefined {
    return this.#first((namespace) => !this.#failing.has(namespace));
  }

  #first(isMeant: (namespace: string) => boolean): DueEvent | undefined {
    for (const event of this.#queue.values()) if (isMeant(namespaceOf(event.subject.namespace))) return event;
    return undefined;
  }

  /** Where all namespaces fail they are tried in turn: an admission webhook may stand in the way of one alone. */
  #next(): DueEvent | undefined {
    const unhindered = this.#unhindered();
    if (unhindered !== undefined) return unhindered;
    for (const namespace of this.#failing) {
      const first = this.#first((one) => one === namespace);
      if (first !== undefined) return first;
    }
    return undefined;
  }

  #retryLater(failure: ApiFailure): void {
    this.#tell(failure);
    const waitMs = this.#retries.nextMs({ leastMs: failure.retryAfterMs });
    this.#waitsFor = failure;
    this.#cancelRetry = this.#parts.clock.timer(waitMs, () => {
      this.#waitsFor = undefined;
      void this.#send();
    });
  }

  /** One of an earlier life, or one whose answer was lost, is there already: its count goes on. */
  async #write(event: DueEvent): Promise<ApiFailure | undefined> {
    const { transport } = this.#parts;
    const { namespace } = event.subject;
    const name = eventNameOf(event);
    const path = eventPath({ namespace: namespaceOf(namespace), name });
    const { message, count, atMs } = event;
    const news = { message, lastTimestamp: this.#wall(atMs) };
    if (count > 1) {
      const failure = await this.#patch(path, { ...news, count });
      if (failure?.code !== 'absent') return failure;
    }
    const collection = eventsPath(namespaceOf(namespace));
    const made = await transport.request({
      method: 'POST',
      path: collection,
      body: { ...this.#objectOf(event, name), ...news, count },
      ...BOUNDS,
    });
    if (made.ok) return undefined;
    if (made.failure.code !== 'conflict') return made.failure;
    // A node may not read it, so how often it was said is left to it.
    return this.#patch(path, news);
  }

  async #patch(path: string, body: object): Promise<ApiFailure | undefined> {
    const patched = await this.#parts.transport.request({ method: 'PATCH', path, body, ...BOUNDS });
    return patched.ok ? undefined : patched.failure;
  }

  #objectOf({ subject, reason, sinceMs }: DueEvent, name: string): Readonly<Record<string, unknown>> {
    const { component, nodeName } = this.#parts;
    const { kind, namespace, uid } = subject;
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: namespaceOf(namespace) },
      involvedObject: {
        apiVersion: 'v1',
        kind,
        name: subject.name,
        ...(namespace === '' ? {} : { namespace }),
        ...(uid === undefined ? {} : { uid }),
      },
      type: 'Warning',
      reason,
      source: { component, host: nodeName },
      reportingComponent: component,
      reportingInstance: nodeName,
      firstTimestamp: this.#wall(sinceMs),
    };
  }

  /** Whole seconds, as Kubernetes writes them. */
  #wall(hostMs: number): string {
    const { clock } = this.#parts;
    const wallMs = clock.wallMs() - (clock.nowMs() - hostMs);
    return new Date(wallMs).toISOString().replace(/\.\d+Z$/, 'Z');
  }

  #tell(failure: ApiFailure | undefined): void {
    if (failure !== undefined && this.#told !== failure.code)
      this.#parts.log.warn('events not written', { code: failure.code, message: failure.message });
    this.#told = failure?.code;
  }
}

/** Events about objects without a namespace are in this one (Kubernetes: ValidateEvent). */
function namespaceOf(namespace: string): string {
  return namespace === '' ? 'default' : namespace;
}

function eventNameOf({ subject, id }: DueEvent): string {
  return `${subject.name.slice(0, SUBJECT_NAME_MAX).replace(/[-.]+$/, '')}.${id}`;
}

/** The server may take it later; what it refuses for what it is, or denies, is not said again and again. */
function isForNow({ code }: ApiFailure): boolean {
  return code === 'unreachable' || code === 'unauthenticated' || code === 'busy' || code === 'failed';
}
