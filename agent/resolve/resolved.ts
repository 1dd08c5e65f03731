/** A volume of one pod, resolved: one volume with one publication. */
import type { Failure } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import type { NodeResources } from '../../kubernetes/fields/node-resource.ts';
import { NO_SECRETS } from '../../plugins/plugin.ts';
import type { PodUid, VolumeId, VolumeSpec } from '../../plugins/volume.ts';
import type { DesiredPublication, DesiredVolume } from '../../reconciler/model/desired-state.ts';
import type { Bindings } from '../../kubernetes/binding/bind-claim.ts';
import type { TokenAnswer, TokenSource } from '../source/token-source.ts';
import type { TrustBundleSource } from '../source/trust-bundle-source.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';

/** What the configuration and the machine have to say about volumes. */
export interface ResolveOptions {
  /** The name of the Node object that is this machine's. */
  readonly nodeName: string;
  /** hostPath and local volumes at, below or above one of these are refused (SE-07): above it lies open as well. */
  readonly deniedHostPaths: readonly AbsolutePath[];
  /** Who has the tokens that drivers and volumes ask for. */
  readonly tokens: Pick<TokenSource, 'tokensFor' | 'tokenFor'>;
  /** Who has the certificates that volumes ask for. */
  readonly trustBundles: Pick<TrustBundleSource, 'bundleFor'>;
  /** Counts up at each resync: volumes of drivers with `requiresRepublish` are published again at each new number. */
  readonly republishEpoch: number;
  /** What this machine has, where its Node object does not say what it gives to pods. */
  readonly capacity: NodeResources;
  /** Who attaches CSI volumes: this node by calls to their drivers, or a cluster, which grants them to it. */
  readonly attachment: 'called' | 'granted';
  /** The machine has SELinux enabled; permissive counts. */
  readonly seLinux: boolean;
  /** The pod was told of the volume, or may have been, and has it mounted; by default it has not. */
  readonly hasMounted?: (volume: VolumeId, pod: PodUid) => boolean;
}

/** What a resolution may look at. */
export interface Sources {
  readonly desired: DesiredObjects;
  /** What this node gives to pods. */
  readonly allocatable: NodeResources;
  readonly bindings: Bindings;
  readonly options: ResolveOptions;
}

export interface Resolved {
  readonly spec: VolumeSpec;
  readonly specName: string;
  readonly readOnly: boolean;
  readonly secrets: DesiredVolume['secrets'];
  /** Wanted, but the whole volume must not climb. */
  readonly blocked: Failure | undefined;
  readonly generation: string;
  readonly files: DesiredPublication['files'];
  readonly size: DesiredVolume['size'];
  /** The tokens of this pod; undefined when the driver asks for none. */
  readonly tokens: TokenAnswer | undefined;
  /** It could be mounted with a label of SELinux, and the containers of the pod have different ones. */
  readonly hasDifferentLabels?: boolean;
}

/** A volume that has none of what only some kinds have. */
export const PLAIN = {
  readOnly: false,
  secrets: NO_SECRETS,
  blocked: undefined,
  generation: '',
  files: undefined,
  size: undefined,
  tokens: undefined,
} as const satisfies Partial<Resolved>;
