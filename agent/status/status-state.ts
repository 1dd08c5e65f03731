/** The one word for how a volume of a pod is. Pure. */
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import type { RungState, VolumeState } from './volume-status.ts';

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
