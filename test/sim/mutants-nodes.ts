/** Planted bugs of drivers that call the node otherwise than before. */
import type { RemoteCall, RemoteReply } from '../../mount/remote-call.ts';
import { planVolume } from '../../reconciler/model/plan.ts';
import { type Mutant, withHost } from './mutant.ts';
import type { Mutation } from './simulate.ts';
import { aboutNodeIds } from './stories.ts';

const givesWhatIsAttachedUnderAnotherName: Mutation = {
  policy: {
    planVolume: (input) => {
      const needs = input.needs && { ...input.needs, node: undefined };
      return planVolume({ ...input, needs });
    },
  },
  plan: aboutNodeIds,
};

/** `answer`: in place of a detach under a name that its driver has not said last; undefined: it is asked for so. */
function detaching(answer: 'by the name of today' | 'not at all'): Mutation {
  const names = new Map<string, string>();
  return {
    plan: aboutNodeIds,
    ...withHost((host) => ({
      call: async <Request, Reply>(call: RemoteCall<Request, Reply>): Promise<RemoteReply<Reply>> => {
        const { request, method, socket } = call;
        const today = names.get(socket.path);
        if (!method.path.endsWith('/ControllerUnpublishVolume') || today === undefined)
          return noted(await host.call(call), call, names);
        const isOther = (request as { readonly nodeId: string }).nodeId !== today;
        if (isOther && answer === 'not at all') return { kind: 'ok', reply: {} as Reply };
        return host.call({ ...call, request: { ...request, nodeId: today } });
      },
    })),
  };
}

function noted<Request, Reply>(
  reply: RemoteReply<Reply>,
  { method, socket }: RemoteCall<Request, Reply>,
  names: Map<string, string>,
): RemoteReply<Reply> {
  if (method.path.endsWith('/NodeGetInfo') && reply.kind === 'ok')
    names.set(socket.path, (reply.reply as { readonly nodeId: string }).nodeId);
  return reply;
}

export const NODE_MUTANTS: readonly Mutant[] = [
  {
    name: 'gives a pod what is attached under another name of the node',
    caughtBy: ['DR-17'],
    make: () => givesWhatIsAttachedUnderAnotherName,
  },
  {
    name: 'detaches by the name that the node has today',
    caughtBy: ['DR-17'],
    make: () => detaching('by the name of today'),
  },
  {
    name: 'forgets what is attached under a name of before',
    caughtBy: ['DR-17', 'liveness', 'stability'],
    make: () => detaching('not at all'),
  },
];
