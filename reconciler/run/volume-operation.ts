/** The operations of the node as the executor sees them: one subject for each volume. */
import type { VolumeId } from '../../plugins/volume.ts';
import type { Learnt } from '../model/actual-state.ts';
import { climbs, conflicts, type Operation, publicationOf } from '../model/operation.ts';
import {
  createExecutor,
  type Executor,
  type ExecutorParts,
  type Finished,
  type Submission,
} from './executor.ts';
import type { EndedSetback } from './operation-traits.ts';
import type { InFlight } from './in-flight.ts';

type VolumeExecutorParts = Omit<ExecutorParts<Operation, Learnt, VolumeId>, 'traits'>;
export type VolumeFinished = Finished<Operation, Learnt>;
export type VolumeInFlight = InFlight<Operation>;
export type VolumeSubmission = Submission<Operation>;

export function createVolumeExecutor(parts: VolumeExecutorParts): Executor<Operation, VolumeId> {
  const traits = {
    subject: ({ volume }: Operation) => volume,
    conflicts,
    setbackKey,
    climbs: ({ kind }: Operation) => climbs(kind),
    ends,
  };
  return createExecutor({ ...parts, traits });
}

/**
 * Per (place or rung, direction): a failing pod delays no other, and a failed climb never delays the way down. An
 * attach that is done again because a stage was refused does not end the back-off of that stage, a failing expansion
 * delays no rung, and a detach that cannot be made nothing that came late above it.
 */
function setbackKey(operation: Operation): string {
  const { kind } = operation;
  return `${climbs(kind) ? 'up' : 'down'}/${publicationOf(operation) ?? kind}`;
}

/** What stands again was not taken down in vain; and what keeps a disk attached may have been what is unstaged now. */
function ends(operation: Operation): readonly EndedSetback[] {
  const { kind, volume } = operation;
  switch (kind) {
    case 'attach':
      return [{ key: setbackKey({ kind: 'detach', volume }), extent: 'all' }];
    case 'stage':
      return [{ key: setbackKey({ kind: 'unstage', volume }), extent: 'all' }];
    case 'publish':
      return [{ key: setbackKey({ ...operation, kind: 'unpublish' }), extent: 'all' }];
    case 'unstage':
      return [{ key: setbackKey({ kind: 'detach', volume }), extent: 'timed' }];
    default:
      return [];
  }
}
