/** Planted bugs of what is told: reasons that are not so, and looks for a reason that keep the answer waiting. */
import { ok } from '../../mount/failure.ts';
import { tellInFlight } from '../../reconciler/run/in-flight-text.ts';
import type { VolumeInFlight } from '../../reconciler/run/volume-operation.ts';
import { type Mutant, withHost } from './mutant.ts';
import type { Mutation } from './simulate.ts';
import { aboutHung, aboutQuestions } from './stories.ts';

/** What was the first step stays the step. */
function neverUpdatesTheStep(): Mutation {
  const first = new WeakMap<VolumeInFlight, VolumeInFlight['step']>();
  return {
    policy: {
      tellInFlight: (one, nowMs, deadlineMs) => {
        if (one.phase === 'running' && !first.has(one)) first.set(one, one.step);
        return tellInFlight({ ...one, step: first.get(one) ?? one.step }, nowMs, deadlineMs);
      },
    },
  };
}

const tellsQueuedAsCalled: Mutation = {
  policy: {
    tellInFlight: (one, nowMs, deadlineMs) => {
      const { step, operation } = one;
      if (step.kind !== 'queued') return tellInFlight(one, nowMs, deadlineMs);
      const called = { ...step, kind: 'called', rpc: operation.kind, deadlineMs } as const;
      return tellInFlight({ ...one, phase: 'running', step: called }, nowMs, deadlineMs);
    },
  },
};

/** As it was: who holds a mount was asked before the answer of the driver was heard. */
const looksForHoldersFirst: Mutation = withHost((host) => ({
  call: async (call) => {
    const reply = await host.call(call);
    const { targetPath, stagingTargetPath } = call.request as {
      readonly targetPath?: never;
      readonly stagingTargetPath?: never;
    };
    const path = targetPath ?? stagingTargetPath;
    const isTeardown = /\/NodeUn(publish|stage)Volume$/.test(call.method.path);
    if (isTeardown && reply.kind !== 'ok' && path !== undefined) await host.findHolders(path);
    return reply;
  },
}));

/** As it was: once its time is up a question counts as answered, and in its next turn the volume is asked again. */
const takesGivenUpForAnswered: Mutation = {
  ...withHost((host) => ({
    call: async (call) => {
      const reply = await host.call(call);
      const isLate = reply.kind === 'broken' && reply.because === 'deadline';
      const isQuestion = /\/NodeGetVolume(Stats|Health)$/.test(call.method.path);
      return isLate && isQuestion ? { kind: 'status', status: 13, message: 'given up' } : reply;
    },
  })),
  plan: aboutQuestions,
};

/** As it was: on the way to the reason the mount was looked through, and the answer waited for that. */
const looksThroughTheMountFirst: Mutation = {
  ...withHost((host) => ({
    call: async (call) => {
      const reply = await host.call(call);
      const { targetPath } = call.request as { readonly targetPath?: never };
      const isRefused = reply.kind === 'status' && call.method.path.endsWith('/NodeUnpublishVolume');
      if (isRefused && targetPath !== undefined) await host.lookUpMount(targetPath);
      return reply;
    },
  })),
  plan: aboutHung,
};

const QUESTIONS_MAX = 4;

/** As it was: a driver has so many questions at a time, and who hangs counts. */
function asksThroughOneLane(): Mutation {
  const asked = new Set<string>();
  const mutation = withHost((host) => ({
    call: async (call) => {
      const { volumeId } = call.request as { readonly volumeId?: string };
      if (!call.method.path.endsWith('/NodeGetVolumeStats') || volumeId === undefined) return host.call(call);
      if (asked.size >= QUESTIONS_MAX)
        return { kind: 'status', status: 8, message: 'too many questions are open' };
      asked.add(volumeId);
      const reply = await host.call(call);
      const isOver = reply.kind !== 'broken' || reply.because !== 'deadline';
      if (isOver) asked.delete(volumeId);
      return reply;
    },
  }));
  return { ...mutation, plan: aboutHung };
}

/** As a republish was, and one that waited behind a call that failed: nobody asked whether it answers. */
const looksWithoutAsking: Mutation = {
  ...withHost((host) => ({
    probeFileSystem: async (path) => {
      const seen = await host.lookUpMount(path);
      if (!seen.ok) return seen;
      const { mounted } = seen.value;
      return ok(
        mounted ? { kind: 'alive', readOnly: false, device: seen.value.device } : { kind: 'unmounted' },
      );
    },
  })),
  plan: aboutHung,
};

export const REASON_MUTANTS: readonly Mutant[] = [
  { name: 'tells the first step of an operation for ever', caughtBy: ['reason'], make: neverUpdatesTheStep },
  {
    name: 'tells a call that waits for its turn as made',
    caughtBy: ['reason'],
    make: () => tellsQueuedAsCalled,
  },
  {
    name: 'looks for who holds a mount before it hears the driver',
    seed: 20,
    caughtBy: ['reason'],
    make: () => looksForHoldersFirst,
  },
  {
    name: 'asks again in its turn about a volume whose question was given up',
    caughtBy: ['RE-03'],
    make: () => takesGivenUpForAnswered,
  },
  {
    name: 'looks through a mount before it acts on a refusal',
    caughtBy: ['hung'],
    make: () => looksThroughTheMountFirst,
  },
  {
    name: 'counts questions that hang against the healthy volumes',
    caughtBy: ['unasked'],
    make: asksThroughOneLane,
  },
  {
    name: 'publishes from what hangs without asking first',
    caughtBy: ['hung'],
    make: () => looksWithoutAsking,
  },
];
