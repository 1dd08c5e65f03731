/** The ladder of a CSI volume: at most one RPC per rung, and after each the kernel is asked. */
import type { Host } from '../../mount/host.ts';
import { createMounter } from '../../mount/mounter.ts';
import { type Attachment, GRANT_LANE } from './attach/attachment.ts';
import { createCalledAttachment } from './attach/called-attachment.ts';
import { afterCalled } from './attach/after-called.ts';
import { verifyClean } from './block/clean-device.ts';
import { isGroupTold } from './call/fs-group.ts';
import type { Hidden } from './wire/status.ts';
import { hiddenFromAll, type KnownVolume } from './call/hidden-words.ts';
import { createSecretMemory } from './call/secret-memory.ts';
import { createCallLanes } from './call/volume-call-queue.ts';
import { createVolumeRpc } from './call/volume-rpc.ts';
import { createCsiPlaces } from './csi-places.ts';
import { type CsiSurroundings, csiSpec, reachableHere } from './csi-surroundings.ts';
import type { DriverRegistry } from './driver/driver.ts';
import { expandVolume } from './expansion.ts';
import { publish, unpublish } from './csi-publishing.ts';
import { createStagedMount } from './staged-mount.ts';
import { stage, unstage } from './csi-staging.ts';
import { createStatistics, type Statistics } from './statistics.ts';
import { NodeServiceCapability_RPC_Type as NodeCapability } from './wire/generated/csi.ts';
import type { Layout } from '../layout/layout.ts';
import type { Needs, VolumeCall, VolumePlugin } from '../plugin.ts';
import { createDevicePublication } from '../device/device-publication.ts';
import { CSI_PLUGIN, type CsiVolumeSpec, type VolumeSpec } from '../volume.ts';

/** The kubelet's csiTimeout; per call here, per step there. */
const CALL_DEADLINE_MS = 120_000;

export interface CsiPluginParts {
  readonly host: Host;
  readonly layout: Layout;
  /** Goes into vol_data.json and the attachment id, as the kubelet's node name does. */
  readonly nodeName: string;
  readonly drivers: Pick<DriverRegistry, 'get'> & { suspect(driver: string): void };
  readonly deadlineMs?: number;
  /** May publish and unpublish of one volume at different targets overlap in this driver? By default not. */
  readonly parallelPublish: (driver: string) => boolean;
  /** May this driver be sent `force` and `fence` for a volume in quarantine? Only by its name, by default never. */
  readonly forceFields?: (driver: string) => boolean;
  /** A volume is forgotten that the storage may still have attached to this node, which it knows by that id. */
  readonly onUndetached?: (spec: CsiVolumeSpec, node: string) => void;
  /** Who makes and ends attachments; by default this node calls the driver's controller service. */
  readonly attachment?: Attachment | undefined;
  /**
   * What is here of this driver, or of any: its secrets must not be told where a driver speaks of no volume; by default
   * nothing.
   */
  readonly volumesHere?: (driver?: string) => readonly VolumeHere[];
}

/** A volume of a driver, as it stands and as the wish has it. */
export type VolumeHere = Omit<KnownVolume, 'spec'> & { readonly spec: VolumeSpec };

/** All CSI volumes, and what a driver says of the storage behind it, which is no volume. */
export interface CsiPlugin extends VolumePlugin, Pick<Statistics, 'storageHealth'> {
  /** What must not be shown of what this driver says, or any: it was given it for its volumes that are here. */
  readonly hidden: (driver?: string) => Hidden;
}

/**
 * Guarantees, besides the contract of VolumePlugin: one CSI call in flight per volume, with nothing of ours between
 * the end of one and the start of the next; a staged mount costs two RPCs; retries send the same bytes.
 */
export function createCsiPlugin(parts: CsiPluginParts): CsiPlugin {
  const { host, layout, drivers, nodeName, parallelPublish } = parts;
  const lanes = createCallLanes();
  const memory = createSecretMemory();
  const deadlineMs = parts.deadlineMs ?? CALL_DEADLINE_MS;
  const inTurn = createVolumeRpc({ host, drivers, lanes, deadlineMs, memory });
  const volumesHere = (driver?: string): readonly KnownVolume[] =>
    (parts.volumesHere?.(driver) ?? []).map((one) => ({ ...one, spec: csiSpec(one.spec) }));
  const { statistics, storageHealth } = createStatistics({
    ...{ host, layout, drivers, lanes, memory, volumesOf: volumesHere },
  });
  const mayForce = (driver: string): boolean => parts.forceFields?.(driver) ?? false;
  const onUndetached = parts.onUndetached ?? (() => {});
  const called = createCalledAttachment({ drivers, inTurn, mayFence: mayForce, onUndetached });
  const attachment = parts.attachment === undefined ? called : afterCalled(parts.attachment, called);
  const csi: CsiSurroundings = {
    ...{ host, layout, nodeName, drivers, inTurn, parallelPublish, mayForce },
    places: createCsiPlaces(host, layout, nodeName),
    stagedMount: createStagedMount(host),
    block: createDevicePublication({ host, root: layout.root, mounter: createMounter(host, layout.root) }),
  };

  async function attach(call: VolumeCall) {
    const spec = csiSpec(call.spec);
    const reachable = reachableHere(csi, spec);
    return reachable.ok ? attachment.attach(spec, call) : reachable;
  }

  return memory.remembering({
    name: CSI_PLUGIN,
    looksFirst: (spec) => csiSpec(spec).mode !== 'Block',
    needs: (spec) => needsOf(csiSpec(spec), drivers, attachment),
    lane: (spec) => csiSpec(spec).driver,
    grantLane: parts.attachment === undefined ? undefined : GRANT_LANE,
    attach,
    detach: (call) => attachment.detach(csiSpec(call.spec), call),
    stage: (call) => stage(csi, call),
    unstage: (call) => unstage(csi, call),
    publish: (call) => publish(csi, call),
    unpublish: (call) => unpublish(csi, call),
    expand: (call) => expandVolume(inTurn, layout, csiSpec(call.spec), call),
    statistics,
    storageHealth,
    hidden: (driver) => hiddenFromAll(memory, volumesHere(driver)),
    verifyClean: (devices) => verifyClean(host, devices),
  });
}

function needsOf(
  spec: CsiVolumeSpec,
  drivers: Pick<DriverRegistry, 'get'>,
  attachment: Attachment,
): Needs | undefined {
  const driver = drivers.get(spec.driver);
  if (driver === undefined) return undefined;
  // Neither attached nor staged, whatever the driver can do, and no claim ever asks for more (KEP-596).
  if (spec.lifecycle === 'Ephemeral') return { attach: false, stage: false, expand: false };
  const attach = attachment.isNeeded(spec);
  if (attach === undefined) return undefined;
  return {
    attach,
    node: attach ? attachment.node?.(spec) : undefined,
    stage: driver.nodeCapabilities.has(NodeCapability.STAGE_UNSTAGE_VOLUME),
    expand: driver.nodeCapabilities.has(NodeCapability.EXPAND_VOLUME),
    tellsGroup: isGroupTold(driver, spec),
  };
}
