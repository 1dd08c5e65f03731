/** Planted bugs of devices, growth, volumes for one pod, quarantine, statistics and groups. */
import { ok } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import { type PlanInput, planVolume, type VolumePlan } from '../../reconciler/model/plan.ts';
import { type Mutant, withHost } from './mutant.ts';
import type { Mutation } from './simulate.ts';
import { aboutInlineVolumes, aboutLostHolds } from './stories.ts';

function planning(change: (input: PlanInput) => PlanInput): Mutation {
  return { policy: { planVolume: (input) => planVolume(change(input)) } };
}

const growsAgainAndAgain = planning((input) => {
  const { actual } = input;
  return actual === undefined ? input : { ...input, actual: { ...actual, refusedExpansion: undefined } };
});

/** A pod that may still have the volume is taken for one that has not; only for the question who comes in. */
const givesToTwoPods: Mutation = {
  policy: {
    planVolume: (input) => {
      const plan = planVolume(input);
      const { actual } = input;
      if (actual === undefined) return plan;
      const publications = [...actual.publications].filter(([, { presence }]) => presence.kind === 'present');
      const blind: ActualVolume = { ...actual, publications: new Map(publications) };
      const more = planVolume({ ...input, actual: blind }).operations.filter((one) => one.kind === 'publish');
      return withMore(plan, more);
    },
  },
};

function withMore(plan: VolumePlan, more: VolumePlan['operations']): VolumePlan {
  const known = new Set(plan.operations.map((one) => JSON.stringify(one)));
  return {
    ...plan,
    operations: [...plan.operations, ...more.filter((one) => !known.has(JSON.stringify(one)))],
  };
}

const publishesOverWhatWasEnded: Mutation = {
  ...planning((input) => {
    const { actual } = input;
    if (actual === undefined) return input;
    const places = [...actual.publications].map(([key, { ended: _, ...place }]) => [key, place] as const);
    return { ...input, actual: { ...actual, publications: new Map(places) } };
  }),
  plan: aboutInlineVolumes,
};

/** The caller is answered at once, and the call goes on. */
function forsaking(method: string, reply: object): Mutation {
  return withHost((host) => ({
    call: (call) => {
      const answer = host.call(call);
      return call.method.path.endsWith(`/${method}`)
        ? Promise.resolve({ kind: 'ok', reply: reply as never })
        : answer;
    },
  }));
}

/** What was held once is held for ever, as far as it is told. */
function neverLooksAtHolds(): Mutation {
  const ever = new Set<AbsolutePath>();
  return {
    plan: aboutLostHolds,
    ...withHost((host) => ({
      holdDevice: (path) => {
        ever.add(path);
        return host.holdDevice(path);
      },
      heldPaths: async () => ok([...ever]),
    })),
  };
}

export const NOVEL_MUTANTS: readonly Mutant[] = [
  {
    name: 'grows a volume again though the driver has refused it',
    seed: 346,
    caughtBy: ['A-071'],
    make: () => growsAgainAndAgain,
  },
  {
    name: 'gives a volume for one pod to a second one while the first may have it',
    seed: 159,
    caughtBy: ['RC-18'],
    make: () => givesToTwoPods,
  },
  {
    name: 'sets up volumes that are in quarantine',
    seed: 25,
    caughtBy: ['B-3'],
    make: () => planning((input) => ({ ...input, quarantine: undefined })),
  },
  {
    name: 'sets up volumes that are said to be not attached',
    seed: 214,
    caughtBy: ['B-3'],
    make: () =>
      planning((input) => {
        const { desired } = input;
        return desired === undefined ? input : { ...input, desired: { ...desired, blocked: undefined } };
      }),
  },
  {
    name: 'leaves a quarantine without looking who uses the device',
    seed: 354,
    caughtBy: ['B-3', 'B-4'],
    make: () => withHost(() => ({ findDeviceUsers: async () => ok([]) })),
  },
  {
    name: 'never lets go of a device it holds',
    caughtBy: ['liveness', 'stability'],
    make: () => withHost(() => ({ releaseDevice: async () => ok(undefined) })),
  },
  {
    name: 'does not hold devices',
    seed: 17,
    caughtBy: ['liveness', 'INV-11'],
    make: () => withHost(() => ({ holdDevice: async () => ok(undefined) })),
  },
  {
    name: 'never looks whether the devices that it has held are held still',
    caughtBy: ['liveness', 'stability'],
    make: neverLooksAtHolds,
  },
  {
    name: 'publishes beside a growth that it does not wait for',
    seed: 76,
    caughtBy: ['INV-6'],
    make: () => forsaking('NodeExpandVolume', { capacityBytes: 0n }),
  },
  {
    name: 'asks how a volume is beside other calls',
    seed: 33,
    caughtBy: ['INV-6'],
    make: () => forsaking('NodeGetVolumeHealth', { volumeHealth: undefined }),
  },
  {
    name: "says that a volume is its pod's group's and leaves it as it is",
    caughtBy: ['liveness', 'stability'],
    make: () => withHost(() => ({ changeOwnership: async () => ok({ seen: 1, changed: 0, refused: 0 }) })),
  },
  {
    name: 'publishes an inline volume over what is left of the one that its driver has ended',
    seed: 179,
    caughtBy: ['INV-11'],
    make: () => publishesOverWhatWasEnded,
  },
];
