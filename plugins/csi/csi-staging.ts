/** The rung of a CSI volume that is staged: one RPC up, one down, and after each the kernel is asked. */
import { ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, MountIdentity } from '../../mount/host.ts';
import { isProven } from '../../mount/mount-sight.ts';
import { createMounter } from '../../mount/mounter.ts';
import { stageRequest } from './call/request.ts';
import { mayBeGone } from './call/volume-rpc.ts';
import { type CsiSurroundings, csiSpec, forced, prepareFor } from './csi-surroundings.ts';
import { stagedMountAt } from './mount-proof.ts';
import { heldAt, refused, takeAway } from './place-outcome.ts';
import { NodeService, NodeServiceCapability_RPC_Type as NodeCapability } from './wire/generated/csi.ts';
import type { VolumeCall } from '../plugin.ts';

export async function stage(csi: CsiSurroundings, call: VolumeCall) {
  const { host, inTurn, places, stagedMount } = csi;
  const spec = csiSpec(call.spec);
  const place = places.staging(spec);
  const prepared = await prepareFor(csi, call, place);
  if (!prepared.ok) return prepared;
  const staged = await inTurn(spec, call, {
    method: NodeService.nodeStageVolume,
    build: (driver) => stageRequest(spec, call, driver, place.path),
    direction: 'climbing',
    sharing: 'alone',
  });
  if (!staged.ok) return refused(prepared.value, staged.failure);
  const isExpected = call.facts.stagedMount !== undefined || stagedMount.isMissed(spec.id);
  const wasMounted = prepared.value.mountedBefore || isExpected;
  const mount = await stagedMountAt(host, { path: place.path, spec, wasMounted });
  if (!mount.ok) {
    if (mount.failure.code === 'staged-not-mounted') stagedMount.noteMissed(spec.id);
    return mount;
  }
  const wasThere = prepared.value.mountedBefore;
  const serving = stagedMount.isMade(call, place.path, { mount: mount.value, wasThere });
  return serving.ok ? ok({ stagedMount: mount.value }) : serving;
}

export async function unstage(csi: CsiSurroundings, call: VolumeCall): Promise<Result<void>> {
  const spec = csiSpec(call.spec);
  // Decided when the volume was set up: a driver that can stage today did not stage this one (DR-16).
  if (!call.facts.needs.stage) return ok(undefined);
  const { drivers, inTurn, places } = csi;
  const place = places.staging(spec);
  const unstaged = await inTurn(spec, call, {
    method: forced(csi, NodeService.nodeUnstageVolume, call),
    build: () => ok({ volumeId: spec.volumeHandle, stagingTargetPath: place.path }),
    direction: 'teardown',
    sharing: 'alone',
  });
  // A driver that came back without staging has nothing to unstage; the kernel still has the last word.
  const canStage =
    drivers.get(spec.driver)?.nodeCapabilities.has(NodeCapability.STAGE_UNSTAGE_VOLUME) ?? true;
  const isUnknownThere = !unstaged.ok && !canStage && unstaged.failure.code === 'driver-unimplemented';
  if (!unstaged.ok && !isUnknownThere && !mayBeGone(unstaged.failure)) return heldAt(place, unstaged.failure);
  if (isUnknownThere) await unmountFor(csi, place.path, call.facts.stagedMount);
  return takeAway(spec, place, 'unstaged-still-mounted', 'NodeUnstageVolume');
}

/**
 * A driver that cannot unstage any more leaves what it has staged mounted for good. No pod has the volume by now, so
 * what is surely the mount that was recorded is unmounted for it, by nothing but a plain umount(8): the kernel refuses
 * while somebody works in it. Not when its file system is mounted anywhere else as well: the driver may have it for
 * itself and bound to our path, and the disk must not be detached under that. What came of it the caller looks at.
 */
async function unmountFor(
  { host, layout }: CsiSurroundings,
  path: AbsolutePath,
  staged: MountIdentity | undefined,
): Promise<void> {
  if (staged === undefined) return;
  const table = await host.readMountTable(path);
  if (!table.ok) return;
  const [only, ...others] = table.value.entries.filter(({ device }) => device === staged.device);
  const isAlone = only?.target === path && others.length === 0 && table.value.at(path).length === 1;
  if (!isAlone || !isProven(only, staged)) return;
  // A driver may mount what a server has: nobody but the kernel is asked.
  await createMounter(host, layout.root).unmountOnly(path, staged.mountId, { isRemote: true });
}
