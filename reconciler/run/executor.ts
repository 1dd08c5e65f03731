/** Runs operations of any kind: nested keys, back-off, lanes (p-queue) of bounded width. */
import PQueue from 'p-queue';
import { assert, type Failure } from '../../mount/failure.ts';
import type { Clock } from '../../mount/host.ts';
import type { CallReport, Step } from '../../plugins/step.ts';
import type { BackOffLimits } from './back-off.ts';
import type { ToldStep } from '../model/told-step.ts';
import type { OperationTraits } from './operation-traits.ts';
import { createSetbacks, type Setback } from './setbacks.ts';

/** Expected refusals are answers, not errors. */
export type Submission<Operation> =
  | { readonly kind: 'started' }
  | { readonly kind: 'busy'; readonly with: Operation; readonly setback: Setback | undefined }
  | ({ readonly kind: 'backing-off' } & Setback);

export interface InFlight<Operation> {
  readonly operation: Operation;
  readonly lane: string;
  readonly phase: 'queued' | 'running';
  /** When it was planned. */
  readonly sinceMs: number;
  /** When its turn came; undefined: not yet. */
  readonly begunMs: number | undefined;
  readonly step: ToldStep;
  /** What a long operation is doing now, for people; undefined when it has not said. */
  readonly progress: string | undefined;
  /** What the tries before this one ran into; undefined on the first. */
  readonly setback: Setback | undefined;
}

/** How an operation ended that was performed; `Learnt` is what a success taught. */
export type Outcome<Learnt> =
  | { readonly kind: 'done'; readonly learnt: Learnt }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** `skipped`: when its turn came it was no longer wanted, and nothing was done. */
export type Finished<Operation, Learnt> = {
  readonly operation: Operation;
  readonly outcome: Outcome<Learnt> | { readonly kind: 'skipped' };
};

export interface ExecutorParts<Operation, Learnt, Subject extends string> {
  readonly traits: OperationTraits<Operation, Subject>;
  readonly clock: Clock & { random(): number };
  readonly backOff: BackOffLimits;
  readonly laneOf: (operation: Operation) => string;
  /** How many operations of a lane run at once. */
  readonly laneWidth: (lane: string) => number;
  /** Asked when a slot frees: the world moved while the operation queued. */
  readonly isStillWanted: (operation: Operation) => boolean;
  /** Never rejects; settles only when the effect has ended. */
  readonly perform: (operation: Operation, report: CallReport) => Promise<Outcome<Learnt>>;
  readonly onFinished: (finished: Finished<Operation, Learnt>) => void;
  /** It does something else now, or has given a sign of life. */
  readonly onStep: () => void;
  /** A back-off has run out: plan the subject again. */
  readonly onRetry: (subject: Subject) => void;
}

export interface Executor<Operation, Subject extends string> {
  submit(operation: Operation): Submission<Operation>;
  inFlight(): readonly InFlight<Operation>[];
  inFlightOf(subject: Subject): readonly InFlight<Operation>[];
  /** The cause of its failures has changed: forget the back-off of the subject, or of its way up only. */
  resetBackOff(subject: Subject, extent?: 'all' | 'climbs'): void;
  /**
   * Who stands in the way, found after the failure was told. False when it is not the last one of its key any more, or
   * the same was said before.
   */
  blame(operation: Operation, failure: Failure, blocker: string): boolean;
  /**
   * Lends the turns of operations that have given no sign for a minute and ask no driver anything: what they look at
   * hangs, and that is no work of the driver. They keep their keys.
   */
  lendTurns(): void;
  /** Starts nothing any more; what runs goes on. */
  close(): void;
}

interface Entry<Operation> {
  readonly operation: Operation;
  readonly lane: string;
  readonly sinceMs: number;
  phase: InFlight<Operation>['phase'];
  begunMs: number | undefined;
  step: ToldStep;
  /** Its back-off was reset while it ran: what a failure proves may be about another wish or driver already. */
  wasReset: boolean;
  progress: string | undefined;
  setback: Setback | undefined;
}

/** What is queued or runs, in the order of the subjects' first operations. */
class Entries<Operation, Subject extends string> {
  readonly #bySubject = new Map<Subject, Set<Entry<Operation>>>();
  /** As they were listed last; undefined since there are others. */
  #all: readonly Entry<Operation>[] | undefined;

  /** The same list until one is added or deleted. */
  all(): readonly Entry<Operation>[] {
    this.#all ??= [...this.#bySubject.values()].flatMap((entries) => [...entries]);
    return this.#all;
  }

  of(subject: Subject): Iterable<Entry<Operation>> {
    return this.#bySubject.get(subject) ?? [];
  }

  add(subject: Subject, entry: Entry<Operation>): void {
    this.#all = undefined;
    this.#bySubject.set(subject, (this.#bySubject.get(subject) ?? new Set()).add(entry));
  }

  /** False when it was not there. */
  delete(subject: Subject, entry: Entry<Operation>): boolean {
    this.#all = undefined;
    const entries = this.#bySubject.get(subject);
    const isDeleted = entries?.delete(entry) === true;
    if (entries?.size === 0) this.#bySubject.delete(subject);
    return isDeleted;
  }
}

/**
 * Guarantees: never two conflicting operations at once; no more of a lane than its width, but for those whose turns are
 * lent (`lendTurns`); `onFinished` once per started operation, in the turn its key
 * is freed. Assumes: `perform` settles only when the effect has ended.
 * Because: a freed key with a live mount(8) behind it is how data is lost; so p-queue gets a width and nothing else, no
 * timeout and no signal, which would free the slot while the task still runs.
 */
export function createExecutor<Operation, Learnt, Subject extends string>(
  parts: ExecutorParts<Operation, Learnt, Subject>,
): Executor<Operation, Subject> {
  const { subject: subjectOf, climbs, conflicts } = parts.traits;
  const lanes = new Map<string, PQueue>();
  const running = new Entries<Operation, Subject>();
  const setbacks = createSetbacks(parts);
  let closed = false;

  function laneQueue(lane: string): PQueue {
    const known = lanes.get(lane);
    if (known !== undefined) return known;
    const queue = new PQueue({ concurrency: parts.laneWidth(lane) });
    lanes.set(lane, queue);
    return queue;
  }

  function release(entry: Entry<Operation>): void {
    assert(running.delete(subjectOf(entry.operation), entry), 'an operation is released once');
  }

  function isStuck({ phase, step }: Entry<Operation>): boolean {
    const isOurs = step.kind === 'working' || step.kind === 'verifying';
    return phase === 'running' && isOurs && parts.clock.nowMs() - step.signMs >= STUCK_MS;
  }

  function lend(lane: string): void {
    const stuck = running.all().filter((entry) => entry.lane === lane && isStuck(entry)).length;
    laneQueue(lane).concurrency = parts.laneWidth(lane) + stuck;
  }

  async function execute(entry: Entry<Operation>): Promise<void> {
    const { operation } = entry;
    if (closed || !parts.isStillWanted(operation)) {
      release(entry);
      parts.onFinished({ operation, outcome: { kind: 'skipped' } });
      return;
    }
    entry.phase = 'running';
    entry.begunMs = parts.clock.nowMs();
    entry.step = told({ kind: 'working' });
    const outcome = await parts.perform(operation, {
      step: (step) => enter(entry, step),
      progress: (text) => {
        // The same words again are no sign of life: a walk that hangs is told of every second.
        if (entry.progress !== text) entry.step = { ...entry.step, signMs: parts.clock.nowMs() };
        entry.progress = text;
        parts.onStep();
      },
    });
    release(entry);
    if (laneQueue(entry.lane).concurrency !== parts.laneWidth(entry.lane)) lend(entry.lane);
    if (outcome.kind === 'done') setbacks.succeeded(operation);
    else setbacks.failed(operation, outcome.failure, entry.wasReset);
    parts.onFinished({ operation, outcome });
  }

  function told(step: Step): ToldStep {
    const nowMs = parts.clock.nowMs();
    return { sinceMs: nowMs, signMs: nowMs, ...step };
  }

  /** Said again it goes on; of who waits it may be another that comes first by now. */
  function enter(entry: Entry<Operation>, step: Step): void {
    const { sinceMs, kind } = entry.step;
    entry.step = kind === step.kind && kind !== 'called' ? { ...told(step), sinceMs } : told(step);
    if (kind !== step.kind) entry.progress = undefined;
    parts.onStep();
  }

  return {
    submit(operation) {
      const subject = subjectOf(operation);
      const setback = setbacks.of(operation);
      for (const other of running.of(subject)) {
        if (conflicts(other.operation, operation)) return { kind: 'busy', with: other.operation, setback };
      }
      if (
        setback !== undefined &&
        (setback.retryAtMs === undefined || setback.retryAtMs > parts.clock.nowMs())
      ) {
        return { kind: 'backing-off', ...setback };
      }
      const lane = parts.laneOf(operation);
      const entry: Entry<Operation> = {
        operation,
        lane,
        sinceMs: parts.clock.nowMs(),
        phase: 'queued',
        begunMs: undefined,
        step: told({ kind: 'queued', behind: `${parts.laneWidth(lane)} other operations of ${lane}` }),
        wasReset: false,
        progress: undefined,
        setback,
      };
      running.add(subject, entry);
      // A rejection would be a broken invariant; unhandledRejection is left fatal on purpose.
      void laneQueue(lane).add(() => execute(entry));
      return { kind: 'started' };
    },
    inFlight: () => running.all(),
    inFlightOf: (subject) => [...running.of(subject)],
    resetBackOff(subject, extent = 'all') {
      for (const entry of running.of(subject))
        if (extent === 'all' || climbs(entry.operation)) entry.wasReset = true;
      setbacks.reset(subject, extent);
    },
    blame(operation, failure, blocker) {
      const blamed = setbacks.blame(operation, failure, blocker);
      if (blamed === undefined) return false;
      for (const entry of running.of(subjectOf(operation)))
        if (entry.setback?.failure === failure) entry.setback = { ...entry.setback, failure: blamed };
      return true;
    },
    lendTurns: () => {
      for (const lane of lanes.keys()) lend(lane);
    },
    close() {
      closed = true;
      setbacks.close();
    },
  };
}

/** Without a sign from a look or a walk of ours; a path call has its end in half of it, if it has one. */
const STUCK_MS = 60_000;
