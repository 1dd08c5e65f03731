/** The rung of a CSI volume that is staged: one RPC up, one down, and after each the kernel is asked. */
import { ok, type Result } from '../../mount/failure.ts';
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
  return takeAway(spec, place, 'unstaged-still-mounted', 'NodeUnstageVolume');
}
