/**
 * The kubelet's plugin-registration handshake and the questions asked of a driver before it may serve (KV-I3,
 * KV-I5). Holds no state; every call has a deadline.
 */
import { type Failure, fail, ok, type Result } from '../../../mount/failure.ts';
import { type AbsolutePath, type Host, parseAbsolutePath } from '../../../mount/host.ts';
import type { RemoteMethod, SocketIdentity } from '../../../mount/remote-call.ts';
import { isDriverName } from '../../volume.ts';
import type { DriverInstance } from './driver.ts';
import {
  ControllerService,
  IdentityService,
  NodeService,
  type NodeGetInfoResponse,
  type PluginCapability,
  PluginCapability_Service_Type as PluginService,
} from '../wire/generated/csi.ts';
import { RegistrationService } from '../wire/generated/pluginregistration.ts';
import { topologyBreach } from './topology-label.ts';
import { failureOf, type Hidden, methodName, shown, STATUS_UNIMPLEMENTED } from '../wire/status.ts';

/** The kubelet's own. */
const GET_INFO_MS = 1_000;
const NOTIFY_MS = 5_000;
const NODE_INFO_MS = 120_000;
const QUESTION_MS = 10_000;
/** CSI specification: strings, and node_id. In bytes. */
const STRING_BYTES_MAX = 128;
const NODE_ID_BYTES_MAX = 256;

/** Who asks, and what it knows that drivers were given: it is taken out of what they answer. By default nothing. */
export interface Questioner extends Pick<Host, 'call' | 'nowMs'> {
  /** Undefined: any of them. */
  readonly hidden?: (driver?: string) => Hidden;
}

/** Who has said its name itself was given what is its own; too many secrets would hide all that it says. */
function knowing(questioner: Questioner, driver: string): Questioner {
  return {
    call: (call) => questioner.call(call),
    nowMs: () => questioner.nowMs(),
    hidden: () => questioner.hidden?.(driver) ?? { secrets: [] },
  };
}

/** What a registration socket announces. */
export interface Announcement {
  readonly name: string;
  readonly endpoint: AbsolutePath;
}

/** GetInfo, and whether what it says can be registered at all. */
export async function readAnnouncement(
  questioner: Questioner,
  socket: SocketIdentity,
): Promise<Result<Announcement>> {
  const info = await ask(questioner, socket, socket.path, RegistrationService.getInfo, {}, GET_INFO_MS);
  if (!info.ok) return info;
  const { type, name, endpoint, supportedVersions } = info.value;
  if (type !== 'CSIPlugin') return invalid(`plugin type "${type}"; only CSIPlugin is served`);
  if (!isDriverName(name))
    return invalid(`driver name "${name}" is not in domain notation of at most 63 characters`);
  if (highestVersion(supportedVersions) === undefined) {
    return invalid(
      `no supported version with major 1 or lower in [${supportedVersions.slice(0, 16).join(', ')}]`,
    );
  }
  const path = endpoint === '' ? socket.path : parseAbsolutePath(endpoint);
  return path === undefined
    ? invalid(`endpoint "${endpoint}" is not an absolute path`)
    : ok({ name, endpoint: path });
}

const VERSION = /^v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?/;

/** The highest listed version with major 1 or lower, as the kubelet picks it; undefined when there is none. */
export function highestVersion(versions: readonly string[]): string | undefined {
  const known = versions.flatMap((text) => {
    const [, major, minor, patch = '0'] = VERSION.exec(text) ?? [];
    return major === undefined || Number(major) > 1
      ? []
      : [{ text, order: [major, minor, patch].map(Number) }];
  });
  known.sort((a, b) => a.order.reduce((sum, one, index) => sum || one - (b.order[index] ?? 0), 0));
  return known.at(-1)?.text;
}

/** Tells the registrar the verdict; its own failure means that the registrar does not know. */
export async function notifyRegistrar(
  questioner: Questioner,
  socket: SocketIdentity,
  refusal: Failure | undefined,
): Promise<Result<void>> {
  const verdict = { pluginRegistered: refusal === undefined, error: refusal?.message ?? '' };
  const told = await ask(
    questioner,
    socket,
    socket.path,
    RegistrationService.notifyRegistrationStatus,
    verdict,
    NOTIFY_MS,
  );
  return told.ok ? ok(undefined) : told;
}

/** As `DriverInstance.volumesMax`. */
export async function askVolumesMax(
  questioner: Questioner,
  { endpoint, name }: Pick<DriverInstance, 'endpoint' | 'name'>,
): Promise<Result<number>> {
  const asking = knowing(questioner, name);
  const node = await ask(asking, endpoint, name, NodeService.nodeGetInfo, {}, NODE_INFO_MS);
  if (!node.ok) return node;
  const breach = nodeInfoBreach(node.value);
  return breach === undefined ? ok(volumesMaxIn(node.value)) : invalid(`${name}: ${breach}`);
}

function volumesMaxIn({ maxVolumesPerNode }: { readonly maxVolumesPerNode: bigint | number }): number {
  return Math.min(Number(maxVolumesPerNode), Number.MAX_SAFE_INTEGER);
}

/**
 * All a driver must answer before it is used. `name`: what it was announced as; undefined for a socket named in the
 * configuration. Controller capabilities are asked only of a driver with CONTROLLER_SERVICE.
 */
export async function questionDriver(
  questioner: Questioner,
  endpoint: SocketIdentity,
  announced: Pick<DriverInstance, 'registrationSocket' | 'life'> & { readonly name: string | undefined },
): Promise<Result<DriverInstance>> {
  const who = announced.name ?? endpoint.path;
  const identity = await ask(questioner, endpoint, who, IdentityService.getPluginInfo, {}, QUESTION_MS);
  if (!identity.ok) return identity;
  const { name, vendorVersion } = identity.value;
  if (!isDriverName(name))
    return invalid(`driver name "${name}" is not in domain notation of at most 63 characters`);
  if (announced.name !== undefined && announced.name !== name) {
    return invalid(`announced as "${announced.name}", but the driver says it is "${name}"`);
  }
  const versionBytes = Buffer.byteLength(vendorVersion);
  if (versionBytes > STRING_BYTES_MAX)
    return invalid(`${name}: the vendor version has ${versionBytes} bytes; CSI allows ${STRING_BYTES_MAX}`);
  const asking = knowing(questioner, name);
  const ready = await isReady(asking, endpoint, name);
  if (!ready.ok) return ready;
  const plugin = await ask(asking, endpoint, name, IdentityService.getPluginCapabilities, {}, QUESTION_MS);
  if (!plugin.ok) return plugin;
  const node = await ask(asking, endpoint, name, NodeService.nodeGetInfo, {}, NODE_INFO_MS);
  if (!node.ok) return node;
  const services = servicesOf(plugin.value.capabilities);
  const constrained = services.has(PluginService.VOLUME_ACCESSIBILITY_CONSTRAINTS);
  const topology = constrained ? { ...node.value.accessibleTopology?.segments } : {};
  const breach = nodeInfoBreach(node.value) ?? topologyBreach(topology);
  if (breach !== undefined) return invalid(`${name}: ${breach}`);
  const nodeCapabilities = await ask(
    asking,
    endpoint,
    name,
    NodeService.nodeGetCapabilities,
    {},
    QUESTION_MS,
  );
  if (!nodeCapabilities.ok) return nodeCapabilities;
  const controllerCapabilities = services.has(PluginService.CONTROLLER_SERVICE)
    ? await askController(asking, endpoint, name)
    : ok(undefined);
  if (!controllerCapabilities.ok) return controllerCapabilities;
  return ok({
    name,
    endpoint,
    life: announced.life,
    registrationSocket: announced.registrationSocket,
    vendorVersion,
    nodeId: node.value.nodeId,
    volumesMax: volumesMaxIn(node.value),
    topology,
    nodeCapabilities: rpcTypes(nodeCapabilities.value.capabilities),
    controllerCapabilities: controllerCapabilities.value,
    registeredAtMs: questioner.nowMs(),
  });
}

/** Undefined: the driver has that service, but not at this socket. Most say so at that of their node plugin, too. */
async function askController(
  questioner: Questioner,
  endpoint: SocketIdentity,
  name: string,
): Promise<Result<ReadonlySet<number> | undefined>> {
  const method = ControllerService.controllerGetCapabilities;
  const asked = await ask(questioner, endpoint, name, method, {}, QUESTION_MS);
  if (asked.ok) return ok(rpcTypes(asked.value.capabilities));
  return asked.failure.code === 'driver-unimplemented' ? ok(undefined) : asked;
}

/** Probe: no `ready` is ready, false is "still starting, hold the calls". Drivers without Probe are taken. */
async function isReady(
  questioner: Questioner,
  endpoint: SocketIdentity,
  name: string,
): Promise<Result<void>> {
  const method = IdentityService.probe;
  const reply = await questioner.call({ socket: endpoint, method, request: {}, deadlineMs: QUESTION_MS });
  if (reply.kind === 'ok' && reply.reply.ready === false) {
    return fail({
      code: 'driver-busy',
      message: `${name} says it is not ready yet`,
      effect: 'none',
      blocker: name,
    });
  }
  if (reply.kind === 'ok' || (reply.kind === 'status' && reply.status === STATUS_UNIMPLEMENTED))
    return ok(undefined);
  return refused(questioner, reply, name, method);
}

function nodeInfoBreach(info: NodeGetInfoResponse): string | undefined {
  if (info.nodeId === '') return 'NodeGetInfo gave an empty node id';
  if (Buffer.byteLength(info.nodeId) > NODE_ID_BYTES_MAX)
    return `the node id has ${Buffer.byteLength(info.nodeId)} bytes; CSI allows ${NODE_ID_BYTES_MAX}`;
  if (info.maxVolumesPerNode < 0n)
    return `max_volumes_per_node is ${info.maxVolumesPerNode}; CSI allows 0 (no limit) and more`;
  const keys = Object.keys(info.accessibleTopology?.segments ?? {});
  // CSI: keys differ in more than the case of their letters.
  return new Set(keys.map((key) => key.toLowerCase())).size === keys.length
    ? undefined
    : 'two topology keys differ only in upper and lower case';
}

function servicesOf(capabilities: readonly PluginCapability[]): ReadonlySet<number> {
  return new Set(capabilities.flatMap(({ type }) => (type?.$case === 'service' ? [type.value.type] : [])));
}

/** Numbers this build does not know are kept: enumerations of CSI grow. */
function rpcTypes(
  capabilities: readonly { readonly type: { readonly value: { readonly type: number } } | undefined }[],
): ReadonlySet<number> {
  return new Set(capabilities.flatMap(({ type }) => (type === undefined ? [] : [type.value.type])));
}

async function ask<Request, Reply>(
  questioner: Questioner,
  socket: SocketIdentity,
  driver: string,
  method: RemoteMethod<Request, Reply>,
  request: Request,
  deadlineMs: number,
): Promise<Result<Reply>> {
  const reply = await questioner.call({ socket, method, request, deadlineMs });
  if (reply.kind === 'ok') return ok(reply.reply);
  return refused(questioner, reply, driver, method);
}

function refused(
  { hidden = () => ({ secrets: [] }) }: Questioner,
  reply: Parameters<typeof failureOf>[0],
  driver: string,
  { path }: { readonly path: string },
): Result<never> {
  const method = methodName(path);
  return fail(failureOf(reply, { driver, method, direction: 'climbing', ...hidden() }));
}

function invalid(message: string): Result<never> {
  // The text may hold what a stranger sent.
  return fail({ code: 'driver-answer-invalid', message: shown(message), effect: 'none' });
}
