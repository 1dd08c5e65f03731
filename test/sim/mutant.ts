/** A bug planted in the product, and the means to plant one from outside. */
import type { AgentParts } from '../../agent/node/agent.ts';
import type { Host } from '../../mount/host.ts';
import type { SimHost } from './sim-host.ts';
import type { Mutation } from './simulate.ts';

export interface Mutant {
  readonly name: string;
  /** One that catches it, where the first that does is far: it is tried before all others. */
  readonly seed?: number;
  /** Any of these catches it. */
  readonly caughtBy: readonly string[];
  /** A new one for every seed: some remember. */
  readonly make: () => Mutation;
}

/** The host with some methods replaced. */
export function withHost(change: (host: SimHost) => Partial<Host>): Mutation {
  return {
    wrapHost: (host) => {
      const changed: Partial<Host> = change(host);
      return new Proxy<AgentParts['host']>(host, {
        get: (_, key, receiver) => {
          const replaced: unknown = Reflect.get(changed, key);
          if (replaced !== undefined) return replaced;
          const own: unknown = Reflect.get(host, key);
          // The steps of a transition are calls of the changed host, too.
          if (key === 'perform' && typeof own === 'function') return own.bind(receiver);
          return typeof own === 'function' ? own.bind(host) : own;
        },
      });
    },
  };
}
