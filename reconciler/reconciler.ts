/** Keeps what is moving towards what should be: event-driven, level-triggered, one volume at a time. */
import { assert, type Result } from '../mount/failure.ts';
import { FIRM_GROUND } from '../mount/ground.ts';
import type { Cancel } from '../mount/host.ts';
import { NO_SECRETS } from '../plugins/plugin.ts';
import type { CallReport } from '../plugins/step.ts';
import type { VolumeId, VolumeSpec } from '../plugins/volume.ts';
import {
  type ActualState,
  type ActualVolume,
  isForgettable,
  isToldOnce,
  type VolumeOutcome,
} from './model/actual-state.ts';
import { createContentLook, type Surroundings } from './run/content-look.ts';
import { createBelief } from './model/belief.ts';
import { attachmentUidNow } from './model/attachment-identity.ts';
import { createBackOffReset } from './run/back-off-reset.ts';
import { createHolderSearch } from './run/holder-search.ts';
import type { Reconstruction } from './recovery/reconstruct.ts';
import { type DesiredState, NOTHING_KNOWN } from './model/desired-state.ts';
import { waitingFor } from './model/last-to-go.ts';
import { createReconstructGate } from './recovery/reconstruct-gate.ts';
import { createLookout, LATE_EFFECT_MS } from './run/lookout.ts';
import { createRecordWriter } from './recovery/record-writer.ts';
import { logHeld, logOutcome } from './run/operation-log.ts';
import { isOf, specs } from './model/specs.ts';
import { createDesiredChanges } from './model/desired-change.ts';
import { type Blockade, createObstacleBook } from './run/obstacle-book.ts';
import type { Obstacle } from './model/obstacle.ts';
import { climbs, isSameOperation, type Operation, publicationOf } from './model/operation.ts';
import { performVerb } from './run/perform.ts';
import { createVolumeExecutor, type VolumeFinished, type VolumeInFlight } from './run/volume-operation.ts';
import { createQuarantineControl } from './run/quarantine-control.ts';
import type { VolumePlan } from './model/plan.ts';
import { createRecordDuty } from './recovery/record-duty.ts';
import { POLICY, type Policy, type ReconcilerParts, type WakeCause } from './reconciler-parts.ts';
import { createResync } from './run/resync.ts';
import { noteSickness } from './model/sickness.ts';
import { specToClimbBy } from './model/staged-spec.ts';
import { startingPoint } from './run/starting-point.ts';
import { withOpenCall } from './model/tombstone.ts';

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
  const { host, layout, plugins, records, log, unwantedSecrets = () => NO_SECRETS } = parts;
  const policy: Policy = { ...POLICY, ...parts.policy };
  const belief = createBelief(parts.recovered);
  const actual = belief.volumes;
  const dirty = new Set<VolumeId>(actual.keys());
  const obstacles = createObstacleBook(host, (one) =>
    policy.tellInFlight(one, host.nowMs(), parts.effectDeadlineMs ?? EFFECT_DEADLINE_MS),
  );
  const desiredChanges = createDesiredChanges();
  const listeners = new Set<() => void>();
  let desired = NOTHING_KNOWN;
  let passes = 0;
  let scheduled = false;
  let stopped = false;
  let whenEnded = (): void => {};

  const executor = createVolumeExecutor({
    clock: host,
    backOff: parts.backOff,
    laneWidth: parts.laneWidth,
    laneOf: (operation) => {
      const spec = specOf(operation);
      return spec === undefined ? 'none' : plugins.of(spec).lane(spec);
    },
    isStillWanted,
    perform,
    onFinished,
    onRetry: (volume) => touch(volume),
    onStep: notify,
  });

  function planOf(volume: VolumeId): VolumePlan {
    const wanted = desired.volumes.get(volume)?.spec;
    const known = actual.get(volume);
    const spec = wanted === undefined ? known?.spec : specToClimbBy(known, wanted);
    return policy.planVolume({
      volume,
      desired: desired.volumes.get(volume),
      actual: known,
      needs: spec === undefined ? undefined : plugins.of(spec).needs(spec),
      gate: { ...desired, ...reconstructGate.gateOf(volume) },
      quarantine: known?.quarantine?.reason ?? quarantineControl.reasonFor(volume),
    });
  }

  const recordWriter = createRecordWriter({
    host,
    records,
    log,
    believed: (volume) => actual.get(volume),
    isRunning: (volume) => executor.inFlightOf(volume).some(({ phase }) => phase === 'running'),
    onNoted: notify,
  });

  const lookAtContent = createContentLook({ plugins, belief, desired: () => desired, learn: policy.learn });

  const writeDown = createRecordDuty({ host, records, log, mayBegin: policy.mayBegin });

  const resync = createResync({
    host,
    layout,
    log,
    everyMs: parts.resyncMs,
    ground: parts.ground ?? FIRM_GROUND,
    verify: policy.verifyMounts,
    belief,
    isBusy,
    onDoubt: touch,
    onTable: (table, changed) => lookout.look(table, changed),
    onRegained: tryAgain,
    onEnd: () => {
      executor.lendTurns();
      records.sweep();
      for (const volume of [...actual.keys(), ...desired.volumes.keys()]) touch(volume);
    },
  });

  const lookout = createLookout({
    host,
    layout,
    log,
    belief,
    isBusy,
    touch,
    windowMs: parts.lateEffectMs ?? LATE_EFFECT_MS,
  });

  const quarantineControl = createQuarantineControl({
    host,
    records,
    log,
    belief,
    isBusy,
    desired: () => desired,
    canBeProvenClean: (spec) => plugins.of(spec).verifyClean !== undefined,
    needsOf: (spec) => plugins.of(spec).needs(spec),
    forget,
    onChanged: tryAgain,
  });

  const reconstructGate = createReconstructGate({
    layout,
    log,
    belief,
    desired: () => desired,
    isBusy,
    touch,
    forget: (volume) => void forget(volume),
  });

  const holders = createHolderSearch({
    host,
    onFound(operation, failure, blocker) {
      if (!executor.blame(operation, failure, blocker)) return;
      if (obstacles.isNewHolder(operation, blocker)) logHeld(log, operation, blocker);
      touch(operation.volume);
    },
  });

  const backOffReset = createBackOffReset(host, (driver) => {
    resetBackOffs((spec) => isOf(spec, driver));
  });

  function resetBackOffs(isMeant: (spec: VolumeSpec) => boolean): void {
    for (const [id, spec] of specs(actual, desired)) {
      if (!isMeant(spec)) continue;
      executor.resetBackOff(id);
      touch(id);
    }
  }

  function tryAgain(volume: VolumeId): void {
    executor.resetBackOff(volume);
    touch(volume);
  }

  function isStillWanted(operation: Operation): boolean {
    return planOf(operation.volume).operations.some((other) => isSameOperation(other, operation));
  }

  function isBusy(volume: VolumeId): boolean {
    return executor.inFlightOf(volume).length > 0;
  }

  function specOf(operation: Operation): VolumeSpec | undefined {
    const wanted = desired.volumes.get(operation.volume)?.spec;
    const known = actual.get(operation.volume)?.spec;
    return climbs(operation.kind) ? (wanted ?? known) : (known ?? wanted);
  }

  function touch(volume: VolumeId): void {
    dirty.add(volume);
    if (scheduled || stopped) return;
    scheduled = true;
    queueMicrotask(pass);
  }

  /** One pass over the volumes that something happened to; never over all because one changed. */
  function pass(): void {
    scheduled = false;
    if (stopped) return;
    passes += 1;
    for (const volume of dirty) {
      dirty.delete(volume);
      reconcileVolume(volume);
    }
    notify();
  }

  function reconcileVolume(volume: VolumeId): void {
    const wanted = desired.volumes.get(volume);
    if (desiredChanges.isNews(volume, wanted)) executor.resetBackOff(volume, 'climbs');
    reconstructGate.visit(volume);
    quarantineControl.visit(volume);
    lookout.visit(volume);
    const known = actual.get(volume);
    // A quarantine was all there was to remember, and a reboot ended it, or an operator while its proof had not begun.
    if (known !== undefined && isForgettable(known) && !isBusy(volume)) void forget(volume);
    const { operations, waits } = planOf(volume);
    const blockades: Blockade[] = waits.map((wait) => ({ from: 'plan', wait }));
    for (const operation of operations) {
      const submission = executor.submit(operation);
      if (submission.kind !== 'started') blockades.push({ from: 'executor', operation, submission });
    }
    obstacles.replace(volume, blockades);
    if (!actual.has(volume) && !desired.volumes.has(volume)) executor.resetBackOff(volume);
  }

  async function perform(operation: Operation, report: CallReport): Promise<VolumeOutcome> {
    const looking = lookAtContent(operation, surroundings(operation, report));
    const looked = looking && (await looking);
    if (looked !== undefined) return looked;
    const wanted = desired.volumes.get(operation.volume);
    const before = startingPoint(actual.get(operation.volume), operation, wanted, {
      needsOf: (spec) => plugins.of(spec).needs(spec),
      attachmentUid: attachmentUidNow(desired, operation.volume),
    });
    const publication = publicationOf(operation);
    const target = publication === undefined ? undefined : wanted?.publications.get(publication);
    const begun = withOpenCall(policy.begin(before, operation, target?.spec), operation);
    belief.begin(begun);
    report.step({ kind: 'recording' });
    const written = await writeDown(operation, begun);
    report.step({ kind: 'working' });
    const needs = climbs(operation.kind) ? plugins.of(begun.spec).needs(begun.spec) : begun.needs;
    const outcome: VolumeOutcome = written.ok
      ? await performVerb(plugins.of(begun.spec), operation, {
          volume: begun,
          actual,
          needs: needs ?? begun.needs,
          wanted,
          ...surroundings(operation, report),
        })
      : { kind: 'failed', failure: written.failure };
    const now = actual.get(operation.volume);
    assert(now !== undefined, 'a volume with an operation in flight is known');
    const heard = lookout.ended(now, operation, outcome);
    const learnt = noteSickness(policy.learn(heard, before, operation, outcome), operation, outcome);
    // What the growth waited for has come to pass, and it goes before the next pod.
    if (now.refusedExpansion !== undefined && learnt.refusedExpansion === undefined)
      executor.resetBackOff(operation.volume, 'climbs');
    report.step({ kind: 'recording' });
    await settle(learnt, isToldOnce(now, learnt));
    return outcome;
  }

  function surroundings(operation: Operation, report: CallReport): Surroundings {
    return { unwantedSecrets, stillWanted: () => !stopped && isStillWanted(operation), ...report };
  }

  /** Believes what was learnt, and writes it down; a write that fails costs certainty after a crash, nothing else. */
  async function settle(volume: ActualVolume, toldOnce: boolean): Promise<void> {
    const id = volume.spec.id;
    if (!isForgettable(volume)) {
      belief.learn(volume);
      await recordWriter.note(id, toldOnce);
      return;
    }
    await forget(id);
  }

  async function forget(id: VolumeId): Promise<Result<void>> {
    belief.forget(id);
    reconstructGate.forgotten(id);
    const erased = await records.erase(id);
    if (!erased.ok) log.warn('record not erased', { volume: id, code: erased.failure.code });
    return erased;
  }

  function onFinished({ operation, outcome }: VolumeFinished): void {
    logOutcome(log, operation, outcome, (failure) => obstacles.isNews(operation, failure));
    if (outcome.kind === 'failed') holders.begin(operation, outcome.failure);
    resync.changed(operation.volume);
    for (const id of [operation.volume, ...waitingFor(operation, belief)]) touch(id);
    reconstructGate.ended();
    whenEnded();
  }

  function notify(): void {
    for (const listener of listeners) listener();
  }

  resync.start();
  for (const volume of dirty) touch(volume);

  return {
    setDesired(next) {
      const previous = desired;
      desired = next;
      for (const ids of [previous.volumes, next.volumes, actual]) for (const id of ids.keys()) touch(id);
    },
    wake: (cause) => {
      if (cause.kind === 'operator') return resetBackOffs(() => true);
      if (cause.kind === 'attachment') return tryAgain(cause.volume);
      backOffReset.ask(cause.driver);
      for (const [id, spec] of specs(actual, desired)) if (isOf(spec, cause.driver)) touch(id);
    },
    takeReconstructed: reconstructGate.take,
    actual: () => actual,
    desired: () => desired,
    running: () => executor.inFlight(),
    obstacles: () => obstacles.list(executor.inFlight()),
    quarantine: quarantineControl.quarantine,
    endQuarantine: quarantineControl.release,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    idle: () => !scheduled && recordWriter.idle() && executor.inFlight().length === 0,
    passes: () => passes,
    stop(waitMs) {
      stopped = true;
      resync.stop();
      lookout.stop();
      recordWriter.close();
      backOffReset.close();
      holders.stop();
      executor.close();
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
