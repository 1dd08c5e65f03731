/** Planted bugs of the parts of volumes that are bound for single containers. */
import { ok } from '../../mount/failure.ts';
import { publicationOf } from '../../reconciler/model/operation.ts';
import { learn } from '../../reconciler/model/belief-change.ts';
import { removeSubpaths } from '../../plugins/subpath/subpath-binds.ts';
import { type Mutant, withHost } from './mutant.ts';
import type { Mutation } from './simulate.ts';
import { aboutPartsOfChangedDisks, aboutSubpaths } from './stories.ts';

const leavesBinds: Mutation = {
  ...withHost((host) => ({
    perform: async (transition, args) =>
      transition.name === removeSubpaths.name ? (ok(undefined) as never) : host.perform(transition, args),
  })),
  plan: aboutSubpaths,
};

const bindsBelowLostMounts: Mutation = {
  ...withHost((host) => ({ bindPart: (request) => host.bindPart({ ...request, rootMountId: undefined }) })),
  plan: (plan) => {
    const { events } = aboutSubpaths(plan);
    return { ...aboutSubpaths(plan), events: { ...events, mountTaken: 6 } };
  },
};

/** That the parts were to be bound otherwise is in the record before the verb, and stays there. */
const takesTriedForBound: Mutation = {
  plan: aboutPartsOfChangedDisks,
  policy: {
    learn: (believed, before, operation, outcome) => {
      const learnt = learn(believed, before, operation, outcome);
      const key = publicationOf(operation);
      const [place, begun] = [learnt, believed].map((one) => key && one.publications.get(key));
      if (place === undefined || begun === undefined || key === undefined) return learnt;
      const spec = { ...place.spec, ...(begun.spec.subpaths && { subpaths: begun.spec.subpaths }) };
      return { ...learnt, publications: new Map(learnt.publications).set(key, { ...place, spec }) };
    },
  },
};

export const SUBPATH_MUTANTS: readonly Mutant[] = [
  { name: 'takes a volume down while parts of it are bound', caughtBy: ['DL-04'], make: () => leavesBinds },
  {
    name: 'binds what lies below a mount that is gone',
    seed: 108,
    caughtBy: ['liveness', 'stability'],
    make: () => bindsBelowLostMounts,
  },
  {
    name: 'takes a part that was tried for one that is bound',
    seed: 1_123,
    caughtBy: ['liveness', 'stability'],
    make: () => takesTriedForBound,
  },
];
