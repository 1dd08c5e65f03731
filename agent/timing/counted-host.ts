/** A host some of whose calls go through a counter. */
import type { Host } from '../../mount/host.ts';

export type CountedHost = Pick<Host, 'call' | 'changeOwnership'>;

/** All but the counted calls are the host's own. */
export function countedHost(host: Host, counted: CountedHost): Host {
  const own: Partial<Record<PropertyKey, unknown>> = { ...counted };
  return new Proxy(host, {
    get(target, key) {
      const value: unknown = own[key] ?? Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
