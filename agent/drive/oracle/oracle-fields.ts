/** Rules about what one call carries: gates, missing and extra fields, limits, secrets. Pure. */
import {
  ControllerServiceCapability_RPC_Type as Controller,
  NodeServiceCapability_RPC_Type as Node,
  PluginCapability_Service_Type as Service,
  VolumeCapability_AccessMode_Mode as Mode,
} from '../../../plugins/csi/wire/generated/csi.ts';
import type { OracleContext } from './oracle-context.ts';
import { type BeginningCall, stableJson } from './oracle-history.ts';
import { attaches, CONTROLLER_GATES, NODE_GATES, stages } from './oracle-nature.ts';

type StringMap = Readonly<Record<string, string>>;

/** CSI specification, "Size Limits"; in bytes. A path has the limit of the system, and 128 is what must be accepted. */
const MAP_BYTES_MAX = 4_096;
const NODE_ID_BYTES_MAX = 256;
const PATH_BYTES_ADVISED_MAX = 128;
const SECRET_KEY = /^[-A-Za-z0-9_.]+$/;

/** Judges the fields of a call that has just arrived. May note what the first call of a volume said of it. */
export function judgeFields(context: OracleContext): void {
  judgeGates(context);
  judgeRequired(context);
  judgeCapability(context);
  judgeContexts(context);
  judgeLimits(context);
  judgeSecrets(context);
  const { call, violate } = context;
  if ((call.unknownBytes ?? 0) > 0)
    violate(
      'A-015',
      `${call.method} carries ${call.unknownBytes} bytes of fields that CSI 1.13 does not have`,
    );
}

function judgeGates({ call, nature, violate }: OracleContext): void {
  const { method } = call;
  const nodeGate = NODE_GATES[method];
  const { node, controller, services } = nature;
  if (nodeGate !== undefined && node !== undefined && !nodeGate.some((one) => node.has(one)))
    violate(GATE_DUTIES[method] ?? 'A-008', `${method}, which the driver does not offer`);
  const controllerGate = CONTROLLER_GATES[method];
  if (controllerGate === undefined) return;
  if (services?.has(Service.CONTROLLER_SERVICE) === false)
    violate('A-008', `${method} of a driver without CONTROLLER_SERVICE`);
  else if (
    controllerGate.length > 0 &&
    controller !== undefined &&
    !controllerGate.some((one) => controller.has(one))
  ) {
    violate(GATE_DUTIES[method] ?? 'A-008', `${method}, which the controller does not offer`);
  }
}

const GATE_DUTIES: Readonly<Record<string, string>> = {
  NodeGetVolumeStats: 'A-068',
  NodeExpandVolume: 'A-069',
  NodeGetVolumeHealth: 'A-075',
};

/** The fields each call must have, by the specification's word REQUIRED. */
const REQUIRED = {
  NodeStageVolume: ['volumeId', 'stagingTargetPath', 'volumeCapability'],
  NodeUnstageVolume: ['volumeId', 'stagingTargetPath'],
  NodePublishVolume: ['volumeId', 'targetPath', 'volumeCapability'],
  NodeUnpublishVolume: ['volumeId', 'targetPath'],
  NodeGetVolumeStats: ['volumeId', 'volumePath'],
  NodeExpandVolume: ['volumeId', 'volumePath'],
  NodeGetVolumeHealth: ['volumeId'],
  ControllerPublishVolume: ['volumeId', 'nodeId', 'volumeCapability'],
  ControllerUnpublishVolume: ['volumeId'],
  ControllerExpandVolume: ['volumeId'],
  DeleteVolume: ['volumeId'],
} as const satisfies Readonly<Record<string, readonly (keyof BeginningCall['request'])[]>>;

const PATHS = ['stagingTargetPath', 'targetPath', 'volumePath'] as const;

function judgeRequired({ call, nature, history, violate }: OracleContext): void {
  const { method, request } = call;
  const required: readonly (keyof BeginningCall['request'])[] =
    REQUIRED[method as keyof typeof REQUIRED] ?? [];
  for (const field of required) {
    if (request[field] === undefined || request[field] === '') violate('A-015', `${method} without ${field}`);
  }
  for (const field of PATHS) {
    const path = request[field];
    if (path === undefined || path === '') continue;
    if (!path.startsWith('/')) violate('A-055', `${method}: ${field} is not absolute: ${path}`);
    if (Buffer.byteLength(path) > PATH_BYTES_ADVISED_MAX)
      violate('A-014', `${method}: ${field} has ${Buffer.byteLength(path)} bytes`, 'should');
  }
  if (method === 'NodePublishVolume' && stages(nature) !== undefined) {
    const given = request.stagingTargetPath ?? '';
    if (stages(nature) === true && given === '')
      violate('A-060', `${request.volumeId} published without staging_target_path`);
    if (stages(nature) === false && given !== '')
      violate(
        'A-060',
        `${request.volumeId} published with a staging_target_path, and the driver does not stage`,
      );
  }
  if (method === 'ControllerUnpublishVolume' && request.nodeId === '')
    violate('A-087', `${request.volumeId} detached from every node: node_id is empty`);
  const nodeIdGiven = request.nodeId !== undefined && request.nodeId !== '';
  // A volume attached under another id of this node is detached under that id.
  if (method === 'ControllerPublishVolume' && nodeIdGiven && history !== undefined) {
    if (nature.nodeId !== undefined && nature.nodeId !== request.nodeId)
      violate('A-085', `attached to ${request.nodeId}, but the driver calls this node ${nature.nodeId}`);
  }
}

function judgeCapability({ call, nature, violate }: OracleContext): void {
  const { method, request } = call;
  const { volumeCapability: capability } = request;
  if (capability === undefined) return;
  const mode = capability.accessMode?.mode;
  if (capability.accessType === undefined || mode === undefined || mode === Mode.UNKNOWN)
    violate('A-016', `${method}: a volume_capability needs one access type and an access mode`);
  const isController = method.startsWith('Controller');
  const [called, gate] = isController
    ? [nature.controller, Controller.SINGLE_NODE_MULTI_WRITER]
    : [nature.node, Node.SINGLE_NODE_MULTI_WRITER];
  const isNew = mode === Mode.SINGLE_NODE_SINGLE_WRITER || mode === Mode.SINGLE_NODE_MULTI_WRITER;
  if (isNew && called?.has(gate) === false)
    violate('A-064', `${method}: access mode ${mode} to a service without SINGLE_NODE_MULTI_WRITER`);
  const group = capability.accessType?.$case === 'mount' ? capability.accessType.value.volumeMountGroup : '';
  if (group !== '' && nature.node?.has(Node.VOLUME_MOUNT_GROUP) === false)
    violate('A-022', `${method}: volume_mount_group to a driver without VOLUME_MOUNT_GROUP`);
  if (method === 'ControllerPublishVolume' && request.readonly === true) {
    if (nature.controller?.has(Controller.PUBLISH_READONLY) === false)
      violate('A-023', `${method}: readonly to a driver without PUBLISH_READONLY`);
  }
}

const CONTEXT_METHODS: ReadonlySet<string> = new Set([
  'ControllerPublishVolume',
  'NodeStageVolume',
  'NodePublishVolume',
]);
/** What the orchestrator may add to the context of a publish (CSIDriver.podInfoOnMount, tokens). */
const POD_INFO_PREFIX = 'csi.storage.k8s.io/';

function judgeContexts({ call, nature, history, violate }: OracleContext): void {
  const { method, request } = call;
  if (history === undefined || !CONTEXT_METHODS.has(method)) return;
  const plain = Object.entries(request.volumeContext ?? {}).filter(
    ([key]) => !key.startsWith(POD_INFO_PREFIX),
  );
  const context = stableJson(Object.fromEntries(plain));
  history.context ??= context;
  if (history.context !== context)
    violate('A-019', `${method} of ${request.volumeId}: volume_context ${history.context} became ${context}`);
  if (method === 'ControllerPublishVolume') return;
  const given = request.publishContext ?? {};
  if (attaches(nature) === false && Object.keys(given).length > 0)
    violate('A-020', `${method} with a publish_context, and the driver does not attach`);
  if (attaches(nature) === true && history.publishContext !== undefined) {
    if (stableJson(given) !== stableJson(history.publishContext))
      violate('A-020', `${method}: publish_context is not what ControllerPublishVolume answered`);
  }
}

function judgeLimits({ call, violate }: OracleContext): void {
  const { method, request } = call;
  for (const [name, map] of Object.entries({
    volume_context: request.volumeContext,
    publish_context: request.publishContext,
  })) {
    const bytes = bytesOf(map ?? {});
    if (bytes > MAP_BYTES_MAX) violate('A-013', `${method}: ${name} has ${bytes} bytes`);
  }
  const nodeIdBytes = Buffer.byteLength(request.nodeId ?? '');
  if (nodeIdBytes > NODE_ID_BYTES_MAX) violate('A-014', `${method}: node_id has ${nodeIdBytes} bytes`);
}

function judgeSecrets({ call, options, violate }: OracleContext): void {
  const { method, request } = call;
  const { secrets = {}, ...rest } = request;
  const badKey = Object.keys(secrets).find((key) => !SECRET_KEY.test(key));
  if (badKey !== undefined)
    violate('A-037', `${method}: a secret key holds more than letters, digits, -, _ and .`);
  const text = stableJson(rest);
  if ((options.canaries ?? []).some((canary) => text.includes(canary)))
    violate('A-038', `${method} carries a secret outside of its secrets field`);
}

function bytesOf(map: StringMap): number {
  return Object.entries(map)
    .flat()
    .reduce((sum, one) => sum + Buffer.byteLength(one), 0);
}
