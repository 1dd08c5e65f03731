/** Planted bugs: each breaks one promise of the product from outside, and the simulator has to notice. */
import { ok } from '../../mount/failure.ts';
import type { MountLookup } from '../../mount/host.ts';
import { learn } from '../../reconciler/model/belief-change.ts';
import { type PlanInput, planVolume, type VolumePlan } from '../../reconciler/model/plan.ts';
import { type Mutant, withHost } from './mutant.ts';
import { CLUSTER_MUTANTS } from './mutants-cluster.ts';
import { DISK_MUTANTS } from './mutants-disk.ts';
import { LATE_MUTANTS } from './mutants-late.ts';
import { MOUNT_MUTANTS } from './mutants-mounts.ts';
import { NOVEL_MUTANTS } from './mutants-csi.ts';
import { NODE_MUTANTS } from './mutants-nodes.ts';
import { WALK_MUTANTS } from './mutants-walk.ts';
import { REASON_MUTANTS } from './mutants-reasons.ts';
import { SUBPATH_MUTANTS } from './mutants-subpaths.ts';
import { ISCSI_MUTANTS } from './mutants-iscsi.ts';
import { NFS_MUTANTS } from './mutants-nfs.ts';
import { GUARD_MUTANTS } from './mutants-guard.ts';
import type { Mutation } from './simulate.ts';
import { ROOT } from './sim-paths.ts';

const ignoresUnknownEffects: Mutation = {
  policy: {
    learn: (now, before, operation, outcome) => {
      if (outcome.kind === 'done') return learn(now, before, operation, outcome);
      return learn(now, before, operation, {
        kind: 'failed',
        failure: { ...outcome.failure, effect: 'none' },
      });
    },
  },
};

const opensTheGateEarly: Mutation = {
  policy: { planVolume: (input) => planVolume({ ...input, gate: { ...input.gate, complete: true } }) },
};

const takesUnknownForUnwanted: Mutation = {
  policy: {
    planVolume: (input) =>
      planVolume({ ...input, gate: { ...input.gate, frozenPods: new Set(), unknownOrigins: new Set() } }),
  },
};

/** Once planned, a teardown is done, whatever was wished in the meantime. */
function neverChangesItsMind(): Mutation {
  const decided = new Map<string, VolumePlan['operations'][number]>();
  const keyOf = (operation: VolumePlan['operations'][number]): string => JSON.stringify(operation);
  const remembering = (input: PlanInput): VolumePlan => {
    const plan = planVolume(input);
    for (const operation of plan.operations)
      if (operation.kind === 'unpublish') decided.set(keyOf(operation), operation);
    for (const [key, operation] of decided) {
      const gone = !('publication' in operation) || !input.actual?.publications.has(operation.publication);
      if (operation.volume === input.volume && gone) decided.delete(key);
    }
    const planned = new Set(plan.operations.map(keyOf));
    const kept = [...decided.values()].filter(
      (one) => one.volume === input.volume && !planned.has(keyOf(one)),
    );
    return { ...plan, operations: [...kept, ...plan.operations] };
  };
  return { policy: { planVolume: remembering } };
}

const unstagesUnderUnsurePublications: Mutation = {
  policy: {
    planVolume: (input) => {
      const { actual, desired, gate } = input;
      const publications = [...(actual?.publications.values() ?? [])];
      // What is being unpublished right now is unsure too; taking that for doubt
      // would contradict the plan at each step.
      const doubtful =
        publications.length > 0 &&
        publications.every(({ presence }) => presence.kind === 'unsure' && presence.because !== 'begun');
      if (
        !doubtful ||
        actual === undefined ||
        desired !== undefined ||
        !gate.complete ||
        input.needs === undefined
      ) {
        return planVolume(input);
      }
      if (actual.staged.kind === 'absent') return planVolume(input);
      return { operations: [{ kind: 'unstage', volume: input.volume }], waits: [] };
    },
  },
};

const trustsTheDriver: Mutation = withHost((host) => {
  const promised = new Set<string>();
  return {
    call: async (call) => {
      const reply = await host.call(call);
      const target = (call.request as { readonly targetPath?: string }).targetPath;
      if (reply.kind === 'ok' && target !== undefined && call.method.path.endsWith('/NodePublishVolume'))
        promised.add(target);
      return reply;
    },
    lookUpMount: async (path) => {
      const seen = await host.lookUpMount(path);
      const believed: MountLookup = { mounted: true, mountId: 1, device: '0:1' };
      return promised.delete(path) && seen.ok && !seen.value.mounted ? ok(believed) : seen;
    },
  };
});

/** Says a record is written while it is still being written. */
const doesNotWaitForRecords: Mutation = withHost((host) => ({
  writeFile: async (path, content, options) => {
    if (!path.startsWith(`${ROOT}/mooring/records/`)) return host.writeFile(path, content, options);
    void host.writeFile(path, content, options);
    return ok(undefined);
  },
}));

const mountsTwice: Mutation = withHost((host) => ({
  mount: async (request) => {
    await host.mount(request);
    return host.mount(request);
  },
}));

const LADDER_MUTANTS: readonly Mutant[] = [
  {
    name: 'takes a failure of unknown effect for one that did nothing',
    seed: 37,
    caughtBy: ['INV-1', 'INV-2', 'order', 'liveness', 'stability'],
    make: () => ignoresUnknownEffects,
  },
  {
    name: 'takes down before every source is listed',
    caughtBy: ['INV-15', 'INV-3'],
    make: () => opensTheGateEarly,
  },
  { name: 'takes unknown for unwanted', seed: 63, caughtBy: ['INV-3'], make: () => takesUnknownForUnwanted },
  {
    name: 'does not ask again when its turn comes',
    seed: 103,
    caughtBy: ['INV-3'],
    make: neverChangesItsMind,
  },
  {
    name: 'unstages while a publication is unsure',
    caughtBy: ['INV-1'],
    make: () => unstagesUnderUnsurePublications,
  },
  {
    name: "trusts a driver's OK",
    caughtBy: ['INV-11', 'liveness', 'stability'],
    make: () => trustsTheDriver,
  },
  {
    name: 'does not wait for its record',
    seed: 400,
    caughtBy: ['liveness', 'stability', 'INV-1', 'INV-2', 'order'],
    make: () => doesNotWaitForRecords,
  },
  { name: 'mounts twice', caughtBy: ['INV-12'], make: () => mountsTwice },
];

export const MUTANTS: readonly Mutant[] = [
  ...LADDER_MUTANTS,
  ...NOVEL_MUTANTS,
  ...DISK_MUTANTS,
  ...LATE_MUTANTS,
  ...WALK_MUTANTS,
  ...REASON_MUTANTS,
  ...GUARD_MUTANTS,
  ...MOUNT_MUTANTS,
  ...SUBPATH_MUTANTS,
  ...NFS_MUTANTS,
  ...ISCSI_MUTANTS,
  ...NODE_MUTANTS,
  ...CLUSTER_MUTANTS,
];
