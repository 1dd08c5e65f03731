/** Planted bugs about volumes of an NFS server. */
import { type Mutant, withHost } from './mutant.ts';
import type { Mutation } from './simulate.ts';
import { aboutNfs } from './stories.ts';

/** Looks into a directory to learn whether something is mounted there. */
const asksTheServer: Mutation = {
  ...withHost((host) => ({
    mountIdOf: async (path) => {
      await host.listDirectory(path, 1);
      return host.mountIdOf(path);
    },
  })),
  plan: aboutNfs,
};

const mountsForWriting: Mutation = {
  ...withHost((host) => ({
    mount: (request) => {
      if (request.fsType !== 'nfs') return host.mount(request);
      return host.mount({ ...request, options: request.options.filter((one) => one !== 'ro') });
    },
  })),
  plan: aboutNfs,
};

export const NFS_MUTANTS: readonly Mutant[] = [
  {
    name: 'asks an NFS server whether it is mounted',
    caughtBy: ['hung'],
    make: () => asksTheServer,
  },
  {
    name: 'mounts for writing what is wished read-only of an NFS server',
    caughtBy: ['liveness'],
    make: () => mountsForWriting,
  },
];
