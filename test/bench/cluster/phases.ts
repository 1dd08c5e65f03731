/** When the API server says what of a pod's volumes: seen by watches from outside. */
import type { AdminChange, AdminClient } from '../../cluster/admin-client.ts';
import { type Attachment, ATTACHMENTS } from '../../k8s/test-attacher.ts';
import { until } from '../../until.ts';
import { nowMs } from '../clock.ts';
import { NOOP } from '../world.ts';
import type { ClusterPod, Moments } from './cluster-node.ts';
import { PODS } from './cluster-storage.ts';

export const WAY_UP = ['reported', 'made', 'attached', 'listed', 'mounted'] as const;
export const WAY_DOWN = ['unmounted', 'unreported', 'detached'] as const;
export type Phase = (typeof WAY_UP)[number] | (typeof WAY_DOWN)[number];

/** Milliseconds of each pod since it was bound, or since its containers had ended. */
export type PhaseTimes = Readonly<Record<Phase, readonly number[]>>;

/** What objects tell, less what the node itself says. */
type Told = 'bound' | 'ended' | Exclude<Phase, 'mounted' | 'unmounted'>;

export interface PhaseWatch {
  /** Settles when the server has all of them. */
  uids(pods: readonly ClusterPod[]): Promise<ReadonlyMap<string, string>>;
  /** Settles when the last volume of all is detached. */
  untilDetached(pods: readonly ClusterPod[]): Promise<void>;
  timesOf(pods: readonly ClusterPod[], mounted: Moments, unmounted: Moments): PhaseTimes;
  end(): void;
}

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status?: {
    readonly containerStatuses?: readonly { readonly state?: { readonly terminated?: object } }[];
  };
}

interface Node {
  readonly metadata: { readonly name: string };
  readonly status: {
    readonly volumesInUse?: readonly string[];
    readonly volumesAttached?: readonly { readonly name: string }[];
  };
}

const MINUTES = { waitMsMax: 600_000, lookEveryMs: 20 };

export async function watchPhases(admin: AdminClient, nodeName: string): Promise<PhaseWatch> {
  const at = new Map<string, number>();
  const uids = new Map<string, string>();
  const inUse = new Set<string>();
  const note = (what: Told, name: string): void => {
    const key = `${what} ${name}`;
    if (!at.has(key)) at.set(key, nowMs());
  };
  const handleOf = (name: string): string => name.replace(`kubernetes.io/csi/${NOOP}^`, '');

  function pod({ object }: AdminChange): void {
    const { metadata, status } = object as unknown as Pod;
    uids.set(metadata.name, metadata.uid);
    note('bound', metadata.name);
    if (status?.containerStatuses?.[0]?.state?.terminated !== undefined) note('ended', metadata.name);
  }

  function attachment({ type, object }: AdminChange): void {
    const { spec, status } = object as unknown as Attachment;
    if (spec.attacher !== NOOP || spec.nodeName !== nodeName) return;
    const volume = spec.source.persistentVolumeName;
    note('made', volume);
    if (status?.attached === true) note('attached', volume);
    if (type === 'DELETED') note('detached', volume);
  }

  function node({ object }: AdminChange): void {
    const { metadata, status } = object as unknown as Node;
    if (metadata.name !== nodeName) return;
    const now = new Set((status.volumesInUse ?? []).map(handleOf));
    for (const one of now) note('reported', one);
    for (const one of inUse) if (!now.has(one)) note('unreported', one);
    inUse.clear();
    for (const one of now) inUse.add(one);
    for (const { name } of status.volumesAttached ?? []) note('listed', handleOf(name));
  }

  const watches = [
    admin.watch(PODS, pod),
    admin.watch(ATTACHMENTS, attachment),
    admin.watch('/api/v1/nodes', node),
  ];
  await Promise.all(watches.map(({ begun }) => begun));

  const last = (what: Told, { volumes }: ClusterPod): number =>
    Math.max(...volumes.map((one) => at.get(`${what} ${one}`) ?? Number.NaN));
  const since = (what: 'bound' | 'ended', { name }: ClusterPod): number =>
    at.get(`${what} ${name}`) ?? Number.NaN;
  const all = (what: 'unreported' | 'detached', pods: readonly ClusterPod[]): boolean =>
    pods.every((one) => !Number.isNaN(last(what, one)));

  return {
    async uids(pods) {
      await until('the pods are there', () => pods.every(({ name }) => uids.has(name)), MINUTES);
      return uids;
    },
    async untilDetached(pods) {
      const isOver = (): boolean => all('detached', pods) && all('unreported', pods);
      await until('all volumes are detached', isOver, MINUTES);
    },
    timesOf(pods, mounted, unmounted) {
      const up = (what: Told) => pods.map((one) => last(what, one) - since('bound', one));
      const down = (what: Told) => pods.map((one) => last(what, one) - since('ended', one));
      const own = (moments: Moments, clock: 'bound' | 'ended') =>
        pods.map((one) => (moments.get(one.name) ?? Number.NaN) - since(clock, one));
      return {
        reported: up('reported'),
        made: up('made'),
        attached: up('attached'),
        listed: up('listed'),
        mounted: own(mounted, 'bound'),
        unmounted: own(unmounted, 'ended'),
        unreported: down('unreported'),
        detached: down('detached'),
      };
    },
    end: () => {
      for (const watch of watches) watch.end();
    },
  };
}
