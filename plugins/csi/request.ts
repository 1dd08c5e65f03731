/** The requests of the ladder, built from nothing but the call, so that a retry sends the same bytes (INV-40). Pure. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import type { PublicationCall, PublishContext, VolumeCall } from '../plugin.ts';
import type { SecretData } from '../sensitive.ts';
import { type CsiVolumeSpec, VOLUME_HANDLE_BYTES_MAX } from '../volume.ts';
import { csiAccessMode } from './access-mode.ts';
import type { DriverInstance } from './driver.ts';
import {
  type ControllerPublishVolumeRequest,
  type ControllerUnpublishVolumeRequest,
  ControllerServiceCapability_RPC_Type as ControllerCapability,
  type NodePublishVolumeRequest,
  type NodeStageVolumeRequest,
  NodeServiceCapability_RPC_Type as NodeCapability,
  type VolumeCapability,
} from './generated/csi.ts';

type StringMap = Readonly<Record<string, string>>;

export function controllerPublishRequest(
  spec: CsiVolumeSpec,
  call: VolumeCall,
  driver: DriverInstance,
): Result<ControllerPublishVolumeRequest> {
  const capabilities = driver.controllerCapabilities ?? new Set<number>();
  return withinLimits({
    volumeId: spec.volumeHandle,
    nodeId: driver.nodeId,
    volumeCapability: mountCapability(spec, capabilities.has(ControllerCapability.SINGLE_NODE_MULTI_WRITER)),
    readonly: spec.readOnly && capabilities.has(ControllerCapability.PUBLISH_READONLY),
    secrets: revealed(call.secrets.controllerPublish),
    volumeContext: sorted(spec.volumeAttributes),
  });
}

/** Teardown checks no limits: what was set up must come down. */
export function controllerUnpublishRequest(
  spec: CsiVolumeSpec,
  call: VolumeCall,
  driver: DriverInstance,
): Result<ControllerUnpublishVolumeRequest> {
  // An empty node id would detach the volume from every node.
  if (driver.nodeId === '') return invalid('the driver has no node id');
  const secrets = revealed(call.secrets.controllerPublish);
  return ok({ volumeId: spec.volumeHandle, nodeId: driver.nodeId, secrets });
}

export function stageRequest(
  spec: CsiVolumeSpec,
  call: VolumeCall,
  driver: DriverInstance,
  staging: AbsolutePath,
): Result<NodeStageVolumeRequest> {
  return withinLimits({
    volumeId: spec.volumeHandle,
    publishContext: publishContext(call),
    stagingTargetPath: staging,
    volumeCapability: nodeCapability(spec, driver),
    secrets: revealed(call.secrets.stage),
    volumeContext: sorted(spec.volumeAttributes),
  });
}

export function publishRequest(
  spec: CsiVolumeSpec,
  call: PublicationCall,
  driver: DriverInstance,
  paths: { readonly staging: AbsolutePath; readonly target: AbsolutePath },
): Result<NodePublishVolumeRequest> {
  return withinLimits({
    volumeId: spec.volumeHandle,
    publishContext: publishContext(call),
    stagingTargetPath: call.facts.needs.stage ? paths.staging : '',
    targetPath: paths.target,
    volumeCapability: nodeCapability(spec, driver),
    readonly: call.publication.readOnly,
    secrets: revealed(call.secrets.publish),
    volumeContext: sorted({ ...spec.volumeAttributes, ...podInfo(spec, call) }),
  });
}

function podInfo(spec: CsiVolumeSpec, call: PublicationCall): StringMap {
  if (!spec.podInfoOnMount) return {};
  const { pod } = call.publication;
  return {
    'csi.storage.k8s.io/pod.name': pod.name,
    'csi.storage.k8s.io/pod.namespace': pod.namespace,
    'csi.storage.k8s.io/pod.uid': pod.uid,
    'csi.storage.k8s.io/serviceAccount.name': pod.serviceAccount,
    'csi.storage.k8s.io/ephemeral': 'false',
  };
}

function publishContext(call: VolumeCall): Record<string, string> {
  return call.facts.needs.attach ? sorted(call.facts.publishContext ?? {}) : {};
}

function nodeCapability(spec: CsiVolumeSpec, driver: DriverInstance): VolumeCapability {
  return mountCapability(spec, driver.nodeCapabilities.has(NodeCapability.SINGLE_NODE_MULTI_WRITER));
}

function mountCapability(spec: CsiVolumeSpec, singleNodeMultiWriter: boolean): VolumeCapability {
  const mount = { fsType: spec.fsType, mountFlags: [...spec.mountOptions], volumeMountGroup: '' };
  return {
    accessType: { $case: 'mount', value: mount },
    accessMode: { mode: csiAccessMode(spec.accessModes, singleNodeMultiWriter) },
  };
}

/** Opens the secret for the one call that carries it. */
function revealed(data: SecretData | undefined): Record<string, string> {
  return sorted(data?.reveal() ?? {});
}

function sorted(map: StringMap): Record<string, string> {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** CSI specification, "Size Limits"; shelf: csi-and-peers. All in bytes of UTF-8. */
const STRING_BYTES_MAX = 128;
const NODE_ID_BYTES_MAX = 256;
const MAP_BYTES_MAX = 4_096;
const MOUNT_FLAGS_BYTES_MAX = 4_096;
const SECRET_KEY = /^[-A-Za-z0-9_.]+$/;

interface Limited {
  readonly volumeId: string;
  readonly nodeId?: string;
  readonly volumeCapability: VolumeCapability | undefined;
  readonly volumeContext: StringMap;
  readonly publishContext?: StringMap;
  readonly secrets: StringMap;
}

function withinLimits<Request extends Limited>(request: Request): Result<Request> {
  const access = request.volumeCapability?.accessType;
  const mount = access?.$case === 'mount' ? access.value : undefined;
  const breach =
    stringBreach('volume handle', request.volumeId, VOLUME_HANDLE_BYTES_MAX) ??
    (request.nodeId === undefined ? undefined : stringBreach('node id', request.nodeId, NODE_ID_BYTES_MAX)) ??
    (mount === undefined || mount.fsType === ''
      ? undefined
      : stringBreach('fsType', mount.fsType, STRING_BYTES_MAX)) ??
    sizeBreach('mount options', bytesOf(mount?.mountFlags ?? []), MOUNT_FLAGS_BYTES_MAX) ??
    mapBreach('volume attributes', request.volumeContext) ??
    mapBreach('publish context', request.publishContext ?? {}) ??
    mapBreach('secret', request.secrets) ??
    (Object.keys(request.secrets).every((key) => SECRET_KEY.test(key))
      ? undefined
      : 'a secret key holds something else than letters, digits, "-", "_" and "."');
  return breach === undefined ? ok(request) : invalid(breach);
}

function stringBreach(name: string, text: string, bytesMax: number): string | undefined {
  return text === '' ? `the ${name} is empty` : sizeBreach(name, Buffer.byteLength(text), bytesMax);
}

function mapBreach(name: string, map: StringMap): string | undefined {
  return sizeBreach(name, bytesOf(Object.entries(map).flat()), MAP_BYTES_MAX);
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
