/** The requests of the ladder, built from nothing but the call, so that a retry sends the same bytes (INV-40). Pure. */
import { fail, ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath } from '../../../mount/host.ts';
import type { ExpandCall, PublicationCall, PublishContext, VolumeCall } from '../../plugin.ts';
import type { SecretData } from '../../secret/sensitive.ts';
import { type CsiVolumeSpec, VOLUME_HANDLE_BYTES_MAX } from '../../volume.ts';
import { csiAccessMode } from './access-mode.ts';
import type { DriverInstance } from '../driver/driver.ts';
import { volumeMountGroup } from './fs-group.ts';
import {
  type ControllerPublishVolumeRequest,
  type ControllerUnpublishVolumeRequest,
  ControllerServiceCapability_RPC_Type as ControllerCapability,
  type NodeExpandVolumeRequest,
  type NodePublishVolumeRequest,
  type NodeStageVolumeRequest,
  NodeServiceCapability_RPC_Type as NodeCapability,
  type VolumeCapability,
} from '../wire/generated/csi.ts';
import { TOKENS_KEY, tokenEntry } from './service-account-tokens.ts';

type StringMap = Readonly<Record<string, string>>;

export function controllerPublishRequest(
  spec: CsiVolumeSpec,
  call: VolumeCall,
  driver: DriverInstance,
): Result<ControllerPublishVolumeRequest> {
  const capabilities = driver.controllerCapabilities ?? new Set<number>();
  return withinLimits(
    {
      volumeId: spec.volumeHandle,
      nodeId: nodeIdOf(call, driver),
      volumeCapability: capability(spec, capabilities.has(ControllerCapability.SINGLE_NODE_MULTI_WRITER), ''),
      readonly: spec.readOnly && capabilities.has(ControllerCapability.PUBLISH_READONLY),
      secrets: revealed(call.secrets.controllerPublish),
      volumeContext: sorted(spec.volumeAttributes),
    },
    'controllerPublishSecretRef',
  );
}

/**
 * That of the first attach, until it is detached: under the one that its driver has today another attachment would be
 * made, or ended, and the old one left behind.
 */
function nodeIdOf({ facts }: VolumeCall, driver: DriverInstance): string {
  return facts.attachedNode ?? driver.nodeId;
}

/** Teardown checks no limits: what was set up must come down. */
export function controllerUnpublishRequest(
  spec: CsiVolumeSpec,
  call: VolumeCall,
  driver: DriverInstance,
): Result<ControllerUnpublishVolumeRequest> {
  const nodeId = nodeIdOf(call, driver);
  // An empty node id would detach the volume from every node.
  if (nodeId === '') return invalid('the driver has no node id');
  const secrets = revealed(call.secrets.controllerPublish);
  return ok({ volumeId: spec.volumeHandle, nodeId, secrets });
}

/** `spec-invalid` where a field breaks the limits of CSI. */
export function stageRequest(
  spec: CsiVolumeSpec,
  call: VolumeCall,
  driver: DriverInstance,
  staging: AbsolutePath,
): Result<NodeStageVolumeRequest> {
  return withinLimits(
    {
      volumeId: spec.volumeHandle,
      publishContext: publishContext(call),
      stagingTargetPath: staging,
      volumeCapability: nodeCapability(spec, call, driver),
      secrets: revealed(call.secrets.stage),
      volumeContext: sorted(spec.volumeAttributes),
    },
    'nodeStageSecretRef',
  );
}

export function publishRequest(
  spec: CsiVolumeSpec,
  call: PublicationCall,
  driver: DriverInstance,
  paths: { readonly staging: AbsolutePath; readonly target: AbsolutePath },
): Result<NodePublishVolumeRequest> {
  const { pod } = call.publication;
  const tokens = tokenEntry(call);
  const info = spec.podInfoOnMount ? { ...podInfo(pod), [EPHEMERAL_KEY]: ephemeral(spec) } : {};
  return withinLimits(
    {
      volumeId: spec.volumeHandle,
      publishContext: publishContext(call),
      // A driver that was replaced while the call waited may not stage any more.
      stagingTargetPath: call.facts.needs.stage && stages(driver) ? paths.staging : '',
      targetPath: paths.target,
      volumeCapability: nodeCapability(spec, call, driver),
      readonly: call.publication.readOnly,
      secrets: sorted({ ...call.secrets.publish?.reveal(), ...(spec.tokensInSecrets ? tokens : {}) }),
      // Into a new map, always: the spec is shared by all pods of the volume (KV-H12).
      volumeContext: sorted({ ...spec.volumeAttributes, ...info, ...(spec.tokensInSecrets ? {} : tokens) }),
    },
    'nodePublishSecretRef',
  );
}

/** `volumePath`: where it is published, or while it is only staged where that is. */
export function expandRequest(
  spec: CsiVolumeSpec,
  call: ExpandCall,
  driver: DriverInstance,
  paths: { readonly staging: AbsolutePath; readonly volumePath: AbsolutePath },
): Result<NodeExpandVolumeRequest> {
  const request = {
    volumeId: spec.volumeHandle,
    volumePath: paths.volumePath,
    capacityRange: { requiredBytes: BigInt(call.toBytes), limitBytes: 0n },
    stagingTargetPath: call.facts.needs.stage ? paths.staging : '',
    volumeCapability: nodeCapability(spec, call, driver),
    secrets: revealed(call.secrets.expand),
  };
  const checked = withinLimits({ ...request, volumeContext: {} }, 'nodeExpandSecretRef');
  return checked.ok ? ok(request) : checked;
}

function stages({ nodeCapabilities }: DriverInstance): boolean {
  return nodeCapabilities.has(NodeCapability.STAGE_UNSTAGE_VOLUME);
}

const EPHEMERAL_KEY = 'csi.storage.k8s.io/ephemeral';

/** The kubelet says `false`, too, of all that is not written inline in the pod (KV-C6, KV-C11). */
function ephemeral({ lifecycle }: CsiVolumeSpec): string {
  return lifecycle === 'Ephemeral' ? 'true' : 'false';
}

function podInfo(pod: PublicationCall['publication']['pod']): StringMap {
  return {
    'csi.storage.k8s.io/pod.name': pod.name,
    'csi.storage.k8s.io/pod.namespace': pod.namespace,
    'csi.storage.k8s.io/pod.uid': pod.uid,
    'csi.storage.k8s.io/serviceAccount.name': pod.serviceAccount,
  };
}

function publishContext(call: VolumeCall): Record<string, string> {
  return call.facts.needs.attach ? sorted(call.facts.publishContext ?? {}) : {};
}

function nodeCapability(spec: CsiVolumeSpec, call: VolumeCall, driver: DriverInstance): VolumeCapability {
  const singleNodeMultiWriter = driver.nodeCapabilities.has(NodeCapability.SINGLE_NODE_MULTI_WRITER);
  return capability(spec, singleNodeMultiWriter, volumeMountGroup(driver, spec, call.fsGroup));
}

function capability(
  spec: CsiVolumeSpec,
  singleNodeMultiWriter: boolean,
  volumeMountGroup: string,
): VolumeCapability {
  const accessMode = { mode: csiAccessMode(spec.accessModes, singleNodeMultiWriter) };
  if (spec.mode === 'Block') return { accessType: { $case: 'block', value: {} }, accessMode };
  const mount = { fsType: spec.fsType, mountFlags: mountFlags(spec), volumeMountGroup };
  return { accessType: { $case: 'mount', value: mount }, accessMode };
}

/** The label in quotes, as the kubelet has it: it may hold commas (KV-E4). */
function mountFlags({ mountOptions, seLinuxContext }: CsiVolumeSpec): string[] {
  return [...mountOptions, ...(seLinuxContext === '' ? [] : [`context="${seLinuxContext}"`])];
}

/** Opens the secret for the one call that carries it. */
function revealed(data: SecretData | undefined): Record<string, string> {
  return sorted(data?.reveal() ?? {});
}

function sorted(map: StringMap): Record<string, string> {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** CSI specification, "Size Limits". All in bytes of UTF-8. */
const STRING_BYTES_MAX = 128;
const NODE_ID_BYTES_MAX = 256;
const MAP_BYTES_MAX = 4_096;
const MOUNT_FLAGS_BYTES_MAX = 4_096;
/**
 * A secret's values together, as Kubernetes bounds them (`MaxSecretSize`). CSI has 4 KiB for this map, too, and the
 * kubelet does not ask: a key with its certificates is larger.
 */
const SECRET_BYTES_MAX = 1_048_576;
const SECRET_KEY = /^[-A-Za-z0-9_.]+$/;

interface Limited {
  readonly volumeId: string;
  readonly nodeId?: string;
  readonly volumeCapability: VolumeCapability | undefined;
  readonly volumeContext: StringMap;
  readonly publishContext?: StringMap;
  readonly secrets: StringMap;
}

type SecretField =
  | 'controllerPublishSecretRef'
  | 'nodeStageSecretRef'
  | 'nodePublishSecretRef'
  | 'nodeExpandSecretRef';

/** `secretField`: where the wish names the secret of the request. */
function withinLimits<Request extends Limited>(request: Request, secretField: SecretField): Result<Request> {
  const access = request.volumeCapability?.accessType;
  const mount = access?.$case === 'mount' ? access.value : undefined;
  const breach =
    stringBreach('volume handle', request.volumeId, VOLUME_HANDLE_BYTES_MAX) ??
    (request.nodeId === undefined ? undefined : stringBreach('node id', request.nodeId, NODE_ID_BYTES_MAX)) ??
    (mount === undefined || mount.fsType === ''
      ? undefined
      : stringBreach('fsType', mount.fsType, STRING_BYTES_MAX)) ??
    sizeBreach('list mountOptions', bytesOf(mount?.mountFlags ?? []), MOUNT_FLAGS_BYTES_MAX) ??
    mapBreach('map volumeAttributes', withoutTokens(request.volumeContext)) ??
    mapBreach('publish context', request.publishContext ?? {}) ??
    secretBreach(secretField, Object.values(withoutTokens(request.secrets))) ??
    (Object.keys(withoutTokens(request.secrets)).every((key) => SECRET_KEY.test(key))
      ? undefined
      : `a key of the secret of ${secretField} holds something else than letters, digits, "-", "_" and "."`);
  return breach === undefined ? ok(request) : invalid(breach);
}

/** Not ours to make smaller or to name otherwise: drivers that ask for tokens take what the kubelet sends. */
function withoutTokens(map: StringMap): StringMap {
  const { [TOKENS_KEY]: _, ...rest } = map;
  return rest;
}

function stringBreach(name: string, text: string, bytesMax: number): string | undefined {
  return text === '' ? `the ${name} is empty` : sizeBreach(name, Buffer.byteLength(text), bytesMax);
}

function mapBreach(name: string, map: StringMap): string | undefined {
  return sizeBreach(name, bytesOf(Object.entries(map).flat()), MAP_BYTES_MAX);
}

function secretBreach(field: SecretField, values: readonly string[]): string | undefined {
  const bytes = bytesOf(values);
  if (bytes <= SECRET_BYTES_MAX) return undefined;
  return `the secret of ${field} has ${bytes} bytes; a Secret has ${SECRET_BYTES_MAX} at most`;
}

function sizeBreach(name: string, bytes: number, bytesMax: number): string | undefined {
  return bytes <= bytesMax ? undefined : `the ${name} has ${bytes} bytes; CSI allows ${bytesMax}`;
}

function bytesOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** Bytes of a map as CSI counts them, for what a driver answers. */
export function mapFits(map: PublishContext): boolean {
  return mapBreach('', map) === undefined;
}

function invalid(message: string): Result<never> {
  return fail({ code: 'spec-invalid', message, effect: 'none' });
}
