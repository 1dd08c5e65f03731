/** The ladder of a CSI volume: at most one RPC per rung, and after each the kernel is asked. */
import { assert, fail, ok, type Result } from '../../mount/failure.ts';
import type { Host, MountIdentity } from '../../mount/host.ts';
import { createMounter } from '../../mount/mounter.ts';
import type { RemoteMethod } from '../../mount/remote-call.ts';
import type { Attachment } from './attach/attachment.ts';
import { createCalledAttachment } from './attach/called-attachment.ts';
import { createBlockPublication } from './block/block-publication.ts';
import { verifyClean } from './block/clean-device.ts';
import { FORCE_FIELD, withFlag } from './call/force-field.ts';
import { applyFsGroup } from './call/fs-group.ts';
import { publishRequest, stageRequest } from './call/request.ts';
import { createSecretMemory } from './call/secret-memory.ts';
import { tokenSecrets } from './call/service-account-tokens.ts';
import { createCallLanes, type Sharing } from './call/volume-call-queue.ts';
import type { DriverPath, Prepared } from './call/volume-directory.ts';
import { createVolumeRpc, mayBeGone, noLongerWanted, notRegistered } from './call/volume-rpc.ts';
import { createCsiPlaces } from './csi-places.ts';
import type { DriverInstance, DriverRegistry } from './driver/driver.ts';
import { reachableFrom } from './driver/topology.ts';
import { expandVolume } from './expansion.ts';
import { publishedMountAt, stagedMountAt } from './mount-proof.ts';
import { heldAt, refused, takeAway } from './place-outcome.ts';
import { createStagedMount } from './staged-mount.ts';
import { createStatistics, type Statistics } from './statistics.ts';
import { NodeService, NodeServiceCapability_RPC_Type as NodeCapability } from './wire/generated/csi.ts';
import type { Layout } from '../layout/layout.ts';
import { removeEmptyPodDirectories } from '../layout/pod-directory.ts';
import type { Needs, PublicationCall, VolumeCall, VolumePlugin } from '../plugin.ts';
import { doubtful } from '../steps.ts';
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
  /** Who makes and ends attachments; by default this node calls the driver's controller service. */
  readonly attachment?: Attachment | undefined;
}

/** All CSI volumes, and what a driver says of the storage behind it, which is no volume. */
export type CsiPlugin = VolumePlugin & Pick<Statistics, 'storageHealth'>;

/**
 * Guarantees, besides the contract of VolumePlugin: one CSI call in flight per volume, with nothing of ours between
 * the end of one and the start of the next; a staged mount costs two RPCs; retries send the same bytes.
 */
export function createCsiPlugin(parts: CsiPluginParts): CsiPlugin {
  const { host, layout, drivers, nodeName } = parts;
  const lanes = createCallLanes();
  const memory = createSecretMemory();
  const deadlineMs = parts.deadlineMs ?? CALL_DEADLINE_MS;
  const inTurn = createVolumeRpc({ host, drivers, lanes, deadlineMs, memory });
  const { statistics, storageHealth } = createStatistics({ host, layout, drivers, lanes, memory });
  const places = createCsiPlaces(host, layout, nodeName);
  const stagedMount = createStagedMount(host);
  const mayForce = (driver: string): boolean => parts.forceFields?.(driver) ?? false;
  const attachment = parts.attachment ?? createCalledAttachment({ drivers, inTurn, mayFence: mayForce });
  const block = createBlockPublication(host, layout, createMounter(host, layout.root));

  function sharingOf(spec: CsiVolumeSpec): Sharing {
    return parts.parallelPublish(spec.driver) ? 'shared' : 'alone';
  }

  /** The method as this call may use it: in quarantine, and for a driver that was opted in, with `force`. */
  function forced<Request, Reply>(
    method: RemoteMethod<Request, Reply>,
    { spec, force }: VolumeCall,
  ): RemoteMethod<Request, Reply> {
    return force && mayForce(csi(spec).driver) ? withFlag(method, FORCE_FIELD) : method;
  }

  async function attach(call: VolumeCall) {
    const spec = csi(call.spec);
    const reachable = reachableHere(spec);
    return reachable.ok ? attachment.attach(spec, call) : reachable;
  }

  async function stage(call: VolumeCall) {
    const spec = csi(call.spec);
    const place = places.staging(spec);
    const prepared = await prepareFor(spec, place);
    if (!prepared.ok) return prepared;
    const staged = await inTurn(spec, call, {
      method: NodeService.nodeStageVolume,
      build: (driver) => stageRequest(spec, call, driver, place.path),
      direction: 'climbing',
      sharing: 'alone',
    });
    if (!staged.ok) return refused(prepared.value, staged.failure);
    const wasMounted = prepared.value.mountedBefore || call.facts.stagedMount !== undefined;
    const mount = await stagedMountAt(host, { path: place.path, driver: spec.driver, wasMounted });
    if (!mount.ok) return mount;
    const wasThere = prepared.value.mountedBefore;
    const serving = stagedMount.isMade(call, place.path, { mount: mount.value, wasThere });
    return serving.ok ? ok({ stagedMount: mount.value }) : serving;
  }

  async function publish(call: PublicationCall) {
    const published = await tryPublish(call);
    // Promised: nothing changed. The pod's directories made on the way are no volume, so no unpublish would come. A
    // republish finds them made, and in use.
    if (!published.ok && published.failure.effect === 'none' && !call.refresh) {
      await removeEmptyPodDirectories(host, layout, call.publication.pod.uid);
    }
    return published;
  }

  async function tryPublish(call: PublicationCall): Promise<Result<{ readonly mount: MountIdentity }>> {
    const spec = csi(call.spec);
    const { publication } = call;
    const place = places.publication(spec, publication);
    const staging = layout.stagingPath(spec);
    // First, and elsewhere: what hangs on it must not keep others from being looked at.
    const looks = stagedMount.looksFor(call, staging);
    const reusable = await looks.first();
    if (!reusable.ok) return reusable;
    const prepared = await prepareFor(spec, place);
    if (!prepared.ok) return prepared;
    let asked: DriverInstance | undefined;
    const published = await inTurn(spec, call, {
      method: NodeService.nodePublishVolume,
      build: (driver) => {
        asked = driver;
        return publishRequest(spec, call, driver, { staging, target: place.path });
      },
      direction: 'climbing',
      sharing: sharingOf(spec),
      tokens: tokenSecrets(call),
      recheck: looks.again,
    });
    if (!published.ok) return refused(prepared.value, published.failure, call.refresh);
    assert(asked !== undefined, 'a call that was answered was made');
    const mount = await (spec.mode === 'Block'
      ? block.bringOut(publication)
      : publishedMountAt(host, { path: place.path, driver: spec.driver, mayBeDead: call.refresh }));
    if (!mount.ok) return mount;
    // A republish, every minute or so, must not walk a million files each time.
    if (call.refresh) return ok({ mount: mount.value });
    // From here on a failure is a volume that must be unpublished (KV-G7).
    const { progress, stillWanted } = call;
    call.step({ kind: 'working' });
    const request = { driver: asked, spec, publication, path: place.path, progress, stillWanted };
    const given = await applyFsGroup(host, request);
    return given.ok ? ok({ mount: mount.value }) : given;
  }

  async function unpublish(call: PublicationCall): Promise<Result<void>> {
    const spec = csi(call.spec);
    if (spec.mode !== 'Block') return unpublishPlace(spec, call);
    if (!call.stillWanted()) return noLongerWanted();
    if (drivers.get(spec.driver) === undefined) return notRegistered(spec.driver);
    const taken = await block.takeBack(call.publication);
    return taken.ok ? doubtful(await unpublishPlace(spec, call)) : taken;
  }

  async function unpublishPlace(spec: CsiVolumeSpec, call: PublicationCall): Promise<Result<void>> {
    const place = places.publication(spec, call.publication);
    const unpublished = await inTurn(spec, call, {
      method: forced(NodeService.nodeUnpublishVolume, call),
      build: () => ok({ volumeId: spec.volumeHandle, targetPath: place.path }),
      direction: 'teardown',
      sharing: sharingOf(spec),
    });
    if (!unpublished.ok && !mayBeGone(unpublished.failure)) return heldAt(place, unpublished.failure);
    const removed = await takeAway(spec, place, 'unpublished-still-mounted', 'NodeUnpublishVolume');
    return removed.ok ? removed : fail({ ...removed.failure, ended: true });
  }

  async function unstage(call: VolumeCall): Promise<Result<void>> {
    const spec = csi(call.spec);
    // Decided when the volume was set up: a driver that can stage today did not stage this one (DR-16).
    if (!call.facts.needs.stage) return ok(undefined);
    const place = places.staging(spec);
    const unstaged = await inTurn(spec, call, {
      method: forced(NodeService.nodeUnstageVolume, call),
      build: () => ok({ volumeId: spec.volumeHandle, stagingTargetPath: place.path }),
      direction: 'teardown',
      sharing: 'alone',
    });
    // A driver that came back without staging has nothing to unstage; the kernel still has the last word.
    const canStage =
      drivers.get(spec.driver)?.nodeCapabilities.has(NodeCapability.STAGE_UNSTAGE_VOLUME) ?? true;
    const isUnknownThere = !unstaged.ok && !canStage && unstaged.failure.code === 'driver-unimplemented';
    if (!unstaged.ok && !isUnknownThere && !mayBeGone(unstaged.failure))
      return heldAt(place, unstaged.failure);
    return takeAway(spec, place, 'unstaged-still-mounted', 'NodeUnstageVolume');
  }

  function reachableHere(spec: CsiVolumeSpec): Result<void> {
    const driver = drivers.get(spec.driver);
    return driver === undefined ? notRegistered(spec.driver) : reachableFrom(spec, driver, nodeName);
  }

  /** No directory is made for a driver that is not there: nothing would remove it. */
  async function prepareFor(spec: CsiVolumeSpec, place: DriverPath): Promise<Result<Prepared>> {
    const reachable = reachableHere(spec);
    return reachable.ok ? place.prepare() : reachable;
  }

  function needs(spec: CsiVolumeSpec): Needs | undefined {
    const driver = drivers.get(spec.driver);
    if (driver === undefined) return undefined;
    // Neither attached nor staged, whatever the driver can do, and no claim ever asks for more (KEP-596).
    if (spec.lifecycle === 'Ephemeral') return { attach: false, stage: false, expand: false };
    const attach = attachment.isNeeded(spec);
    if (attach === undefined) return undefined;
    return {
      attach,
      stage: driver.nodeCapabilities.has(NodeCapability.STAGE_UNSTAGE_VOLUME),
      expand: driver.nodeCapabilities.has(NodeCapability.EXPAND_VOLUME),
    };
  }

  return memory.remembering({
    name: CSI_PLUGIN,
    needs: (spec) => needs(csi(spec)),
    lane: (spec) => csi(spec).driver,
    attach,
    detach: (call) => attachment.detach(csi(call.spec), call),
    stage,
    unstage,
    publish,
    unpublish,
    expand: (call) => expandVolume(inTurn, layout, csi(call.spec), call),
    statistics,
    storageHealth,
    verifyClean: (devices) => verifyClean(host, devices),
  });
}

function csi(spec: VolumeSpec): CsiVolumeSpec {
  assert(spec.kind === 'csi', 'the CSI plugin is given CSI volumes');
  return spec;
}
