/** Planted bugs of what guards the node against manifests that are gone by mistake. */
import type { DirectoryIdentity } from '../../mount/host.ts';
import { planVolume } from '../../reconciler/model/plan.ts';
import type { AbsencePlan } from './absence.ts';
import { type Mutant, withHost } from './mutant.ts';
import type { Mutation } from './simulate.ts';
import { aboutFilledDirectories, aboutRuntimes } from './stories.ts';
import type { Plan } from './swarm.ts';

const OFTEN: AbsencePlan = { holdMs: 30_000, everyMs: 5_000, whileDown: 0.7, accepted: 0 };

function oftenAbsent(plan: Plan): Plan {
  return { ...plan, absence: OFTEN };
}

const forgetsAcrossRestarts: Mutation = {
  plan: oftenAbsent,
  policy: { planVolume: (input) => planVolume({ ...input, gate: { ...input.gate, heldPods: new Map() } }) },
};

/** Whatever is in the place of the manifests is taken for what was there first. */
function takesAnyDirectory(): Mutation {
  let first: DirectoryIdentity | undefined;
  const believing = withHost((host) => ({
    identifyDirectory: async (path) => {
      const identity = await host.identifyDirectory(path);
      if (identity.ok) first ??= identity.value;
      return identity.ok && first !== undefined ? { ok: true, value: first } : identity;
    },
    readDirectoryFiles: (path, { identity: _, ...reading }) => host.readDirectoryFiles(path, reading),
    readMountTable: async (about) => {
      const table = await host.readMountTable(about);
      if (!table.ok || first === undefined) return table;
      const { mountId } = first;
      const [root] = table.value.entries;
      if (root === undefined || table.value.entries.some((one) => one.mountId === mountId)) return table;
      return { ok: true, value: { ...table.value, entries: [...table.value.entries, { ...root, mountId }] } };
    },
  }));
  return { ...believing, plan: oftenAbsent };
}

const deletesEmptyDirsFirst: Mutation = {
  policy: {
    planVolume: (input) => {
      if (input.actual?.spec.kind !== 'empty-dir') return planVolume(input);
      return planVolume({ ...input, gate: { ...input.gate, contested: new Map() } });
    },
  },
};

/** Takes down what a container has. */
const looksForNobody: Mutation = {
  ...withHost(() => ({ findPlaceHolders: async (places) => ({ ok: true, value: places.map(() => []) }) })),
  plan: aboutRuntimes,
};

/** Only the directory itself. */
const countsNothingBelow: Mutation = {
  ...withHost((host) => ({
    measureUsage: async (request) => {
      const measured = await host.measureUsage(request);
      if (!measured.ok || request.scope === 'file-system') return measured;
      return { ok: true, value: { ...measured.value, bytes: { ...measured.value.bytes, used: 4_096n } } };
    },
  })),
  plan: aboutFilledDirectories,
};

export const GUARD_MUTANTS: readonly Mutant[] = [
  {
    name: 'counts nothing of what a pod has put into its emptyDir',
    caughtBy: ['liveness'],
    make: () => countsNothingBelow,
  },
  {
    name: 'forgets across a restart whose manifests it has seen',
    caughtBy: ['RS-02', 'INV-3'],
    make: () => forgetsAcrossRestarts,
  },
  {
    name: 'takes any directory in the place of the manifests for theirs',
    caughtBy: ['AP-12', 'INV-3', 'RS-02'],
    make: takesAnyDirectory,
  },
  {
    name: 'deletes an emptyDir before the rest of its pod is down',
    caughtBy: ['AP-12'],
    make: () => deletesEmptyDirsFirst,
  },
  {
    name: 'looks for nobody who has what it takes down',
    caughtBy: ['held'],
    make: () => looksForNobody,
  },
];
