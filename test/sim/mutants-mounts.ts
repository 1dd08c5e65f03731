/** Planted bugs of what is seen at a path: other mounts taken for ours, lines of the table taken in their order. */
import { ok } from '../../mount/failure.ts';
import { isBelow, type MountPlace } from '../../mount/host.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import { createLayout } from '../../plugins/layout/layout.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import { verifyMounts } from '../../reconciler/recovery/verify.ts';
import { type Mutant, withHost } from './mutant.ts';
import type { Mutation } from './simulate.ts';
import { ROOT } from './sim-paths.ts';
import { aboutHiddenStages } from './stories.ts';
import type { Plan } from './swarm.ts';

const { blockDevices } = createLayout(ROOT);

const amongStrangers = (plan: Plan): Plan => ({ ...plan, strangers: 'anything' });

/** What was seen there first is there for ever. */
function looksOnce(): Mutation {
  const seen = new Map<string, MountPlace>();
  return {
    plan: amongStrangers,
    ...withHost((host) => ({
      mountPlaceOf: async (path) => {
        const place = await host.mountPlaceOf(path);
        const known = seen.get(path);
        if (!place.ok || place.value.mountId === undefined) return place;
        if (known !== undefined) return ok(known);
        seen.set(path, place.value);
        return place;
      },
    })),
  };
}

/** Whatever lies there at a resync is the volume from then on. */
const takesWhatItFinds: Mutation = {
  plan: amongStrangers,
  policy: {
    verifyMounts: (volume, table, shown, layout, ground) => {
      const topAt = (path: Parameters<MountTable['at']>[0]) => {
        const top = table.at(path).at(-1);
        return top === undefined ? undefined : { mountId: top.mountId, device: top.device };
      };
      const { spec } = volume;
      const publications = [...volume.publications].map(([key, one]) => {
        const mount = one.mount && (topAt(layout.mountPoint(spec, one.spec)) ?? one.mount);
        return [key, { ...one, mount }] as const;
      });
      const staged = spec.kind === 'csi' ? topAt(layout.stagingPath(spec)) : undefined;
      const stagedMount = volume.stagedMount && (staged ?? volume.stagedMount);
      const taken: ActualVolume = { ...volume, stagedMount, publications: new Map(publications) };
      return verifyMounts(taken, table, shown, layout, ground);
    },
  },
};

/** Believes that of two lines with one target the later one is what one sees. */
const believesTheLaterLine: Mutation = {
  plan: (plan) => ({ ...plan, doubledRoot: true }),
  ...withHost((host) => ({
    readMountTable: async (about) => {
      const table = await host.readMountTable(about);
      return table.ok ? ok({ ...table.value, at: table.value.named }) : table;
    },
  })),
};

/** Whoever removes papers sees nobody over the directories beside them, and takes what is hidden there for absent. */
const seesNoCoverBesidePapers: Mutation = {
  plan: aboutHiddenStages,
  ...withHost((host) => ({
    mountPlaceOf: async (path) => {
      const place = await host.mountPlaceOf(path);
      if (!place.ok || !isBelow(path, blockDevices)) return place;
      const above = await host.mountPlaceOf(blockDevices);
      return above.ok ? ok({ ...place.value, within: above.value.within }) : above;
    },
  })),
};

export const MOUNT_MUTANTS: readonly Mutant[] = [
  {
    name: 'does not look whose mount lies at its places',
    seed: 21,
    caughtBy: ['foreign'],
    make: looksOnce,
  },
  {
    name: 'takes at a resync what it finds mounted for the volume',
    seed: 60,
    caughtBy: ['foreign'],
    make: () => takesWhatItFinds,
  },
  {
    name: 'takes the later line of the mount table for what one sees',
    caughtBy: ['stability', 'liveness', 'INV-11'],
    make: () => believesTheLaterLine,
  },
  {
    name: 'removes the papers of a block volume whose stage somebody hides',
    seed: 43,
    caughtBy: ['liveness', 'foreign'],
    make: () => seesNoCoverBesidePapers,
  },
];
