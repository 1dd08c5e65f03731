/** Keeps what is moving towards what should be: event-driven, level-triggered, one volume at a time. */
import type { Result } from '../mount/failure.ts';
import type { Cancel } from '../mount/host.ts';
import type { PodUid, VolumeId } from '../plugins/volume.ts';
import type { ActualState } from './model/actual-state.ts';
import { createBelief } from './model/belief.ts';
import { createDesiredChanges } from './model/desired-change.ts';
import { type DesiredState, NOTHING_KNOWN } from './model/desired-state.ts';
import { waitingFor } from './model/last-to-go.ts';
import type { Obstacle } from './model/obstacle.ts';
import { createOperationRunner } from './operation-runner.ts';
import { createPassQueue } from './pass-queue.ts';
import { POLICY, type Policy, type ReconcilerParts, type WakeCause } from './reconciler-parts.ts';
import type { Reconstruction } from './recovery/reconstruct.ts';
import { createRecordWriter } from './recovery/record-writer.ts';
import { createHolderSearch } from './run/holder-search.ts';
import { type Blockade, createObstacleBook } from './run/obstacle-book.ts';
import { logHeld, logOutcome } from './run/operation-log.ts';
import { createVolumeExecutor, type VolumeFinished, type VolumeInFlight } from './run/volume-operation.ts';
import { createVolumePlanner } from './volume-planner.ts';
import { createVolumeWatch } from './volume-watch.ts';
import { createWakeUp } from './wake-up.ts';

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
  const { host, plugins, records, log } = parts;
  const policy: Policy = { ...POLICY, ...parts.policy };
  const belief = createBelief(parts.recovered);
  const actual = belief.volumes;
  const desiredChanges = createDesiredChanges();
  const listeners = new Set<() => void>();
  let desiredState = NOTHING_KNOWN;
  let whenEnded = (): void => {};
  const desired = (): DesiredState => desiredState;
  const queue = createPassQueue(visit, notify);
  const { touch } = queue;
  const obstacles = createObstacleBook(host, (one) =>
    policy.tellInFlight(one, host.nowMs(), parts.effectDeadlineMs ?? EFFECT_DEADLINE_MS),
  );
  const executor = createVolumeExecutor({
    clock: host,
    backOff: parts.backOff,
    laneWidth: parts.laneWidth,
    laneOf: (operation) => planner.laneOf(operation),
    isStillWanted: (operation) => planner.isStillWanted(operation),
    perform: (operation, report) => run(operation, report),
    onFinished,
    onRetry: touch,
    onStep: notify,
  });
  const { resetBackOff } = executor;
  const wakeUp = createWakeUp({ host, actual, desired, resetBackOff, touch });
  const { tryAgain } = wakeUp;
  const watch = createVolumeWatch({
    ...{ parts, policy, belief, desired, touch, tryAgain },
    isBusy: (volume) => executor.inFlightOf(volume).length > 0,
    onResync() {
      executor.lendTurns();
      records.sweep();
      for (const volume of [...actual.keys(), ...desiredState.volumes.keys()]) touch(volume);
    },
  });
  const planner = createVolumePlanner({
    ...{ plan: policy.planVolume, plugins, belief, desired },
    gateOf: watch.reconstructGate.gateOf,
    quarantineOf: watch.quarantineControl.reasonFor,
  });
  const recordWriter = createRecordWriter({
    ...{ host, records, log },
    believed: (volume) => actual.get(volume),
    isRunning: (volume) => executor.inFlightOf(volume).some(({ phase }) => phase === 'running'),
    onNoted: notify,
  });
  const run = createOperationRunner({
    ...{ parts, policy, belief, desired, recordWriter, watch },
    isStillWanted: (operation) => !queue.isClosed() && planner.isStillWanted(operation),
    onGrowthDue: (volume) => resetBackOff(volume, 'climbs'),
  });
  const holders = createHolderSearch({
    host,
    onFound(operation, failure, blocker) {
      if (!executor.blame(operation, failure, blocker)) return;
      if (obstacles.isNewHolder(operation, blocker)) logHeld(log, operation, blocker);
      touch(operation.volume);
    },
  });

  function visit(volume: VolumeId): void {
    if (desiredChanges.isNews(volume, desiredState.volumes.get(volume))) resetBackOff(volume, 'climbs');
    watch.visit(volume);
    const { operations, waits } = planner.planOf(volume);
    const blockades: Blockade[] = waits.map((wait) => ({ from: 'plan', wait }));
    for (const operation of operations) {
      const submission = executor.submit(operation);
      if (submission.kind !== 'started') blockades.push({ from: 'executor', operation, submission });
    }
    obstacles.replace(volume, blockades);
    if (!actual.has(volume) && !desiredState.volumes.has(volume)) resetBackOff(volume);
  }

  function onFinished({ operation, outcome }: VolumeFinished): void {
    logOutcome(log, operation, outcome, (failure) => obstacles.isNews(operation, failure));
    if (outcome.kind === 'failed') holders.begin(operation, outcome.failure);
    watch.resync.changed(operation.volume);
    for (const id of [operation.volume, ...waitingFor(operation, belief)]) touch(id);
    watch.reconstructGate.ended();
    whenEnded();
  }

  function notify(): void {
    for (const listener of listeners) listener();
  }

  watch.resync.start();
  for (const volume of actual.keys()) touch(volume);
  return {
    setDesired(next) {
      const previous = desiredState;
      desiredState = next;
      for (const ids of [previous.volumes, next.volumes, actual]) for (const id of ids.keys()) touch(id);
    },
    wake: wakeUp.wake,
    takeReconstructed: watch.reconstructGate.take,
    actual: () => actual,
    desired,
    running: () => executor.inFlight(),
    obstacles: () => obstacles.list(executor.inFlight()),
    ...watch.releases,
    quarantine: watch.quarantineControl.quarantine,
    endQuarantine: watch.quarantineControl.release,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    idle: () => queue.idle() && recordWriter.idle() && executor.inFlight().length === 0,
    passes: queue.passes,
    stop(waitMs) {
      for (const one of [queue, recordWriter, wakeUp, executor]) one.close();
      for (const one of [watch, holders]) one.stop();
      return new Promise((resolve) => {
        const cancel = host.timer(waitMs, resolve);
        whenEnded = () => {
          if (executor.inFlight().some(({ phase }) => phase === 'running')) return;
          cancel();
          resolve();
        };
        whenEnded();
      });
    },
  };
}
