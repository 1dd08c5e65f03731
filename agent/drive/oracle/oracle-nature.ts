/** What a driver says it can do, learnt from the answers that go by. Pure. */
import {
  ControllerServiceCapability_RPC_Type as Controller,
  NodeServiceCapability_RPC_Type as Node,
  PluginCapability_Service_Type as Service,
} from '../../../plugins/csi/wire/generated/csi.ts';
import type { EndedCall } from './oracle-history.ts';
import type { ReplyFields } from './recorded-call.ts';

/** Undefined is not known: then no rule may depend on it. */
export interface DriverNature {
  readonly services: ReadonlySet<number> | undefined;
  readonly node: ReadonlySet<number> | undefined;
  /** Empty for a driver without CONTROLLER_SERVICE. */
  readonly controller: ReadonlySet<number> | undefined;
  readonly nodeId: string | undefined;
  /** The last Probe said that it is still starting. */
  readonly starting: boolean;
}

export const UNKNOWN_NATURE: DriverNature = {
  services: undefined,
  node: undefined,
  controller: undefined,
  nodeId: undefined,
  starting: false,
};

/** What an answer adds; the same nature for one that says nothing. */
export function learn(nature: DriverNature, method: string, { code, reply }: EndedCall): DriverNature {
  if (code !== 0 || reply === undefined) return nature;
  switch (method) {
    case 'GetPluginCapabilities': {
      const services = numbersOf(reply, 'service');
      const hasController = services.has(Service.CONTROLLER_SERVICE);
      const hadNone = nature.services?.has(Service.CONTROLLER_SERVICE) === false;
      // One that came back may be another one: not known until it is asked.
      const known = hadNone ? undefined : nature.controller;
      return { ...nature, services, controller: hasController ? known : new Set() };
    }
    case 'NodeGetCapabilities':
      return { ...nature, node: numbersOf(reply, 'rpc') };
    case 'ControllerGetCapabilities':
      return { ...nature, controller: numbersOf(reply, 'rpc') };
    case 'NodeGetInfo':
      return { ...nature, nodeId: reply.nodeId };
    case 'Probe':
      return { ...nature, starting: reply.ready === false };
    default:
      return nature;
  }
}

/** Numbers this build does not know are kept: enumerations of CSI grow. */
export function numbersOf({ capabilities = [] }: ReplyFields, kind: 'service' | 'rpc'): ReadonlySet<number> {
  return new Set(
    capabilities.flatMap(({ type }) => {
      return type?.$case === kind && type.value !== undefined ? [type.value.type] : [];
    }),
  );
}

/** True, false, or undefined when it is not known. */
export function stages({ node }: DriverNature): boolean | undefined {
  return node?.has(Node.STAGE_UNSTAGE_VOLUME);
}

/** True, false, or undefined when it is not known. */
export function attaches({ controller }: DriverNature): boolean | undefined {
  return controller?.has(Controller.PUBLISH_UNPUBLISH_VOLUME);
}

/** Which capability each call needs by the CSI specification; a call that is not named here is never gated. */
export const NODE_GATES: Readonly<Record<string, readonly number[]>> = {
  NodeStageVolume: [Node.STAGE_UNSTAGE_VOLUME],
  NodeUnstageVolume: [Node.STAGE_UNSTAGE_VOLUME],
  NodeGetVolumeStats: [Node.GET_VOLUME_STATS, Node.VOLUME_CONDITION],
  NodeExpandVolume: [Node.EXPAND_VOLUME],
  NodeGetVolumeHealth: [Node.GET_VOLUME_HEALTH],
  NodeGetStorageHealth: [Node.GET_STORAGE_HEALTH],
};

/** As NODE_GATES; of those with none, CONTROLLER_SERVICE alone is needed. */
export const CONTROLLER_GATES: Readonly<Record<string, readonly number[]>> = {
  CreateVolume: [Controller.CREATE_DELETE_VOLUME],
  DeleteVolume: [Controller.CREATE_DELETE_VOLUME],
  ControllerPublishVolume: [Controller.PUBLISH_UNPUBLISH_VOLUME],
  ControllerUnpublishVolume: [Controller.PUBLISH_UNPUBLISH_VOLUME],
  ListVolumes: [Controller.LIST_VOLUMES],
  GetCapacity: [Controller.GET_CAPACITY],
  CreateSnapshot: [Controller.CREATE_DELETE_SNAPSHOT],
  DeleteSnapshot: [Controller.CREATE_DELETE_SNAPSHOT],
  ListSnapshots: [Controller.LIST_SNAPSHOTS],
  GetSnapshot: [Controller.GET_SNAPSHOT],
  ControllerExpandVolume: [Controller.EXPAND_VOLUME],
  ControllerGetVolume: [Controller.GET_VOLUME],
  ControllerModifyVolume: [Controller.MODIFY_VOLUME],
  ControllerGetVolumeHealth: [Controller.GET_VOLUME_HEALTH],
  ControllerListVolumeHealth: [Controller.LIST_VOLUME_HEALTH],
  ValidateVolumeCapabilities: [],
  ControllerGetCapabilities: [],
};
