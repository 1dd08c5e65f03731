/** Keeps what is moving towards what should be: event-driven, level-triggered, one volume at a time. */
import type { Failure, Result } from '../mount/failure.ts';
import type { Cancel } from '../mount/host.ts';
import type { PodUid, VolumeId } from '../plugins/volume.ts';
import type { ActualState } from './model/actual-state.ts';
import { type Belief, createBelief } from './model/belief.ts';
import { createDesiredChanges } from './model/desired-change.ts';
import { type DesiredState, NOTHING_KNOWN } from './model/desired-state.ts';
import { waitingFor } from './model/last-to-go.ts';
import type { Obstacle } from './model/obstacle.ts';
import type { Operation } from './model/operation.ts';
import type { VolumePlan } from './model/plan.ts';
import { createOperationRunner } from './operation-runner.ts';
import { createPassQueue, type PassQueue } from './pass-queue.ts';
import { POLICY, type Policy, type ReconcilerParts, type WakeCause } from './reconciler-parts.ts';
import type { Reconstruction } from './recovery/reconstruct.ts';
import { createRecordWriter, type RecordWriter } from './recovery/record-writer.ts';
import { createHolderSearch, type HolderSearch } from './run/holder-search.ts';
import { type Blockade, createObstacleBook, type ObstacleBook } from './run/obstacle-book.ts';
import { logHeld, logOutcome } from './run/operation-log.ts';
import type { Executor } from './run/executor.ts';
import { createVolumeExecutor, type VolumeFinished, type VolumeInFlight } from './run/volume-operation.ts';
import { createVolumePlanner, type VolumePlanner } from './volume-planner.ts';
import { createVolumeWatch, type VolumeWatch } from './volume-watch.ts';
import { createWakeUp, type WakeUp } from './wake-up.ts';

export interface Reconciler {
  /** Replaces the wish; volumes whose wish changed lose their back-off. */
  setDesired(desired: DesiredState): void;
  wake(cause: WakeCause): void;
  /**
   * Takes in volumes found on disk that no record explained; what is known already is left as it is. Before the first
   * complete scan nothing is unstaged.
   */
  takeReconstructed(found: Reconstruction): void;
  actual(): ActualState;
  desired(): DesiredState;
  running(): readonly VolumeInFlight[];
  obstacles(): readonly Obstacle[];
  /** What comes next of a volume, and what waits, as things are now. Nothing is begun by asking. */
  planOf(volume: VolumeId): VolumePlan;
  /** The word of who runs the pod that its containers have ended: what it still has is looked at again, at once. */
  released(pod: PodUid): void;
  /** An operator's word: what is left of a pod that is not wanted goes, whoever has something of it. */
  forceRelease(pod: PodUid): void;
  /**
   * An operator's word: the volume is taken down, wanted or not, and set up again only when it was proven clean.
   * Durable when it settles `ok`. `reference-missing`: there is no such volume here, and none is wanted.
   */
  quarantine(volume: VolumeId): Promise<Result<void>>;
  /** An operator's word that it is clean, without the proof. `reference-missing`: it is not in quarantine. */
  endQuarantine(volume: VolumeId): Promise<Result<void>>;
  /** Called after every change of actual state, operations or obstacles. */
  onChange(listener: () => void): Cancel;
  /** No operation is queued or running, nothing is waiting to be planned, and all that was learnt is written down. */
  idle(): boolean;
  /** Passes made so far; an idle node makes none but the resync. */
  passes(): number;
  /** Starts nothing new; settles when what runs has ended or after `waitMs`. Unmounts nothing. */
  stop(waitMs: number): Promise<void>;
}

const EFFECT_DEADLINE_MS = 30_000;

export function createReconciler(parts: ReconcilerParts): Reconciler {
  const reconciler = new VolumeReconciler(parts);
  reconciler.begin();
  return reconciler;
}

class VolumeReconciler implements Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #belief: Belief;
  readonly #desiredChanges = createDesiredChanges();
  readonly #listeners = new Set<() => void>();
  readonly #queue: PassQueue;
  readonly #obstacles: ObstacleBook;
  readonly #executor: Executor<Operation, VolumeId>;
  readonly #wakeUp: WakeUp;
  readonly #watch: VolumeWatch;
  readonly #planner: VolumePlanner;
  readonly #recordWriter: RecordWriter;
  readonly #holders: HolderSearch;
  #desired = NOTHING_KNOWN;
  #whenEnded = (): void => {};

  constructor(parts: ReconcilerParts) {
    const { host, plugins, records, log } = parts;
    const policy: Policy = { ...POLICY, ...parts.policy };
    const effectDeadlineMs = parts.effectDeadlineMs ?? EFFECT_DEADLINE_MS;
    const belief = createBelief(parts.recovered);
    const desired = (): DesiredState => this.#desired;
    const notify = (): void => this.#notify();
    this.#parts = parts;
    this.#belief = belief;
    this.#queue = createPassQueue((volume) => this.#visit(volume), notify);
    const { touch } = this.#queue;
    this.#obstacles = createObstacleBook(host, (one) =>
      policy.tellInFlight(one, host.nowMs(), effectDeadlineMs),
    );
    this.#executor = createVolumeExecutor({
      clock: host,
      backOff: parts.backOff,
      laneWidth: parts.laneWidth,
      laneOf: (operation) => this.#planner.laneOf(operation),
      isStillWanted: (operation) => this.#planner.isStillWanted(operation),
      perform: (operation, report) => run(operation, report),
      onFinished: (finished) => this.#finished(finished),
      onRetry: touch,
      onStep: notify,
    });
    const { resetBackOff, inFlightOf } = this.#executor;
    this.#wakeUp = createWakeUp({ host, actual: belief.volumes, desired, resetBackOff, touch });
    const { tryAgain } = this.#wakeUp;
    const watch = createVolumeWatch({
      ...{ parts, policy, belief, desired, touch, tryAgain },
      isBusy: (volume) => inFlightOf(volume).length > 0,
      onResync: () => this.#resynced(),
    });
    this.#watch = watch;
    this.#planner = createVolumePlanner({
      ...{ plan: policy.planVolume, plugins, belief, desired },
      gateOf: watch.reconstructGate.gateOf,
      quarantineOf: watch.quarantineControl.reasonFor,
    });
    const recordWriter = createRecordWriter({
      ...{ host, records, log },
      believed: (volume) => belief.volumes.get(volume),
      onNoted: () => {
        notify();
        this.#whenEnded();
      },
    });
    this.#recordWriter = recordWriter;
    const run = createOperationRunner({
      ...{ parts, policy, belief, desired, recordWriter, watch },
      isStillWanted: (operation) => !this.#queue.isClosed() && this.#planner.isStillWanted(operation),
      onGrowthDue: (volume) => resetBackOff(volume, 'climbs'),
    });
    this.#holders = createHolderSearch({
      host,
      onFound: (operation, failure, holders) => this.#holderFound(operation, failure, holders),
    });
  }

  /** What is known already is looked at once. */
  begin(): void {
    this.#watch.resync.start();
    for (const volume of this.#belief.volumes.keys()) this.#queue.touch(volume);
    if (this.#parts.plansOnly === true) return;
    for (const volume of this.#watch.lookout.begun) void this.#recordWriter.note(volume, false);
  }

  setDesired(next: DesiredState): void {
    const previous = this.#desired;
    this.#watch.unreadyPods.wishEnds();
    this.#desired = next;
    this.#watch.releases.noteWish();
    for (const ids of [previous.volumes, next.volumes, this.#belief.volumes])
      for (const id of ids.keys()) this.#queue.touch(id);
  }

  wake(cause: WakeCause): void {
    this.#wakeUp.wake(cause);
  }

  takeReconstructed(found: Reconstruction): void {
    this.#watch.reconstructGate.take(found);
  }

  actual(): ActualState {
    return this.#belief.volumes;
  }

  desired(): DesiredState {
    return this.#desired;
  }

  running(): readonly VolumeInFlight[] {
    return this.#executor.inFlight();
  }

  obstacles(): readonly Obstacle[] {
    return this.#obstacles.list(this.#executor.inFlight());
  }

  planOf(volume: VolumeId): VolumePlan {
    return this.#planner.planOf(volume);
  }

  released(pod: PodUid): void {
    this.#watch.releases.released(pod);
  }

  forceRelease(pod: PodUid): void {
    this.#watch.releases.forceRelease(pod);
  }

  quarantine(volume: VolumeId): Promise<Result<void>> {
    return this.#watch.quarantineControl.quarantine(volume);
  }

  endQuarantine(volume: VolumeId): Promise<Result<void>> {
    return this.#watch.quarantineControl.release(volume);
  }

  onChange(listener: () => void): Cancel {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  idle(): boolean {
    return this.#queue.idle() && this.#recordWriter.idle() && this.#executor.inFlight().length === 0;
  }

  passes(): number {
    return this.#queue.passes();
  }

  stop(waitMs: number): Promise<void> {
    const { host } = this.#parts;
    for (const one of [this.#queue, this.#recordWriter, this.#wakeUp, this.#executor]) one.close();
    for (const one of [this.#watch, this.#holders]) one.stop();
    return new Promise((resolve) => {
      const cancel = host.timer(waitMs, resolve);
      this.#whenEnded = () => {
        if (this.#recordWriter.isErasing()) return;
        if (this.running().some(({ phase }) => phase === 'running')) return;
        cancel();
        resolve();
      };
      this.#whenEnded();
    });
  }

  #visit(volume: VolumeId): void {
    const wanted = this.#desired.volumes;
    const { resetBackOff } = this.#executor;
    if (this.#desiredChanges.isNews(volume, wanted.get(volume))) resetBackOff(volume, 'changed');
    this.#watch.visit(volume);
    const { operations, waits } = this.#planner.planOf(volume);
    const blockades: Blockade[] = waits.map((wait) => ({ from: 'plan', wait }));
    for (const operation of this.#parts.plansOnly === true ? [] : operations) {
      const submission = this.#executor.submit(operation);
      if (submission.kind !== 'started') blockades.push({ from: 'executor', operation, submission });
    }
    this.#obstacles.replace(volume, blockades);
    if (this.#belief.volumes.has(volume) || wanted.has(volume)) return;
    resetBackOff(volume);
    this.#obstacles.forget(volume);
  }

  #finished({ operation, outcome }: VolumeFinished): void {
    const { log } = this.#parts;
    logOutcome(log, operation, outcome, (failure) => this.#obstacles.isNews(operation, failure));
    if (outcome.kind === 'failed') this.#holders.begin(operation, outcome.failure);
    this.#watch.resync.changed(operation.volume);
    for (const id of [operation.volume, ...waitingFor(operation, this.#belief)]) this.#queue.touch(id);
    this.#watch.reconstructGate.ended(operation);
    this.#watch.holders.ended(operation);
    this.#whenEnded();
  }

  #resynced(): void {
    this.#executor.lendTurns();
    this.#parts.records.sweep();
    for (const ids of [this.#belief.volumes, this.#desired.volumes])
      for (const volume of ids.keys()) this.#queue.touch(volume);
  }

  #holderFound(operation: Operation, failure: Failure, holders: string): void {
    if (!this.#executor.blame(operation, failure, holders)) return;
    if (this.#obstacles.isNewHolder(operation, holders)) logHeld(this.#parts.log, operation, holders);
    this.#queue.touch(operation.volume);
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
