/** Planted bugs of records on a sick disk. */
import { climbs } from '../../reconciler/operation.ts';
import type { Mutant } from './mutant.ts';
import { aboutSickDisks } from './stories.ts';

export const DISK_MUTANTS: readonly Mutant[] = [
  {
    name: 'undoes what it could not write down',
    caughtBy: ['INV-1', 'INV-2'],
    make: () => ({
      policy: { mayBegin: (operation, saved) => saved.ok || !climbs(operation.kind) },
      plan: aboutSickDisks,
    }),
  },
];
