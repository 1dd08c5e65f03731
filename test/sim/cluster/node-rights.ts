/** What a node identity may do, by the Node authorizer, and with the one more ClusterRole of docs/KUBERNETES.md. */
import { NODE_NAME } from '../manifests.ts';
import type { ApiTarget } from './api-path.ts';
import type { Verb } from './api-server.ts';
import { ATTACHMENTS, type ClusterObjectsView } from './cluster-objects.ts';
import { at } from './json-object.ts';
import type { ObjectStore } from './object-store.ts';

export interface RightQuestion {
  readonly verb: Verb;
  readonly target: ApiTarget;
  readonly view: ClusterObjectsView;
  readonly store: ObjectStore;
  readonly reach: 'get' | 'watch';
}

const READS: ReadonlySet<Verb> = new Set(['get', 'list', 'watch']);
/** What a node may see because a pod of it leads there. */
export const BY_GRAPH: ReadonlySet<string> = new Set([
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'persistentvolumes',
  'volumeattachments',
]);
export const NO_PATH = 'no relationship found between node and this object';

/** Why not; undefined: it may. One that is not there is as forbidden as one that nobody here leads to. */
export function forbidden({ verb, target, view, store, reach }: RightQuestion): string | undefined {
  const { resource, name, query } = target;
  const reads = READS.has(verb);
  const selected = (query.get('fieldSelector') ?? '').replace('metadata.name=', '');
  const unled = (): string | undefined => (view.leadsTo(resource, name ?? '') ? undefined : NO_PATH);
  switch (resource) {
    case 'pods':
      return reads && selected === `spec.nodeName=${NODE_NAME}` ? undefined : 'pods of this node alone';
    case 'nodes':
      return (name ?? selected) === NODE_NAME ? undefined : 'its own Node alone';
    case 'csinodes':
      return name === NODE_NAME || verb === 'create' ? undefined : 'its own CSINode alone';
    case 'csidrivers':
      return reads ? undefined : 'reading alone';
    case 'events':
      return verb === 'create' || verb === 'patch' ? undefined : 'writing alone';
    case 'serviceaccounts':
      return verb === 'create' && target.part === 'token' ? undefined : 'tokens alone';
    case 'secrets':
    case 'configmaps':
      return reads && view.leadsTo(resource, name ?? selected) ? undefined : NO_PATH;
    case 'persistentvolumeclaims':
      if (verb === 'patch') return target.part === 'status' ? unled() : 'its status alone';
      if (!reads) return 'reading and its status alone';
      if (reach === 'watch') return undefined;
      return verb === 'get' && name !== undefined ? unled() : 'single ones alone';
    default:
      if (!reads) return 'reading alone';
      if (reach === 'watch') return undefined;
      if (verb !== 'get' || name === undefined) return 'single ones alone';
      if (resource !== 'volumeattachments') return unled();
      return at(store.get(ATTACHMENTS, name), 'spec')['nodeName'] === NODE_NAME ? undefined : NO_PATH;
  }
}
