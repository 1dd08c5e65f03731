/** Planted bugs of a node of a cluster: what is reported, granted, denied and listed is taken for something else. */
import { attachmentPath } from '../../kubernetes/api/resource-path.ts';
import { readOne } from '../../kubernetes/api/write-object.ts';
import type { ApiRequest, ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { attachmentNameOf } from '../../kubernetes/objects/attachment-name.ts';
import { attachmentSight } from '../../kubernetes/objects/attachment-sight.ts';
import type { TokenSource } from '../../agent/source/token-source.ts';
import type { ClusterAttachment } from '../../agent/attachment/granted-attachment.ts';
import { ok, type Result } from '../../mount/failure.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { Attached } from '../../plugins/plugin.ts';
import type { CsiVolumeSpec } from '../../plugins/volume.ts';
import { NODE_NAME } from './manifests.ts';
import type { Mutant } from './mutant.ts';
import type { Mutation } from './simulate.ts';
import {
  aboutClaims,
  aboutCluster,
  aboutClusterContexts,
  aboutClusterGrowth,
  aboutContexts,
  aboutDetaching,
  aboutLostNodes,
  aboutTokens,
} from './stories.ts';
import type { Plan } from './swarm.ts';

type Attach = (spec: CsiVolumeSpec, attach: () => Promise<Result<Attached>>) => Promise<Result<Attached>>;

/** The rung attach is climbed otherwise. */
function withAttach(climb: (transport: ApiTransport) => Attach): Mutation {
  return {
    plan: aboutCluster,
    wrapCluster(cluster, transport) {
      const { attachment } = cluster;
      const changed = climb(transport);
      const attach: typeof attachment.attach = (spec, call) =>
        changed(spec, () => attachment.attach(spec, call));
      return { ...cluster, attachment: replaced(attachment, 'attach', attach) };
    },
  };
}

function replaced(
  attachment: ClusterAttachment,
  name: keyof ClusterAttachment,
  method: unknown,
): ClusterAttachment {
  return new Proxy(attachment, {
    get(_, key) {
      if (key === name) return method;
      const own: unknown = Reflect.get(attachment, key);
      return typeof own === 'function' ? own.bind(attachment) : own;
    },
  });
}

type Begin = ClusterAttachment['begin'];

/** Who attaches is told otherwise what stands. */
function withBegin(begin: (attachment: ClusterAttachment) => Begin, plan = aboutCluster): Mutation {
  return {
    plan,
    wrapCluster: (cluster) => ({
      ...cluster,
      attachment: replaced(cluster.attachment, 'begin', begin(cluster.attachment)),
    }),
  };
}

/** What is staged and no pod has is not worth a word to it. */
const reportsWhatPodsHave = withBegin(
  (attachment) => (actual, drivers) => {
    const hasPlace = ({ publications }: ActualVolume): boolean =>
      [...publications.values()].some(({ presence }) => presence.kind !== 'absent');
    attachment.begin(() => new Map([...actual()].filter(([, volume]) => hasPlace(volume))), drivers);
  },
  aboutDetaching,
);

/** Whatever the server listed, its own records know all. */
const believesItsRecords = withBegin(
  (attachment) => (actual, drivers) => {
    attachment.begin(actual, drivers);
    attachment.diskRead('all');
  },
  aboutLostPapers,
);

/** What a volume was attached by is what it is set up by for ever. */
const keepsTheFirstContext = (plan: (plan: Plan) => Plan): Mutation => ({
  plan,
  wrapCluster(cluster) {
    const { attachment } = cluster;
    const wordOf: typeof attachment.wordOf = (id) => {
      const word = attachment.wordOf(id);
      return word === undefined ? undefined : { ...word, said: undefined };
    };
    return { ...cluster, attachment: replaced(attachment, 'wordOf', wordOf) };
  },
});

/** One token is good for as long as its pod is there. */
const asksForOneToken: Mutation = {
  plan: aboutTokens,
  wrapCluster(cluster) {
    const first = new Map<string, ReturnType<TokenSource['tokenFor']>>();
    const tokens: TokenSource = {
      tokensFor: (pod, requests) => cluster.tokens.tokensFor(pod, requests),
      tokenFor(pod, request) {
        const known = first.get(pod.uid) ?? cluster.tokens.tokenFor(pod, request);
        if (known.kind === 'token') first.set(pod.uid, known);
        return known;
      },
      onChange: (listener) => cluster.tokens.onChange(listener),
    };
    return { ...cluster, tokens };
  },
};

function aboutLostPapers(plan: Plan): Plan {
  const about = aboutCluster(plan);
  return {
    ...about,
    safetyMs: Math.max(about.safetyMs, 60_000),
    events: { ...about.events, agentCrashes: 2, recordDamaged: 3 },
  };
}

/** As the object says at this moment, whatever the Node says. */
async function grantNow(transport: ApiTransport, spec: CsiVolumeSpec): Promise<Attached | undefined> {
  const read = await readOne(transport, attachmentPath(attachmentNameOf(spec, NODE_NAME)));
  const sight = read.ok ? attachmentSight(read.value.uid, read.value.value) : undefined;
  if (sight?.attached !== true || sight.deleted) return undefined;
  return { publishContext: sight.publishContext, attachmentUid: sight.uid };
}

/** It reports as it should, and goes on at once. */
const doesNotWaitForTheReport = withAttach((transport) => async (spec, attach) => {
  const reported = attach();
  const granted = await grantNow(transport, spec);
  return granted === undefined ? reported : ok(granted);
});

/** It is in use, acknowledged; but that it is attached was read before. */
const believesAnEarlierGrant: Mutation = {
  ...withAttach((transport) => async (spec, attach) => {
    const before = await grantNow(transport, spec);
    const after = await attach();
    const isWait = !after.ok && after.failure.code === 'not-attached';
    return isWait && before !== undefined ? ok(before) : after;
  }),
  plan: aboutDetaching,
};

/** It is in use, acknowledged, and attached now: but it was there before, and somebody may be about to end it. */
const believesWhatWasThere: Mutation = {
  ...withAttach((transport) => async (spec, attach) => {
    const after = await attach();
    const isWait = !after.ok && after.failure.code === 'not-attached';
    const now = isWait ? await grantNow(transport, spec) : undefined;
    return now === undefined ? after : ok(now);
  }),
  plan: aboutDetaching,
};

/** A server that is in trouble all the time, and a story long enough to be taken in by it. */
function aboutTrouble(plan: Plan): Plan {
  const about = aboutCluster(plan);
  return {
    ...about,
    safetyMs: Math.max(about.safetyMs, 60_000),
    cluster: { ...about.cluster, troubleEveryMs: 4_000, attachmentTroubleEveryMs: 0 },
  };
}

function withTransport(
  change: (transport: ApiTransport, clock: { nowMs(): number }) => ApiTransport['request'],
  plan = aboutTrouble,
): Mutation {
  return {
    plan,
    wrapTransport: (transport, host) => ({
      server: transport.server,
      request: change(transport, { nowMs: () => host.nowMs() }),
      watch: (request, listener) => transport.watch(request, listener),
      close: () => transport.close(),
    }),
  };
}

const takesDeniedForAbsent = withTransport((transport) => async (request) => {
  const answered = await transport.request(request);
  if (answered.ok || answered.failure.code !== 'denied' || request.method !== 'GET') return answered;
  return { ok: false, failure: { ...answered.failure, code: 'absent' } };
});

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value: unknown;
}

/** What a write of the list of volumes in use does; nothing for any other request. */
function operationsOf({ path, body }: ApiRequest): readonly Operation[] {
  return /\/nodes\/[^/]+\/status$/.test(path) && Array.isArray(body) ? body : [];
}

/** What it has told one Node it has told all that bear its name. */
const knowsOneNode = withTransport((transport) => {
  let first: unknown;
  return async (request) => {
    const operations = operationsOf(request);
    if (operations.length === 0) return transport.request(request);
    const written = (op: string, field: string): unknown =>
      operations.find((one) => one.op === op && one.path === field)?.value;
    const uid = written('test', '/metadata/uid');
    const status = { volumesInUse: written('add', '/status/volumesInUse') };
    first ??= uid;
    if (uid === first) return transport.request(request);
    const path = request.path.replace(/\/status$/, '');
    const read = await transport.request({ ...request, method: 'GET', path, body: undefined });
    if (!read.ok) return read;
    const node = read.value as { readonly metadata: object; readonly status: object };
    const annotations = { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' };
    const told = { ...node, metadata: { ...node.metadata, annotations } };
    return { ok: true, value: { ...told, status: { ...node.status, ...status } } };
  };
}, aboutLostNodes);

const REMEMBERED_MS = 30_000;

/** The second look at a list without pods is the first one again. */
const believesAnEmptyList = withTransport((transport, { nowMs }) => {
  let untilMs = Number.NEGATIVE_INFINITY;
  let empty: Awaited<ReturnType<ApiTransport['request']>> | undefined;
  return async (request) => {
    if (!request.path.startsWith('/api/v1/pods?')) return transport.request(request);
    if (empty !== undefined && nowMs() < untilMs) return empty;
    const answered = await transport.request(request);
    const { items = [] } = (answered.ok ? answered.value : {}) as { readonly items?: readonly unknown[] };
    empty = answered.ok && items.length === 0 ? answered : undefined;
    untilMs = nowMs() + REMEMBERED_MS;
    return answered;
  };
});

/** Lists are read from a cache, which may be behind what another life has seen. */
const readsListsFromACache = withTransport(
  (transport) => (request) =>
    transport.request(
      request.path.includes('limit=') ? { ...request, path: `${request.path}&resourceVersion=0` } : request,
    ),
  aboutCluster,
);

/** As the kubelet: a claim that is being deleted and is protected is as good as any other. */
/** Nothing is written, and the answer passes for that to a write. */
const believesTheProtection = withTransport(
  (transport) => async (request) => {
    if (request.method !== 'PATCH' || !request.path.includes('/persistentvolumeclaims/'))
      return transport.request(request);
    const path = request.path.replace(/\/status$/, '');
    const answered = await transport.request({ ...request, method: 'GET', path, body: undefined });
    if (!answered.ok) return answered;
    const { metadata, ...claim } = answered.value as {
      readonly metadata: { readonly resourceVersion: string };
    };
    const resourceVersion = String(BigInt(metadata.resourceVersion) + 1n);
    return { ok: true, value: { ...claim, metadata: { ...metadata, resourceVersion } } };
  },
  aboutClaims,
);

type Status = Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;

/** What is written of how large the volume of a claim is: another status, or none. */
const reports = (change: (status: Status, claim: Status) => Status | undefined): Mutation =>
  withTransport(
    (transport) => async (request) => {
      const { method, path, body } = request;
      const { status, ...rest } = (body ?? {}) as { readonly status?: Status };
      const isReport = method === 'PATCH' && path.includes('/persistentvolumeclaims/');
      if (!isReport || status?.['allocatedResourceStatuses'] === undefined) return transport.request(request);
      const read = {
        ...request,
        method: 'GET',
        path: path.replace(/\/status$/, ''),
        body: undefined,
      } as const;
      const answered = await transport.request(read);
      if (!answered.ok) return answered;
      const claim = (answered.value as { readonly status?: Status }).status ?? {};
      const changed = change(status, claim);
      return changed === undefined
        ? answered
        : transport.request({ ...request, body: { ...rest, status: changed } });
    },
    aboutClusterGrowth,
  );

const IS_OVER = { allocatedResourceStatuses: { storage: null } };

const reportsTooSoon = reports((status, { allocatedResources }) =>
  status['capacity'] === undefined ? { ...IS_OVER, capacity: allocatedResources } : status,
);

/** Whoever has written meanwhile, an earlier life too, and however late it comes. */
const overwritesItsList = withTransport(
  (transport) => (request) => {
    const operations = operationsOf(request);
    if (operations.length === 0) return transport.request(request);
    const isKept = ({ op, path }: Operation): boolean => op !== 'test' || path === '/metadata/uid';
    return transport.request({ ...request, body: operations.filter(isKept) });
  },
  aboutCluster,
);

const reportsNoSize = reports((status) => (status['capacity'] === undefined ? status : undefined));

export const CLUSTER_MUTANTS: readonly Mutant[] = [
  {
    name: 'stages before its report of use is acknowledged',
    caughtBy: ['INV-4', 'INV-5'],
    make: () => doesNotWaitForTheReport,
  },
  {
    name: 'believes a grant from before its report',
    caughtBy: ['INV-4', 'INV-5'],
    make: () => believesAnEarlierGrant,
  },
  {
    name: 'takes every attachment for one that was made since its report (D-131)',
    caughtBy: ['INV-4', 'INV-5'],
    make: () => believesWhatWasThere,
  },
  {
    name: 'reports what pods have, and not what is staged for them',
    caughtBy: ['INV-5'],
    make: () => reportsWhatPodsHave,
  },
  {
    name: 'believes its own records about what is in use',
    caughtBy: ['INV-5'],
    make: () => believesItsRecords,
  },
  {
    name: 'reports to the Node that it knew first',
    caughtBy: ['INV-4', 'INV-5', 'liveness'],
    make: () => knowsOneNode,
  },
  {
    name: 'sets volumes up by what their attachment said first',
    seed: 10,
    caughtBy: ['D-116'],
    make: () => keepsTheFirstContext(aboutContexts),
  },
  {
    name: 'sets volumes up by what their attachment said first, and all else goes wrong as well',
    seed: 61,
    caughtBy: ['D-116'],
    make: () => keepsTheFirstContext(aboutClusterContexts),
  },
  {
    name: 'shows the first token of a pod for ever',
    seed: 25,
    caughtBy: ['liveness', 'stability'],
    make: () => asksForOneToken,
  },
  {
    name: 'writes its list of what is in use over what was written since it was read',
    seed: 707,
    caughtBy: ['INV-4', 'INV-5'],
    make: () => overwritesItsList,
  },
  {
    name: 'takes 403 for absent',
    seed: 117,
    caughtBy: ['lost', 'INV-3'],
    make: () => takesDeniedForAbsent,
  },
  {
    name: 'obeys an empty list after 410',
    seed: 153,
    caughtBy: ['INV-3'],
    make: () => believesAnEmptyList,
  },
  {
    name: 'reads lists from a cache that lags',
    seed: 76,
    caughtBy: ['INV-3', 'lost'],
    make: () => readsListsFromACache,
  },
  {
    name: 'believes that a claim stays which is being deleted',
    caughtBy: ['S3-5'],
    make: () => believesTheProtection,
  },
  {
    name: 'tells a claim that its volume has grown while it grows',
    seed: 25,
    caughtBy: ['KEP-1790'],
    make: () => reportsTooSoon,
  },
  {
    name: 'does not tell a claim that its volume has grown',
    caughtBy: ['liveness'],
    make: () => reportsNoSize,
  },
];
