/** What looks at a volume beside its plan: resync, lookout, quarantine, and the gate of what was reconstructed. */
import type { Failure, Result } from '../mount/failure.ts';
import { FIRM_GROUND } from '../mount/ground.ts';
import type { PodUid, VolumeId } from '../plugins/volume.ts';
import { isForgettable } from './model/actual-state.ts';
import type { Belief } from './model/belief.ts';
import type { DesiredState } from './model/desired-state.ts';
import type { Policy, ReconcilerParts } from './reconciler-parts.ts';
import { createReconstructGate, type ReconstructGate } from './recovery/reconstruct-gate.ts';
import { createHolderWatch, type HolderWatch } from './run/holder-watch.ts';
import { createLookout, LATE_EFFECT_MS, type Lookout } from './run/lookout.ts';
import { createQuarantineControl, type QuarantineControl } from './run/quarantine-control.ts';
import { createResync, type Resync } from './run/resync.ts';
import { createUnknownPlaces } from './run/unknown-places.ts';
import { createUnreadyPods, type UnreadyPods } from './unready-pods.ts';

export interface VolumeWatchParts {
  readonly parts: ReconcilerParts;
  readonly policy: Pick<Policy, 'verifyMounts'>;
  readonly belief: Belief;
  readonly desired: () => DesiredState;
  readonly isBusy: (volume: VolumeId) => boolean;
  readonly touch: (volume: VolumeId) => void;
  readonly tryAgain: (volume: VolumeId) => void;
  /** Every volume was compared with the mount table. */
  readonly onResync: () => void;
}

export interface VolumeWatch {
  readonly resync: Pick<Resync, 'start' | 'changed'>;
  readonly lookout: Pick<Lookout, 'begun' | 'ended'>;
  readonly quarantineControl: QuarantineControl;
  readonly holders: Pick<HolderWatch, 'look' | 'ended'>;
  /** What is said about who has what is left of a pod. */
  readonly releases: Pick<HolderWatch, 'released' | 'forceRelease' | 'noteWish'>;
  readonly reconstructGate: Pick<ReconstructGate, 'take' | 'gateOf' | 'ended'>;
  readonly unreadyPods: Pick<UnreadyPods, 'wishEnds'>;
  /** Each of them looks at the volume, before it is planned. */
  visit(volume: VolumeId): void;
  /** Nothing of the volume is left: neither belief nor record. */
  forget(volume: VolumeId): Promise<Result<void>>;
  stop(): void;
}

export function createVolumeWatch({ parts, policy, ...shared }: VolumeWatchParts): VolumeWatch {
  const { host, layout, plugins, records, log } = parts;
  const { belief, isBusy, touch, tryAgain } = shared;
  const common = { host, layout, records, log, ...shared };
  const lookout = createLookout({ ...common, windowMs: parts.lateEffectMs ?? LATE_EFFECT_MS });
  const placesRead = (volume: VolumeId): boolean => reconstructGate.gateOf(volume).placesRead;
  const unknownPlaces = createUnknownPlaces({ ...common, placesRead });
  const whyUnknown = (pod: PodUid): Failure | undefined => reconstructGate.whyUnknown(pod);
  const unreadyPods = createUnreadyPods({ ...common, whyUnknown });
  const resync = createResync({
    ...common,
    everyMs: parts.resyncMs,
    ground: parts.ground ?? FIRM_GROUND,
    verify: policy.verifyMounts,
    onDoubt: touch,
    onTable(table, changed) {
      lookout.look(table, changed);
      unknownPlaces.look(table, changed);
    },
    onRegained: tryAgain,
    onEnd: shared.onResync,
  });
  const quarantineControl = createQuarantineControl({
    ...common,
    canBeProvenClean: (spec) => plugins.of(spec).verifyClean !== undefined,
    needsOf: (spec) => plugins.of(spec).needs(spec),
    forget,
    onChanged: tryAgain,
  });
  const holders = createHolderWatch({ ...common, onChanged: tryAgain });
  const reconstructGate = createReconstructGate({ ...common, forget: (volume) => void forget(volume) });

  async function forget(id: VolumeId): Promise<Result<void>> {
    belief.forget(id);
    reconstructGate.forgotten(id);
    const erased = await records.erase(id);
    if (!erased.ok) log.warn('record not erased', { volume: id, code: erased.failure.code });
    return erased;
  }

  return {
    resync,
    lookout: {
      begun: lookout.begun,
      ended(begun, operation, outcome) {
        unknownPlaces.ended(begun, operation, outcome);
        return lookout.ended(begun, operation, outcome);
      },
    },
    quarantineControl,
    holders,
    releases: holders,
    reconstructGate,
    unreadyPods,
    visit(volume) {
      reconstructGate.visit(volume);
      quarantineControl.visit(volume);
      lookout.visit(volume);
      unreadyPods.visit(volume);
      const known = belief.volumes.get(volume);
      // A quarantine was all there was to remember, and a reboot ended it, or an operator before its proof had begun.
      if (known !== undefined && isForgettable(known) && !isBusy(volume)) void forget(volume);
    },
    forget,
    stop() {
      resync.stop();
      lookout.stop();
      holders.stop();
    },
  };
}
