/** The one word for how a volume of a pod is, and the rungs of its ladder. Pure. */
import type { Presence } from '../../reconciler/model/actual-state.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import type { VolumePair } from './status-places.ts';
import type { RungState, VolumeState, VolumeStatus } from './volume-status.ts';

export interface PlaceFacts {
  readonly wanted: boolean;
  readonly published: RungState;
  readonly isQuarantined: boolean;
  readonly obstacle: Obstacle | undefined;
}

export function stateOf({ wanted, published, isQuarantined, obstacle }: PlaceFacts): VolumeState {
  if (isQuarantined) return published === 'absent' ? 'blocked' : 'unmounting';
  return wanted ? climbing(published === 'present', obstacle) : descending(obstacle);
}

function climbing(there: boolean, obstacle: Obstacle | undefined): VolumeState {
  if (there) return 'mounted';
  switch (obstacle?.kind) {
    case 'blocked':
      // The pod that has it now need only go.
      return obstacle.code === 'volume-in-use' ? 'waiting' : 'blocked';
    case 'waiting-change':
    case 'quarantined':
      return 'blocked';
    case 'waiting-retry':
    case 'waiting-driver':
    case 'waiting-turn':
      return 'waiting';
    default:
      return 'mounting';
  }
}

function descending(obstacle: Obstacle | undefined): VolumeState {
  return obstacle?.kind === 'gate-closed' || obstacle?.kind === 'frozen' ? 'kept' : 'unmounting';
}

export function rung(presence: Presence | undefined): RungState {
  return presence?.kind ?? 'absent';
}

export function rungsOf({ actual }: VolumePair): VolumeStatus['rungs'] {
  return {
    attached: actual?.needs.attach === false ? 'not-needed' : rung(actual?.attached),
    staged: actual?.needs.stage === false ? 'not-needed' : rung(actual?.staged),
  };
}
