/** An agent with all its neighbours: the manifests of this machine, its cluster, who issues tokens. */
import { ok, type Result } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';
import type { Log } from '../../mount/process/log.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import type { Config } from '../config/config.ts';
import { type Agent, createAgent } from '../node/agent.ts';
import type { LoadParse } from '../source/cluster/read-kubeconfig-file.ts';
import { directoryWarnings } from '../source/manifests/manifest-owner.ts';
import type { ManifestParser } from '../source/manifests/parse/manifest-parser.ts';
import { createTrustedManifests } from '../source/manifests/trusted-manifests.ts';
import { type IssuedHere, issuedHere } from '../token/issued-here.ts';
import { type Cluster, connectCluster } from './cluster.ts';
import { machineCapacity } from './machine-capacity.ts';

export interface ComposedLaunch {
  readonly config: Config;
  readonly log: Log;
  /** A kubeconfig is read by the parser of manifests, which runs in a process of its own for these. */
  readonly loadParse: LoadParse;
}

export interface Surroundings {
  readonly host: Host;
  readonly parser: ManifestParser;
  /** The root is there, and can be asked how large it is. */
  readonly hasRoot: boolean;
  /** What goes between the agent and its API server. */
  readonly throughTransport?: (transport: ApiTransport) => ApiTransport;
  readonly plansOnly?: boolean;
}

export interface ComposedAgent {
  readonly agent: Agent;
  readonly issued: IssuedHere & { readonly cluster: Cluster | undefined };
}

/** Nothing of it has begun. A failure is one of the configuration. */
export async function composeAgent(
  { config, log, loadParse }: ComposedLaunch,
  { host, parser, hasRoot, throughTransport, plansOnly }: Surroundings,
): Promise<Result<ComposedAgent>> {
  for (const warning of await directoryWarnings(host, config.manifests))
    log.warn('configuration', { warning });
  const connected = await connectCluster(host, config, { loadParse, log, throughTransport });
  if (!connected.ok) return connected;
  const cluster = connected.value;
  const manifests = createTrustedManifests({ host, parser, config, log });
  const issued = await issuedHere(host, config);
  if (!issued.ok) return issued;
  const agent = createAgent({
    ...{ host, config, log },
    // What is written on the machine itself comes first, as with static pods.
    sources: cluster === undefined ? [manifests] : [manifests, cluster.source],
    tokens: cluster?.tokens ?? issued.value.tokens,
    capacity: hasRoot ? machineCapacity(config.root) : {},
    attachment: cluster?.attachment,
    standing: cluster?.attachment,
    ...(plansOnly === undefined ? {} : { plansOnly }),
  });
  return ok({ agent, issued: { ...issued.value, cluster } });
}
