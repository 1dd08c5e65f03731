/** The cluster that this machine is a node of, if it is one: its source of objects, and its tokens. */
import { ok, type Result } from '../../mount/failure.ts';
import type { Cancel, Host } from '../../mount/host.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { createHttp2Transport } from '../../kubernetes/api/wire/http2-transport.ts';
import type { Log } from '../../mount/process/log.ts';
import type { Config } from '../config/config.ts';
import { BUILD } from '../config/version.ts';
import { createClusterSource, originOf } from '../source/cluster/cluster-source.ts';
import { createClaimDesk } from '../claim/claim-desk.ts';
import { volumesHere } from '../claim/volumes-here.ts';
import { createEventReporter } from '../event/event-reporter.ts';
import { type ClusterAttachment, createClusterAttachment } from '../attachment/granted-attachment.ts';
import type { AgentView } from '../node/agent-view.ts';
import { createNodeObject } from '../source/cluster/node-object.ts';
import { type LoadParse, readKubeconfigFile } from '../source/cluster/read-kubeconfig-file.ts';
import type { ObjectsSource } from '../source/objects-source.ts';
import { createApiTally } from '../timing/api-tally.ts';
import type { TokenSource } from '../source/token-source.ts';
import { createClusterTokenSource } from '../token/cluster-token-source.ts';
import { tellingUnrenewed } from '../token/unrenewed.ts';

/** The server names a writer of an object by the first word of its user agent. */
const WRITER = 'mooring';

export interface Cluster {
  readonly source: ObjectsSource;
  readonly tokens: TokenSource;
  readonly attachment: ClusterAttachment;
  /** There is something to look at from now on: what it says of it is written. */
  begin(watch: ClusterWatch): void;
  /** What was asked of its API server, in the text format of Prometheus. */
  metrics(): string;
  /** Ends all connections. */
  stop(): void;
}

/** What stands, what is in the way, and when that changes. */
export interface ClusterWatch {
  view(): AgentView;
  onChange(listener: () => void): Cancel;
}

export interface ClusterSurroundings {
  readonly loadParse: LoadParse;
  readonly log: Log;
  /** What goes between the node and the API server. */
  readonly throughTransport?: ((transport: ApiTransport) => ApiTransport) | undefined;
}

/** Undefined without a kubeconfig. The kubeconfig is read once, the files that it names again and again. */
export async function connectCluster(
  host: Pick<Host, 'inspect' | 'readFile' | 'nowMs' | 'wallMs' | 'timer' | 'random'>,
  { kubeconfig, nodeName }: Pick<Config, 'kubeconfig' | 'nodeName'>,
  { loadParse, log, throughTransport = (transport) => transport }: ClusterSurroundings,
): Promise<Result<Cluster | undefined>> {
  if (kubeconfig === undefined) return ok(undefined);
  const onWarning = (warning: string): void => log.warn('credentials', { warning });
  const access = await readKubeconfigFile(host, kubeconfig, loadParse, onWarning);
  if (!access.ok) return access;
  const transport = createHttp2Transport({
    access: access.value,
    clock: host,
    userAgent: [WRITER, BUILD.version].join('/'),
    onWarning,
  });
  return ok(joinCluster({ host, transport: throughTransport(transport), nodeName, log }));
}

export interface ClusterParts {
  readonly host: Pick<Host, 'nowMs' | 'wallMs' | 'timer' | 'random'>;
  readonly transport: ApiTransport;
  readonly nodeName: string;
  readonly log: Log;
}

/** All that a node has of its cluster, over one way to its API server. */
export function joinCluster({ host, transport: direct, nodeName, log }: ClusterParts): Cluster {
  const tally = createApiTally(host);
  const transport = tally.counted(direct);
  const tokens = createClusterTokenSource({ host, transport });
  const shared = { transport, clock: host, random: () => host.random(), nodeName };
  const node = createNodeObject(shared);
  const attachment = createClusterAttachment({ ...shared, node, writer: WRITER, log });
  const claims = createClaimDesk({ transport, clock: host, nodeName, log });
  const followed = createClusterSource({ host, transport, nodeName, node, claims });
  const source = tellingUnrenewed(followed, () => tokens.unrenewed());
  const origin = originOf(transport, nodeName);
  const events = createEventReporter({ transport, clock: host, nodeName, origin, component: WRITER, log });
  return {
    source,
    tokens,
    attachment,
    begin(watch) {
      events.begin(watch);
      claims.begin(volumesHere(watch));
    },
    metrics: () => tally.text(),
    stop() {
      events.stop();
      claims.stop();
      tokens.stop();
      attachment.stop();
      transport.close();
    },
  };
}
