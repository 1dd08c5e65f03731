/** Runs operations of any kind: nested keys, back-off, lanes (p-queue) of bounded width. */
import PQueue from 'p-queue';
import { assert, type Failure } from '../../mount/failure.ts';
import type { Clock } from '../../mount/host.ts';
import type { CallReport, Step } from '../../plugins/step.ts';
import type { BackOffLimits } from '../../mount/process/back-off.ts';
import type { ToldStep } from '../model/told-step.ts';
import type { OperationTraits } from './operation-traits.ts';
import { Entries, type Entry, type InFlight } from './in-flight.ts';
import { createSetbacks, type ResetExtent, type Setback, type Setbacks } from './setbacks.ts';

/** Expected refusals are answers, not errors. */
export type Submission<Operation> =
  | { readonly kind: 'started' }
  | { readonly kind: 'busy'; readonly with: Operation; readonly setback: Setback | undefined }
  | ({ readonly kind: 'backing-off' } & Setback);

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
  /** The cause of its failures has changed: forget the back-off of the subject, or some of it. */
  resetBackOff(subject: Subject, extent?: ResetExtent): void;
  /**
   * Who stands in the way, found after the failure was told. False when it is not the last one of its key any more, or
   * the same was said before.
   */
  blame(operation: Operation, failure: Failure, blocker: string): boolean;
  /**
   * Lends the turns of operations that have given no sign for a minute and ask no driver anything: what they look at
   * hangs, or another call of their volume comes first, and that is no work of the driver. They keep their keys.
   */
  lendTurns(): void;
  /** Starts nothing any more; what runs goes on. */
  close(): void;
}

/** The queues of the lanes, each of its width and of the turns that are lent. */
class Lanes<Operation> {
  readonly #queues = new Map<string, PQueue>();
  readonly #width: (lane: string) => number;
  readonly #isStuck: (entry: Entry<Operation>) => boolean;

  constructor(width: (lane: string) => number, isStuck: (entry: Entry<Operation>) => boolean) {
    this.#width = width;
    this.#isStuck = isStuck;
  }

  queue(lane: string): PQueue {
    const known = this.#queues.get(lane);
    if (known !== undefined) return known;
    const queue = new PQueue({ concurrency: this.#width(lane) });
    this.#queues.set(lane, queue);
    return queue;
  }

  lendAll(entries: readonly Entry<Operation>[]): void {
    for (const lane of this.#queues.keys()) this.#lend(lane, entries);
  }

  /** Takes back what was lent in this lane and is not needed any more. */
  takeBack(lane: string, entries: () => readonly Entry<Operation>[]): void {
    if (this.queue(lane).concurrency !== this.#width(lane)) this.#lend(lane, entries());
  }

  #lend(lane: string, entries: readonly Entry<Operation>[]): void {
    const stuck = entries.filter((entry) => entry.lane === lane && this.#isStuck(entry)).length;
    this.queue(lane).concurrency = this.#width(lane) + stuck;
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
  const executor = new LaneExecutor(parts);
  return {
    submit: (operation) => executor.submit(operation),
    inFlight: () => executor.inFlight(),
    inFlightOf: (subject) => executor.inFlightOf(subject),
    resetBackOff: (subject, extent) => executor.resetBackOff(subject, extent),
    blame: (operation, failure, blocker) => executor.blame(operation, failure, blocker),
    lendTurns: () => executor.lendTurns(),
    close: () => executor.close(),
  };
}

class LaneExecutor<Operation, Learnt, Subject extends string> implements Executor<Operation, Subject> {
  readonly #parts: ExecutorParts<Operation, Learnt, Subject>;
  readonly #running = new Entries<Operation, Subject>();
  readonly #setbacks: Setbacks<Operation, Subject>;
  readonly #lanes: Lanes<Operation>;
  #closed = false;

  constructor(parts: ExecutorParts<Operation, Learnt, Subject>) {
    this.#parts = parts;
    this.#setbacks = createSetbacks(parts);
    this.#lanes = new Lanes(
      (lane) => parts.laneWidth(lane),
      (entry) => isStuck(entry, parts.clock.nowMs()),
    );
  }

  submit(operation: Operation): Submission<Operation> {
    const { traits, clock } = this.#parts;
    const setback = this.#setbacks.of(operation);
    for (const other of this.#running.of(traits.subject(operation))) {
      if (traits.conflicts(other.operation, operation))
        return { kind: 'busy', with: other.operation, setback };
    }
    if (setback !== undefined && (setback.retryAtMs === undefined || setback.retryAtMs > clock.nowMs())) {
      return { kind: 'backing-off', ...setback };
    }
    this.#start(operation, setback);
    return { kind: 'started' };
  }

  inFlight(): readonly InFlight<Operation>[] {
    return this.#running.all();
  }

  inFlightOf(subject: Subject): readonly InFlight<Operation>[] {
    return [...this.#running.of(subject)];
  }

  resetBackOff(subject: Subject, extent: ResetExtent = 'all'): void {
    for (const entry of this.#running.of(subject))
      if (extent !== 'climbs' || this.#parts.traits.climbs(entry.operation)) entry.wasReset = true;
    this.#setbacks.reset(subject, extent);
  }

  blame(operation: Operation, failure: Failure, blocker: string): boolean {
    const blamed = this.#setbacks.blame(operation, failure, blocker);
    if (blamed === undefined) return false;
    for (const entry of this.#running.of(this.#parts.traits.subject(operation)))
      if (entry.setback?.failure === failure) entry.setback = { ...entry.setback, failure: blamed };
    return true;
  }

  lendTurns(): void {
    this.#lanes.lendAll(this.#running.all());
  }

  close(): void {
    this.#closed = true;
    this.#setbacks.close();
  }

  #start(operation: Operation, setback: Setback | undefined): void {
    const { traits, clock, laneOf, laneWidth } = this.#parts;
    const lane = laneOf(operation);
    const entry: Entry<Operation> = {
      operation,
      lane,
      sinceMs: clock.nowMs(),
      phase: 'queued',
      begunMs: undefined,
      step: this.#told({ kind: 'queued', behind: `${laneWidth(lane)} other operations of ${lane}` }),
      wasReset: false,
      progress: undefined,
      setback,
    };
    this.#running.add(traits.subject(operation), entry);
    // A rejection would be a broken invariant; unhandledRejection is left fatal on purpose.
    void this.#lanes.queue(lane).add(() => this.#execute(entry));
  }

  async #execute(entry: Entry<Operation>): Promise<void> {
    const { operation } = entry;
    const { clock, isStillWanted, perform, onFinished } = this.#parts;
    if (this.#closed || !isStillWanted(operation)) {
      this.#release(entry);
      onFinished({ operation, outcome: { kind: 'skipped' } });
      return;
    }
    entry.phase = 'running';
    entry.begunMs = clock.nowMs();
    entry.step = this.#told({ kind: 'working' });
    const outcome = await perform(operation, {
      step: (step) => this.#enter(entry, step),
      progress: (text) => this.#progress(entry, text),
    });
    this.#release(entry);
    this.#lanes.takeBack(entry.lane, () => this.#running.all());
    if (outcome.kind === 'done') this.#setbacks.succeeded(operation);
    else this.#setbacks.failed(operation, outcome.failure, entry.wasReset);
    onFinished({ operation, outcome });
  }

  #release(entry: Entry<Operation>): void {
    const isReleased = this.#running.delete(this.#parts.traits.subject(entry.operation), entry);
    assert(isReleased, 'an operation is released once');
  }

  #told(step: Step): ToldStep {
    const nowMs = this.#parts.clock.nowMs();
    return { sinceMs: nowMs, signMs: nowMs, ...step };
  }

  /** Said again it goes on; of who waits it may be another that comes first by now. */
  #enter(entry: Entry<Operation>, step: Step): void {
    const { sinceMs, kind } = entry.step;
    entry.step =
      kind === step.kind && kind !== 'called' ? { ...this.#told(step), sinceMs } : this.#told(step);
    if (kind !== step.kind) entry.progress = undefined;
    this.#parts.onStep();
  }

  #progress(entry: Entry<Operation>, text: string): void {
    // The same words again are no sign of life: a walk that hangs is told of every second.
    if (entry.progress !== text) entry.step = { ...entry.step, signMs: this.#parts.clock.nowMs() };
    entry.progress = text;
    this.#parts.onStep();
  }
}

/** Many pods of one volume, whose calls go one by one, would else have all the turns that its driver has. */
function isStuck({ phase, step }: Entry<unknown>, nowMs: number): boolean {
  if (phase !== 'running') return false;
  // That another call comes first by now is no sign of life of the one that waits.
  if (step.kind === 'queued') return nowMs - step.sinceMs >= STUCK_MS;
  const isOurs = step.kind === 'working' || step.kind === 'verifying';
  return isOurs && nowMs - step.signMs >= STUCK_MS;
}

/**
 * So long a look or a walk of ours gives no sign, or a call waits for others of its volume. A path call has its end in
 * half of it, if it has one.
 */
const STUCK_MS = 60_000;
