/** The rung of a CSI volume that is published: one RPC up, one down, and after each the kernel is asked. */
import { assert, done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, MountIdentity } from '../../mount/host.ts';
import { bringOutPublished } from './block/block-publication.ts';
import { applyFsGroup } from './call/fs-group.ts';
import { publishRequest } from './call/request.ts';
import { tokenSecrets } from './call/service-account-tokens.ts';
import type { Prepared } from './call/volume-directory.ts';
import { mayBeGone, notRegistered, type Rpc } from './call/volume-rpc.ts';
import { type CsiSurroundings, csiSpec, forced, prepareFor, sharingOf } from './csi-surroundings.ts';
import type { DriverInstance } from './driver/driver.ts';
import { type PublishedMount, publishedMountAt } from './mount-proof.ts';
import { heldAt, refused, takeAway } from './place-outcome.ts';
import { NodeService } from './wire/generated/csi.ts';
import { removeEmptyPodDirectories } from '../layout/pod-directory.ts';
import { deathFailure, findingOf } from '../guard/dead-file-system.ts';
import type { PublicationCall } from '../plugin.ts';
import { doubtful, noLongerWanted } from '../steps.ts';
import type { CsiVolumeSpec } from '../volume.ts';

export async function publish(csi: CsiSurroundings, call: PublicationCall) {
  const published = await tryPublish(csi, call);
  // Promised: nothing changed. The pod's directories made on the way are no volume, so no unpublish would come. A
  // republish finds them made, and in use.
  const isAsBefore = !published.ok && published.failure.effect === 'none';
  if (isAsBefore && published.failure.isUnexpected !== true && !call.refresh) {
    await removeEmptyPodDirectories(csi.host, csi.layout, call.publication.pod.uid);
  }
  return published;
}

/** Disks that are pulled out again and again are left to the back-off. */
const PUBLISH_TRIES_MAX = 2;

async function tryPublish(
  csi: CsiSurroundings,
  call: PublicationCall,
): Promise<Result<{ readonly mount: MountIdentity }>> {
  const owed = await isOwed(csi, call);
  if (!owed.ok) return doubtful<never>(owed);
  const returned = owed.value ? await giveBack(csi, call) : done;
  if (!returned.ok) return doubtful<never>(returned);
  for (let tries = 1; ; tries += 1) {
    const published = await publishOnce(csi, call);
    if (published.ok || published.failure.code !== 'device-replaced')
      return tries === 1 && !owed.value ? published : doubtful(published);
    const given = await giveBack(csi, call);
    if (!given.ok) return doubtful<never>(given);
    if (tries === PUBLISH_TRIES_MAX) return published;
  }
}

/** A device that was to be given back before the driver is asked for it again, and was not. */
async function isOwed({ layout, block }: CsiSurroundings, call: PublicationCall): Promise<Result<boolean>> {
  if (csiSpec(call.spec).mode !== 'Block' || call.refresh) return ok(false);
  return await block.isDistrusted(layout.blockPublication(call.publication));
}

/**
 * Asked again, drivers say OK over whatever node is there; so it is given back before it is made anew. Our bind goes
 * when theirs is gone: without a hold it says that their node is not to be trusted.
 */
async function giveBack(csi: CsiSurroundings, call: PublicationCall): Promise<Result<void>> {
  const places = csi.layout.blockPublication(call.publication);
  const release = async (): Promise<Result<void>> => {
    const theirs = await csi.host.mountIdOf(places.published);
    if (!theirs.ok) return theirs;
    return theirs.value === undefined ? csi.block.takeBack(places) : done;
  };
  return await unpublishPlace(csi, csiSpec(call.spec), call, release);
}

async function publishOnce(
  csi: CsiSurroundings,
  call: PublicationCall,
): Promise<Result<{ readonly mount: MountIdentity }>> {
  const { layout, places, stagedMount } = csi;
  const spec = csiSpec(call.spec);
  const place = places.publication(spec, call.publication);
  // First, and elsewhere: what hangs on it must not keep others from being looked at.
  const looks = stagedMount.looksFor(call, layout.stagingPath(spec));
  const reusable = await looks.first();
  // What stands in the way may be somebody else's, which whoever looks at all of the places can tell.
  if (!reusable.ok) return call.expectedAll === undefined ? reusable : unexpected(reusable.failure);
  const prepared = await prepareFor(csi, call, place);
  if (!prepared.ok) return prepared;
  const published = await publishAt(csi, call, place.path, prepared.value, looks.again);
  if (published.ok || spec.mode === 'Block' || prepared.value.mountedBefore) return published;
  return fail({ ...published.failure, wasBare: true });
}

/** The call and what has come of it, at a place that is prepared. */
async function publishAt(
  csi: CsiSurroundings,
  call: PublicationCall,
  path: AbsolutePath,
  prepared: Prepared,
  recheck: NonNullable<Rpc<unknown, unknown>['recheck']>,
): Promise<Result<{ readonly mount: MountIdentity }>> {
  const { host, layout, inTurn } = csi;
  const spec = csiSpec(call.spec);
  const { publication } = call;
  const staging = layout.stagingPath(spec);
  let asked: DriverInstance | undefined;
  const answered = await inTurn(spec, call, {
    method: NodeService.nodePublishVolume,
    build: (driver) => {
      asked = driver;
      return publishRequest(spec, call, driver, { staging, target: path });
    },
    direction: 'climbing',
    sharing: sharingOf(csi, spec),
    tokens: tokenSecrets(call),
    recheck,
  });
  if (!answered.ok) return refused(prepared, answered.failure, call.refresh);
  assert(asked !== undefined, 'a call that was answered was made');
  const { mountIdBefore } = prepared;
  const published = await lookAtPublished(csi, call, path, mountIdBefore);
  if (!published.ok) return published;
  const { mount, isDead } = published.value;
  // A republish, every minute or so, must not walk a million files each time, and nobody can walk what is dead, or what
  // is read-only as it is to be; where it is not to be, it is dead (DR-11).
  if (keepsMount(call, mountIdBefore) || isDead || mount.readOnly === true) return ok({ mount });
  // From here on a failure is a volume that must be unpublished (KV-G7).
  const { progress, stillWanted } = call;
  call.step({ kind: 'working' });
  const { mountId } = mount;
  const request = { driver: asked, spec, publication, path, mountId, progress, stillWanted };
  const given = await applyFsGroup(host, request);
  return given.ok ? ok({ mount }) : given;
}

/** A republish, and the pod had its mount when it began: if not, what the driver makes there is new to the pod. */
function keepsMount({ refresh, mount }: PublicationCall, mountIdBefore: number | undefined): boolean {
  return refresh && mountIdBefore !== undefined && (mount === undefined || mount.mountId === mountIdBefore);
}

async function lookAtPublished(
  { host, layout, block }: CsiSurroundings,
  call: PublicationCall,
  path: AbsolutePath,
  mountIdBefore: number | undefined,
): Promise<Result<PublishedMount>> {
  const spec = csiSpec(call.spec);
  if (spec.mode !== 'Block') {
    const isKept = keepsMount(call, mountIdBefore);
    const published = await publishedMountAt(host, {
      ...{ path, spec, readOnly: call.publication.readOnly },
      ...{ told: call.mount, mountIdBefore, isKept },
    });
    if (!published.ok) return published;
    const { mount, isDead } = published.value;
    const isTold = mountIdBefore === mount.mountId && call.mount?.mountId === mount.mountId;
    const isHad = isKept || isDead || isTold;
    return isHad ? published : judgedByStage(call, spec, path, published.value);
  }
  const device = await bringOutPublished({ host, block }, layout.blockPublication(call.publication));
  return device.ok ? ok({ mount: device.value, isDead: false }) : device;
}

/**
 * Read-only it may have been made, but not where it is the file system that was staged writable: a driver that stages
 * no more, or whose stage somebody covers, publishes it dead (DR-11).
 */
function judgedByStage(
  { facts, publication }: PublicationCall,
  spec: CsiVolumeSpec,
  path: AbsolutePath,
  published: PublishedMount,
): Result<PublishedMount> {
  const { stagedMount } = facts;
  const { device, readOnly = false } = published.mount;
  if (stagedMount?.device !== device) return ok(published);
  const place = { spec, mount: stagedMount, readOnly: publication.readOnly };
  const finding = findingOf({ kind: 'alive', readOnly, device }, place);
  return finding === 'usable' ? ok(published) : fail(deathFailure(path, finding, 'unknown'));
}

function unexpected(failure: Failure): Result<never> {
  return fail({ ...failure, isUnexpected: true });
}

export async function unpublish(csi: CsiSurroundings, call: PublicationCall): Promise<Result<void>> {
  const spec = csiSpec(call.spec);
  if (spec.mode !== 'Block') return unpublishPlace(csi, spec, call);
  if (!call.stillWanted()) return noLongerWanted();
  if (csi.drivers.get(spec.driver) === undefined) return notRegistered(spec.driver);
  // Until the driver has let go, an open NodePublishVolume may yet make a device at the target: `held` stays.
  const taken = await csi.block.takeBack(csi.layout.blockPublication(call.publication));
  return taken.ok ? doubtful(await unpublishPlace(csi, spec, call)) : taken;
}

async function unpublishPlace(
  csi: CsiSurroundings,
  spec: CsiVolumeSpec,
  call: PublicationCall,
  release: () => Promise<Result<void>> = async () => done,
): Promise<Result<void>> {
  const place = csi.places.publication(spec, call.publication);
  const unpublished = await csi.inTurn(spec, call, {
    method: forced(csi, NodeService.nodeUnpublishVolume, call),
    build: () => ok({ volumeId: spec.volumeHandle, targetPath: place.path }),
    direction: 'teardown',
    sharing: sharingOf(csi, spec),
  });
  if (!unpublished.ok && !mayBeGone(unpublished.failure)) return heldAt(place, unpublished.failure);
  const released = await release();
  if (!released.ok) return released;
  const removed = await takeAway(spec, place, 'unpublished-still-mounted', 'NodeUnpublishVolume');
  return removed.ok ? removed : fail({ ...removed.failure, ended: true });
}
