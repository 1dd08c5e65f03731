/** A CSI driver and its registrar, real servers on real sockets, that do as they are told. */
import { mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  ControllerService,
  ControllerServiceCapability_RPC_Type as ControllerCapability,
  IdentityService,
  NodeService,
  NodeServiceCapability_RPC_Type as NodeCapability,
  PluginCapability_Service_Type as PluginService,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { RegistrationService } from '../../../plugins/csi/wire/generated/pluginregistration.ts';
import { type GrpcServer, GrpcStatus } from '../../../plugins/csi/wire/grpc-service.ts';
import { serveGrpc } from '../../../plugins/csi/wire/grpc.ts';
import type { SocketHost } from './socket-host.ts';

export const DRIVER = 'scripted.mooring.test';

type Method =
  | 'GetPluginInfo'
  | 'Probe'
  | 'NodeGetInfo'
  | 'NodeStageVolume'
  | 'NodeUnstageVolume'
  | 'NodePublishVolume'
  | 'NodeUnpublishVolume'
  | 'NodeExpandVolume'
  | 'ControllerGetCapabilities'
  | 'ControllerPublishVolume'
  | 'ControllerUnpublishVolume';

export interface Script {
  name: string;
  nodeId: string;
  volumesMax: bigint;
  ready: boolean | undefined;
  nodeCapabilities: number[];
  /** Undefined: no controller service. */
  controllerCapabilities: number[] | undefined;
  segments: Record<string, string>;
  /** VOLUME_ACCESSIBILITY_CONSTRAINTS; undefined: when there are segments. */
  constrained: boolean | undefined;
  publishContext: Record<string, string>;
  /** What NodeExpandVolume answers. */
  capacityBytes: bigint;
  /** Before the method does anything: throw, wait, or nothing. */
  before: (method: Method) => Promise<void> | void;
  /** OK without the effect. */
  lies: boolean;
  /** The effect, and then an error. */
  after: (method: Method) => void;
}

export function script(changes: Partial<Script> = {}): Script {
  return {
    name: DRIVER,
    nodeId: 'node-1',
    volumesMax: 0n,
    ready: undefined,
    nodeCapabilities: [NodeCapability.STAGE_UNSTAGE_VOLUME],
    controllerCapabilities: undefined,
    segments: {},
    constrained: undefined,
    publishContext: {},
    capacityBytes: 0n,
    before: () => undefined,
    lies: false,
    after: () => undefined,
    ...changes,
  };
}

export const CAPABILITY = { node: NodeCapability, controller: ControllerCapability };

export function refusing(method: Method, code: number, message = 'no'): (asked: Method) => void {
  return (asked) => {
    if (asked === method) throw new GrpcStatus(code, message);
  };
}

const rpc = (type: number) => ({ type: { $case: 'rpc' as const, value: { type: type as never } } });
const service = (type: number) => ({ type: { $case: 'service' as const, value: { type: type as never } } });

export function serveDriver(host: SocketHost, socket: string, plan: Script): Promise<GrpcServer> {
  mkdirSync(dirname(socket), { recursive: true, mode: 0o750 });
  async function act<T>(method: Method, effect: () => void, reply: T): Promise<T> {
    await plan.before(method);
    if (!plan.lies) effect();
    plan.after(method);
    return reply;
  }
  const nothing = () => undefined;
  return serveGrpc(socket, [
    {
      definition: IdentityService,
      implementation: {
        getPluginInfo: () =>
          act('GetPluginInfo', nothing, { name: plan.name, vendorVersion: '1.2.3', manifest: {} }),
        probe: () => act('Probe', nothing, { ready: plan.ready }),
        getPluginCapabilities: async () => ({
          capabilities: [
            ...(plan.controllerCapabilities === undefined ? [] : [service(PluginService.CONTROLLER_SERVICE)]),
            ...((plan.constrained ?? Object.keys(plan.segments).length > 0)
              ? [service(PluginService.VOLUME_ACCESSIBILITY_CONSTRAINTS)]
              : []),
          ],
        }),
      },
    },
    {
      definition: NodeService,
      implementation: {
        nodeGetInfo: () =>
          act('NodeGetInfo', nothing, {
            nodeId: plan.nodeId,
            maxVolumesPerNode: plan.volumesMax,
            accessibleTopology: { segments: plan.segments },
          }),
        nodeGetCapabilities: async () => ({ capabilities: plan.nodeCapabilities.map(rpc) }),
        nodeExpandVolume: () => act('NodeExpandVolume', nothing, { capacityBytes: plan.capacityBytes }),
        nodeStageVolume: ({ stagingTargetPath }) =>
          act('NodeStageVolume', () => mountOnce(host, stagingTargetPath), {}),
        nodeUnstageVolume: ({ stagingTargetPath }) =>
          act('NodeUnstageVolume', () => host.mounts.delete(stagingTargetPath), {}),
        nodePublishVolume: ({ targetPath }) =>
          act(
            'NodePublishVolume',
            () => {
              // The parent must be there and the target not.
              if (!host.mounts.has(targetPath)) mkdirSync(targetPath);
              mountOnce(host, targetPath);
            },
            {},
          ),
        nodeUnpublishVolume: ({ targetPath }) =>
          act(
            'NodeUnpublishVolume',
            () => {
              host.mounts.delete(targetPath);
              rmSync(targetPath, { recursive: true, force: true });
            },
            {},
          ),
      },
    },
    {
      definition: ControllerService,
      implementation: {
        controllerGetCapabilities: () =>
          act('ControllerGetCapabilities', nothing, {
            capabilities: (plan.controllerCapabilities ?? []).map(rpc),
          }),
        controllerPublishVolume: () =>
          act('ControllerPublishVolume', nothing, { publishContext: plan.publishContext }),
        controllerUnpublishVolume: () => act('ControllerUnpublishVolume', nothing, {}),
      },
    },
  ]);
}

function mountOnce(host: SocketHost, path: string): void {
  if (!host.mounts.has(path)) host.plantMount(path);
}

export interface Registrar extends GrpcServer {
  /** What the agent said, in order: '' for registered, else the error. */
  readonly verdicts: readonly string[];
}

export async function serveRegistrar(
  socket: string,
  says: {
    name?: string;
    endpoint: string;
    type?: string;
    versions?: string[];
    before?: () => Promise<void> | void;
    beforeVerdict?: () => Promise<void> | void;
  },
): Promise<Registrar> {
  const verdicts: string[] = [];
  const server = await serveGrpc(socket, [
    {
      definition: RegistrationService,
      implementation: {
        getInfo: async () => {
          await says.before?.();
          const { type = 'CSIPlugin', name = DRIVER, endpoint, versions = ['1.0.0'] } = says;
          return { type, name, endpoint, supportedVersions: versions };
        },
        notifyRegistrationStatus: async ({ pluginRegistered, error }) => {
          await says.beforeVerdict?.();
          verdicts.push(pluginRegistered ? '' : error);
          return {};
        },
      },
    },
  ]);
  return { ...server, verdicts };
}
