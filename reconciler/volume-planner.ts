/** The plan of each volume as things are now: what the pure planner is asked with. */
import type { PluginRegistry } from '../plugins/plugin.ts';
import type { VolumeId, VolumeSpec } from '../plugins/volume.ts';
import type { QuarantineReason } from './model/actual-state.ts';
import type { BeliefView } from './model/belief.ts';
import type { DesiredState } from './model/desired-state.ts';
import { climbs, isSameOperation, type Operation } from './model/operation.ts';
import type { Gate, planVolume, VolumePlan } from './model/plan.ts';
import { specToClimbBy } from './model/staged-spec.ts';

export interface VolumePlannerParts {
  readonly plan: typeof planVolume;
  readonly plugins: PluginRegistry;
  readonly belief: Pick<BeliefView, 'volumes'>;
  readonly desired: () => DesiredState;
  readonly gateOf: (volume: VolumeId) => Omit<Gate, keyof DesiredState>;
  /** Why the volume is to go into quarantine, if it is not there already. */
  readonly quarantineOf: (volume: VolumeId) => QuarantineReason | undefined;
}

export interface VolumePlanner {
  planOf(volume: VolumeId): VolumePlan;
  /** The operation would be planned now, too. */
  isStillWanted(operation: Operation): boolean;
  /** The lane of the executor in which the operation runs. */
  laneOf(operation: Operation): string;
}

export function createVolumePlanner(parts: VolumePlannerParts): VolumePlanner {
  const { plugins, belief, desired } = parts;

  function planOf(volume: VolumeId): VolumePlan {
    const wanted = desired().volumes.get(volume);
    const known = belief.volumes.get(volume);
    const spec = wanted === undefined ? known?.spec : specToClimbBy(known, wanted.spec);
    return parts.plan({
      volume,
      desired: wanted,
      actual: known,
      needs: spec === undefined ? undefined : plugins.of(spec).needs(spec),
      gate: { ...desired(), ...parts.gateOf(volume) },
      quarantine: known?.quarantine?.reason ?? parts.quarantineOf(volume),
    });
  }

  function specOf(operation: Operation): VolumeSpec | undefined {
    const wanted = desired().volumes.get(operation.volume)?.spec;
    const known = belief.volumes.get(operation.volume)?.spec;
    return climbs(operation.kind) ? (wanted ?? known) : (known ?? wanted);
  }

  return {
    planOf,
    isStillWanted: (operation) =>
      planOf(operation.volume).operations.some((other) => isSameOperation(other, operation)),
    laneOf(operation) {
      const spec = specOf(operation);
      if (spec === undefined) return 'none';
      const plugin = plugins.of(spec);
      const { kind, volume } = operation;
      // What an earlier life attached by a call of its own is detached by one.
      const isGranted = belief.volumes.get(volume)?.attachedNode === undefined;
      const grantLane = isGranted && (kind === 'attach' || kind === 'detach') ? plugin.grantLane : undefined;
      return grantLane ?? plugin.lane(spec);
    },
  };
}
