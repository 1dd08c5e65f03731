/** Planted bugs of records on a sick disk, and of dead file systems. */
import { climbs } from '../../reconciler/model/operation.ts';
import { done, fail, ok } from '../../mount/failure.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import { planVolume } from '../../reconciler/model/plan.ts';
import { type Mutant, withHost } from './mutant.ts';
import { inJournal } from './records-plan.ts';
import { aboutDeadAndTaken, aboutDeadFileSystems, aboutUndoing } from './stories.ts';

export const DISK_MUTANTS: readonly Mutant[] = [
  {
    name: 'undoes what it could not write down',
    seed: 17,
    caughtBy: ['INV-1', 'INV-2'],
    make: () => ({
      // The disk is full whenever a stage is to be undone, and the room for that is not there.
      ...withHost((host) => ({
        overwriteFile: async (path, offsetBytes, content, within) => {
          const isUndoing = Buffer.from(content).includes('"staged":"unsure"');
          if (!isUndoing) return host.overwriteFile(path, offsetBytes, content, within);
          return fail({ code: 'disk-full', message: path, effect: 'none' });
        },
      })),
      policy: { mayBegin: (operation, saved) => saved.ok || !climbs(operation.kind) },
      plan: aboutUndoing,
    }),
  },
  {
    name: 'does not write into its journal what it has taken down',
    caughtBy: ['liveness'],
    make: () => ({
      ...withHost((host) => ({
        overwriteFile: async (path, offsetBytes, content, within) => {
          const isErase = offsetBytes > 0 && Buffer.from(content).includes('erase ');
          return isErase ? done : host.overwriteFile(path, offsetBytes, content, within);
        },
      })),
      plan: inJournal,
    }),
  },
  {
    name: 'publishes from a file system without asking whether it serves',
    caughtBy: ['DR-11'],
    make: () => ({
      ...withHost((host) => ({
        probeFileSystem: async (path) => {
          const seen = await host.lookUpMount(path);
          if (!seen.ok) return seen;
          if (!seen.value.mounted) return ok({ kind: 'unmounted' });
          return ok({ kind: 'alive', readOnly: false, device: seen.value.device });
        },
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
    name: 'takes what was staged just now for a new file system',
    seed: 125,
    caughtBy: ['DR-11'],
    make: () => ({
      ...withHost((host) => ({
        lookUpMount: async (path) => {
          const seen = await host.lookUpMount(path);
          // Nobody is told of what is published either: that it is read-only is judged by how it was staged.
          const isPlace = path.endsWith('/globalmount') || path.endsWith('/mount');
          if (!seen.ok || !seen.value.mounted || !isPlace) return seen;
          const { mountId, device } = seen.value;
          return ok({ mounted: true, mountId, device });
        },
      })),
      plan: aboutDeadAndTaken,
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
  {
    name: 'takes a dead file system from a pod whose place is in doubt',
    seed: 443,
    caughtBy: ['INV-3'],
    make: () => ({
      policy: {
        planVolume: (input) =>
          planVolume(
            input.actual === undefined ? input : { ...input, actual: withoutMountsInDoubt(input.actual) },
          ),
      },
      plan: aboutDeadAndTaken,
    }),
  },
];

function withoutMountsInDoubt(volume: ActualVolume): ActualVolume {
  const publications = [...volume.publications].map(([key, place]) => {
    return [key, place.presence.kind === 'unsure' ? { ...place, mount: undefined } : place] as const;
  });
  return { ...volume, publications: new Map(publications) };
}
