/** Planted bugs of records on a sick disk, and of dead file systems. */
import { climbs } from '../../reconciler/operation.ts';
import { fail, ok } from '../../mount/failure.ts';
import { planVolume } from '../../reconciler/plan.ts';
import { type Mutant, withHost } from './mutant.ts';
import { aboutDeadFileSystems, aboutUndoing } from './stories.ts';

export const DISK_MUTANTS: readonly Mutant[] = [
  {
    name: 'undoes what it could not write down',
    caughtBy: ['INV-1', 'INV-2'],
    make: () => ({
      // The disk is full whenever a stage is to be undone, and the room for that is not there.
      ...withHost((host) => ({
        overwriteFile: async (path, offsetBytes, content) => {
          const isUndoing = Buffer.from(content).includes('"staged":"unsure"');
          if (!isUndoing) return host.overwriteFile(path, offsetBytes, content);
          return fail({ code: 'disk-full', message: path, effect: 'none' });
        },
      })),
      policy: { mayBegin: (operation, saved) => saved.ok || !climbs(operation.kind) },
      plan: aboutUndoing,
    }),
  },
  {
    name: 'publishes from a file system without asking whether it serves',
    caughtBy: ['DR-11'],
    make: () => ({
      ...withHost((host) => ({
        probeFileSystem: async () => ok({ kind: 'alive', readOnly: false }),
        lookUpMount: async (path) => {
          const seen = await host.lookUpMount(path);
          if (!seen.ok || !seen.value.mounted) return seen;
          const { death: _, readOnly: __, ...mount } = seen.value;
          return ok(mount);
        },
      })),
      plan: aboutDeadFileSystems,
    }),
  },
  {
    name: 'stages again over a dead file system instead of taking it down',
    caughtBy: ['liveness'],
    make: () => ({
      policy: {
        planVolume: (input) => {
          const { actual } = input;
          return planVolume(
            actual === undefined ? input : { ...input, actual: { ...actual, sickness: undefined } },
          );
        },
      },
      plan: aboutDeadFileSystems,
    }),
  },
];
