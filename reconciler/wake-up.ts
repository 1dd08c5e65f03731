/** Tries waiting operations again before their back-off ends, because what they waited for may have come. */
import type { Clock } from '../mount/host.ts';
import type { VolumeId, VolumeSpec } from '../plugins/volume.ts';
import type { ActualState } from './model/actual-state.ts';
import type { DesiredState } from './model/desired-state.ts';
import { isOf, specs } from './model/specs.ts';
import type { WakeCause } from './reconciler-parts.ts';
import { createBackOffReset } from './run/back-off-reset.ts';

export interface WakeUpParts {
  readonly host: Clock;
  readonly actual: ActualState;
  readonly desired: () => DesiredState;
  readonly resetBackOff: (volume: VolumeId) => void;
  readonly touch: (volume: VolumeId) => void;
}

export interface WakeUp {
  wake(cause: WakeCause): void;
  /** What kept the volume waiting has changed. */
  tryAgain(volume: VolumeId): void;
  close(): void;
}

export function createWakeUp({ host, actual, desired, resetBackOff, touch }: WakeUpParts): WakeUp {
  const backOffReset = createBackOffReset(host, (driver) => {
    tryAllAgain((spec) => isOf(spec, driver));
  });

  function tryAllAgain(isMeant: (spec: VolumeSpec) => boolean): void {
    for (const [id, spec] of specs(actual, desired())) if (isMeant(spec)) tryAgain(id);
  }

  function tryAgain(volume: VolumeId): void {
    resetBackOff(volume);
    touch(volume);
  }

  return {
    wake(cause) {
      if (cause.kind === 'operator') return tryAllAgain(() => true);
      if (cause.kind === 'attachment') return tryAgain(cause.volume);
      backOffReset.ask(cause.driver);
      for (const [id, spec] of specs(actual, desired())) if (isOf(spec, cause.driver)) touch(id);
    },
    tryAgain,
    close: backOffReset.close,
  };
}
