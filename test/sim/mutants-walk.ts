/** Planted bugs of giving a volume to a group. */
import { createOwnership } from '../../mount/agent-side/fs-group-walk.ts';
import { ok } from '../../mount/failure.ts';
import { type ActualVolume, PRESENT } from '../../reconciler/model/actual-state.ts';
import { learn } from '../../reconciler/model/belief-change.ts';
import { type Mutant, withHost } from './mutant.ts';
import type { Mutation } from './simulate.ts';
import { aboutGroups } from './stories.ts';

const walksAtOnce: Mutation = {
  ...withHost((host) => ({ changeOwnership: (request) => createOwnership(host.ownershipParts)(request) })),
  plan: aboutGroups,
};

const leavesTheRootMarked: Mutation = {
  ...withHost((host) => {
    const { change } = host.ownershipParts;
    const done = { mountId: 0, right: true, directories: [], seen: 0, changed: 0, refused: 0 };
    return {
      changeOwnership: createOwnership({
        ...host.ownershipParts,
        change: async (part, company) => (part.scope === 'unmark' ? ok(done) : change(part, company)),
      }),
    };
  }),
  plan: aboutGroups,
};

const healsNoCutShortWalk: Mutation = {
  policy: { learn: (...known) => withoutDoubt(learn(...known)) },
  plan: aboutGroups,
};

function withoutDoubt(volume: ActualVolume): ActualVolume {
  const publications = [...volume.publications].map(([key, place]) => {
    const { presence } = place;
    const isDoubted =
      presence.kind === 'unsure' &&
      typeof presence.because === 'object' &&
      presence.because.code === 'group-unfinished';
    return [key, isDoubted ? { ...place, presence: PRESENT } : place] as const;
  });
  return { ...volume, publications: new Map(publications) };
}

export const WALK_MUTANTS: readonly Mutant[] = [
  {
    name: 'gives one volume to two groups at once',
    seed: 16,
    caughtBy: ['RS-09', 'liveness', 'stability'],
    make: () => walksAtOnce,
  },
  {
    name: 'leaves the root to the group of before while it walks',
    caughtBy: ['RS-09'],
    make: () => leavesTheRootMarked,
  },
  {
    name: 'leaves to two groups what a cut-short walk has changed, though a pod has it',
    seed: 445,
    caughtBy: ['liveness', 'stability'],
    make: () => healsNoCutShortWalk,
  },
];
