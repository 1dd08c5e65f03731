/** The ladder of a CSI volume: at most one RPC per rung, and after each the kernel is asked. */
import { assert, type Failure, fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host, RemoteMethod } from '../../mount/host.ts';
import type { Layout } from '../layout.ts';
import type { PublicationCall, VolumeCall, VolumePlugin } from '../plugin.ts';
import { removeEmptyPodDirectories } from '../pod-directory.ts';
import { type SecretData, Sensitive } from '../sensitive.ts';
import { doubtful } from '../steps.ts';
import { type CsiVolumeSpec, type PublicationSpec, SPEC_PLUGIN, type VolumeSpec } from '../volume.ts';
import { createCallLanes, type Sharing } from './call-lane.ts';
import type { DriverInstance, DriverRegistry } from './driver.ts';
import {
  ControllerServiceCapability_RPC_Type as ControllerCapability,
  ControllerService,
  NodeServiceCapability_RPC_Type as NodeCapability,
  NodeService,
} from './generated/csi.ts';
import {
  controllerPublishRequest,
  controllerUnpublishRequest,
  mapFits,
  publishRequest,
  stageRequest,
} from './request.ts';
import { type CallContext, failureOf, isUnreachable } from './status.ts';
import {
  attachmentId,
  type Before,
  isAsBefore,
  prepare,
  remove,
  type VolumeDirectory,
} from './volume-directory.ts';

/** The kubelet's csiTimeout; per call here, per step there. */
export const CALL_DEADLINE_MS = 120_000;

export interface CsiPluginParts {
  readonly host: Host;
  readonly layout: Layout;
  /** Goes into vol_data.json and the attachment id, as the kubelet's node name does. */
  readonly nodeName: string;
  readonly drivers: Pick<DriverRegistry, 'get'> & { suspect(driver: string): void };
  readonly deadlineMs?: number;
  /** May publish and unpublish of one volume at different targets overlap in this driver? By default not. */
  readonly parallelPublish: (driver: string) => boolean;
}

/** One RPC to be made when its turn comes; the request is built then, from the driver as it is then. */
interface Rpc<Request, Reply> {
  readonly method: RemoteMethod<Request, Reply>;
  readonly build: (driver: DriverInstance) => Result<Request>;
  readonly direction: CallContext['direction'];
  readonly sharing: Sharing;
  readonly secrets: SecretData | undefined;
  /** Asked again when a call that went before in the lane failed: does the rung below still hold? */
  readonly recheck?: () => Promise<Result<void>>;
}

/**
 * Guarantees, besides the contract of VolumePlugin: one CSI call in flight per volume, with nothing of ours between
 * the end of one and the start of the next; a staged mount costs two RPCs; retries send the same bytes.
 */
export function createCsiPlugin(parts: CsiPluginParts): VolumePlugin {
  const { host, layout, drivers } = parts;
  const deadlineMs = parts.deadlineMs ?? CALL_DEADLINE_MS;
  const lanes = createCallLanes();

  /** In the lane. Assumes: nothing the answer depends on was read before. */
  async function ask<Request, Reply>(
    spec: CsiVolumeSpec,
    call: VolumeCall,
    rpc: Rpc<Request, Reply>,
  ): Promise<Result<Reply>> {
    if (!call.stillWanted()) return noLongerWanted();
    const driver = drivers.get(spec.driver);
    if (driver === undefined) return notRegistered(spec.driver);
    const request = rpc.build(driver);
    if (!request.ok) return request;
    const { method } = rpc;
    const reply = await host.call({ socket: driver.endpoint, method, request: request.value, deadlineMs });
    if (reply.kind === 'ok') return ok(reply.reply);
    if (isUnreachable(reply)) drivers.suspect(spec.driver);
    return fail(
      failureOf(reply, {
        driver: spec.driver,
        method: method.path.slice(method.path.lastIndexOf('/') + 1),
        direction: rpc.direction,
        secrets: [rpc.secrets, secretMountOptions(spec)],
      }),
    );
  }

  async function inTurn<Request, Reply>(
    spec: CsiVolumeSpec,
    call: VolumeCall,
    rpc: Rpc<Request, Reply>,
  ): Promise<Result<Reply>> {
    const ground = lanes.disturbances(spec.id);
    const first = await lanes.run(spec.id, rpc.sharing, async () => {
      // Calls that went well have nothing of ours between them; behind one that failed the ground is looked at again.
      if (rpc.recheck !== undefined && lanes.disturbances(spec.id) !== ground) {
        const holds = await rpc.recheck();
        if (!holds.ok) return holds;
      }
      const result = await ask(spec, call, rpc);
      if (!result.ok) lanes.disturb(spec.id);
      if (rpc.sharing === 'shared' && isBusy(result)) lanes.serialise(spec.id);
      return result;
    });
    if (rpc.sharing === 'alone' || !isBusy(first)) return first;
    // ABORTED means "another call is pending": alone in the lane there is none of ours. Whatever the second
    // call says, the first one may still take effect.
    return doubtful(await lanes.run(spec.id, 'alone', () => ask(spec, call, rpc)));
  }

  function sharingOf(spec: CsiVolumeSpec): Sharing {
    return parts.parallelPublish(spec.driver) ? 'shared' : 'alone';
  }

  async function attach(call: VolumeCall) {
    const spec = csi(call.spec);
    const attached = await inTurn(spec, call, {
      method: ControllerService.controllerPublishVolume,
      build: (driver) => controllerPublishRequest(spec, call, driver),
      direction: 'climbing',
      sharing: 'alone',
      secrets: call.secrets.controllerPublish,
    });
    if (!attached.ok) return attached;
    const { publishContext } = attached.value;
    if (mapFits(publishContext)) return ok({ publishContext });
    const message = 'ControllerPublishVolume: the publish context has more than 4 KiB';
    return fail({ code: 'driver-answer-invalid', message, effect: 'unknown', blocker: spec.driver });
  }

  async function detach(call: VolumeCall): Promise<Result<void>> {
    const spec = csi(call.spec);
    const driver = drivers.get(spec.driver);
    // Found on disk, a volume may or may not be attached: a driver that does not attach settles that.
    if (driver !== undefined && !attaches(driver)) return ok(undefined);
    const detached = await inTurn(spec, call, {
      method: ControllerService.controllerUnpublishVolume,
      build: (driver) => controllerUnpublishRequest(spec, call, driver),
      direction: 'teardown',
      sharing: 'alone',
      secrets: call.secrets.controllerPublish,
    });
    return detached.ok ? ok(undefined) : detached;
  }

  async function stage(call: VolumeCall) {
    const spec = csi(call.spec);
    const directory = deviceDirectory(layout, spec);
    const prepared = await prepareFor(spec, directory);
    if (!prepared.ok) return prepared;
    const staged = await inTurn(spec, call, {
      method: NodeService.nodeStageVolume,
      build: (driver) => stageRequest(spec, call, driver, directory.mountPoint),
      direction: 'climbing',
      sharing: 'alone',
      secrets: call.secrets.stage,
    });
    if (!staged.ok) return refused(directory, prepared.value, staged.failure);
    const mount = await host.lookUpMount(directory.mountPoint);
    if (!mount.ok) return doubtful<never>(mount);
    return ok({ stagedMount: mount.value.mounted ? identityOf(mount.value) : undefined });
  }

  async function publish(call: PublicationCall) {
    const published = await tryPublish(call);
    // Promised: nothing changed. The pod's directories made on the way are no volume, so no unpublish would come.
    if (!published.ok && published.failure.effect === 'none') {
      await removeEmptyPodDirectories(host, layout, call.publication.pod.uid);
    }
    return published;
  }

  async function tryPublish(call: PublicationCall) {
    const spec = csi(call.spec);
    const directory = publicationDirectory(parts, spec, call.publication);
    const staging = layout.stagingPath(spec.driver, spec.volumeHandle);
    const reusable = await stagedMountHolds(call, staging);
    if (!reusable.ok) return reusable;
    const prepared = await prepareFor(spec, directory);
    if (!prepared.ok) return prepared;
    const published = await inTurn(spec, call, {
      method: NodeService.nodePublishVolume,
      build: (driver) => publishRequest(spec, call, driver, { staging, target: directory.mountPoint }),
      direction: 'climbing',
      sharing: sharingOf(spec),
      secrets: call.secrets.publish,
      recheck: () => stagedMountHolds(call, staging),
    });
    if (!published.ok) return refused(directory, prepared.value, published.failure);
    const mount = await host.lookUpMount(directory.mountPoint);
    if (!mount.ok) return doubtful<never>(mount);
    if (mount.value.mounted) return ok({ mount: identityOf(mount.value) });
    const message = `NodePublishVolume said OK, but nothing is mounted at ${directory.mountPoint}`;
    return fail({ code: 'published-not-mounted', message, effect: 'unknown', blocker: spec.driver });
  }

  async function unpublish(call: PublicationCall): Promise<Result<void>> {
    const spec = csi(call.spec);
    const directory = publicationDirectory(parts, spec, call.publication);
    const unpublished = await inTurn(spec, call, {
      method: NodeService.nodeUnpublishVolume,
      build: () => ok({ volumeId: spec.volumeHandle, targetPath: directory.mountPoint }),
      direction: 'teardown',
      sharing: sharingOf(spec),
      secrets: undefined,
    });
    if (!unpublished.ok && !mayBeGone(unpublished.failure)) return unpublished;
    const removed = await takeAway(spec, directory, 'unpublished-still-mounted', 'NodeUnpublishVolume');
    return removed.ok
      ? doubtful(await removeEmptyPodDirectories(host, layout, call.publication.pod.uid))
      : removed;
  }

  async function unstage(call: VolumeCall): Promise<Result<void>> {
    const spec = csi(call.spec);
    // Decided when the volume was set up: a driver that can stage today did not stage this one (DR-16).
    if (!call.facts.needs.stage) return ok(undefined);
    const directory = deviceDirectory(layout, spec);
    const unstaged = await inTurn(spec, call, {
      method: NodeService.nodeUnstageVolume,
      build: () => ok({ volumeId: spec.volumeHandle, stagingTargetPath: directory.mountPoint }),
      direction: 'teardown',
      sharing: 'alone',
      secrets: undefined,
    });
    // A driver that came back without staging has nothing to unstage; the kernel still has the last word.
    const canStage =
      drivers.get(spec.driver)?.nodeCapabilities.has(NodeCapability.STAGE_UNSTAGE_VOLUME) ?? true;
    const isUnknownThere = !unstaged.ok && !canStage && unstaged.failure.code === 'driver-unimplemented';
    if (!unstaged.ok && !isUnknownThere && !mayBeGone(unstaged.failure)) return unstaged;
    return takeAway(spec, directory, 'unstaged-still-mounted', 'NodeUnstageVolume');
  }

  /** No directory is made for a driver that is not there: nothing would remove it. */
  async function prepareFor(spec: CsiVolumeSpec, directory: VolumeDirectory): Promise<Result<Before>> {
    return drivers.get(spec.driver) === undefined ? notRegistered(spec.driver) : prepare(host, directory);
  }

  /**
   * A staged mount that went away leaves an empty directory, and the pod would write to the node's own disk; another
   * device under it is another volume's data (decision 11).
   */
  async function stagedMountHolds(call: VolumeCall, staging: AbsolutePath): Promise<Result<void>> {
    const { needs, stagedMount } = call.facts;
    if (!needs.stage || stagedMount === undefined) return ok(undefined);
    const now = await host.lookUpMount(staging);
    if (!now.ok) return fail({ ...now.failure, effect: 'none' });
    if (!now.value.mounted) {
      const message = `the volume was staged, but nothing is mounted at ${staging} now`;
      return fail({ code: 'staged-not-mounted', message, effect: 'none', blocker: staging });
    }
    if (now.value.device === stagedMount.device) return ok(undefined);
    const message = `staged as device ${stagedMount.device}, but ${staging} is device ${now.value.device} now`;
    return fail({ code: 'device-changed', message, effect: 'none', blocker: staging });
  }

  /** The promise of effect `none` is kept or withdrawn: drivers mount and then answer with an error, too (DR-04). */
  async function refused(
    directory: VolumeDirectory,
    before: Before,
    failure: Failure,
  ): Promise<Result<never>> {
    if (failure.effect === 'none' && !(await isAsBefore(host, directory, before)))
      return doubtful<never>(fail(failure));
    return fail(failure);
  }

  /** The kernel is the judge of a teardown, OK and NOT_FOUND alike (GR-05); then what is left is ours to remove. */
  async function takeAway(
    spec: CsiVolumeSpec,
    directory: VolumeDirectory,
    code: 'unpublished-still-mounted' | 'unstaged-still-mounted',
    method: string,
  ): Promise<Result<void>> {
    const mountId = await host.mountIdOf(directory.mountPoint);
    if (!mountId.ok) return doubtful<never>(mountId);
    if (mountId.value === undefined) return remove(host, directory);
    const holders = await host.findHolders(directory.mountPoint);
    const blocker = holders.ok && holders.value.length > 0 ? holders.value.join(', ') : spec.driver;
    const message = `${method} was answered, but ${directory.mountPoint} is still mounted`;
    return fail({ code, message, effect: 'unknown', blocker });
  }

  return {
    name: SPEC_PLUGIN.csi,
    needs: (spec) => {
      const { driver: name, attachRequired } = csi(spec);
      const driver = drivers.get(name);
      if (driver === undefined) return undefined;
      return {
        attach: attaches(driver) && attachRequired !== false,
        stage: driver.nodeCapabilities.has(NodeCapability.STAGE_UNSTAGE_VOLUME),
      };
    },
    lane: (spec) => csi(spec).driver,
    attach,
    detach,
    stage,
    unstage,
    publish,
    unpublish,
  };
}

function attaches(driver: DriverInstance): boolean {
  return driver.controllerCapabilities?.has(ControllerCapability.PUBLISH_UNPUBLISH_VOLUME) ?? false;
}

function csi(spec: VolumeSpec): CsiVolumeSpec {
  assert(spec.kind === 'csi', 'the CSI plugin is given CSI volumes');
  return spec;
}

function deviceDirectory(layout: Layout, spec: CsiVolumeSpec): VolumeDirectory {
  return {
    path: layout.deviceDirectory(spec.driver, spec.volumeHandle),
    mountPoint: layout.stagingPath(spec.driver, spec.volumeHandle),
    mountPointMadeBy: 'us',
    data: { driverName: spec.driver, volumeHandle: spec.volumeHandle },
  };
}

function publicationDirectory(
  { layout, nodeName }: CsiPluginParts,
  spec: CsiVolumeSpec,
  publication: PublicationSpec,
): VolumeDirectory {
  return {
    path: layout.volumeDirectory(spec, publication),
    mountPoint: layout.target(spec, publication),
    mountPointMadeBy: 'driver',
    data: {
      specVolID: publication.specName,
      volumeHandle: spec.volumeHandle,
      driverName: spec.driver,
      nodeName,
      attachmentID: attachmentId(spec.volumeHandle, spec.driver, nodeName),
      volumeLifecycleMode: 'Persistent',
    },
  };
}

const SECRET_OPTION = /^[^=]*(?:pass|secret|cred|token|key)[^=]*=(.+)$/i;

/** Mount options may hold secrets (CSI: "may contain sensitive information"); file servers take passwords there. */
function secretMountOptions(spec: CsiVolumeSpec): SecretData | undefined {
  const values = spec.mountOptions.map((option) => SECRET_OPTION.exec(option)?.[1] ?? '');
  return values.every((value) => value === '')
    ? undefined
    : new Sensitive(Object.fromEntries(Object.entries(values)));
}

function identityOf({ mountId, device }: { readonly mountId: number; readonly device: string }) {
  return { mountId, device };
}

function isBusy(result: Result<unknown>): boolean {
  return !result.ok && result.failure.code === 'driver-busy';
}

function mayBeGone(failure: Failure): boolean {
  return failure.code === 'driver-not-found';
}

function notRegistered(driver: string): Result<never> {
  const message = `driver ${driver} is not registered`;
  return fail({ code: 'driver-not-registered', message, effect: 'none', blocker: driver });
}

function noLongerWanted(): Result<never> {
  return fail({
    code: 'no-longer-wanted',
    message: 'the wish changed while the call waited',
    effect: 'none',
  });
}
