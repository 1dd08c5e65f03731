/** Growing a volume on the node (CSI NodeExpandVolume). */
import { done, type FailureCode, type Result } from '../../mount/failure.ts';
import type { Layout } from '../layout/layout.ts';
import type { ExpandCall } from '../plugin.ts';
import type { CsiVolumeSpec } from '../volume.ts';
import { NodeService } from './wire/generated/csi.ts';
import { expandRequest } from './call/request.ts';
import type { VolumeRpc } from './call/volume-rpc.ts';

/**
 * FAILED_PRECONDITION is "in use", MUST NOT be retried; INVALID_ARGUMENT, NOT_FOUND and OUT_OF_RANGE are never
 * this size (KEP-1790, KV-F5). A timeout is neither (KV-H1).
 */
const CODES: ReadonlyMap<number, FailureCode> = new Map([
  [3, 'expand-infeasible'],
  [5, 'expand-infeasible'],
  [9, 'expand-in-use'],
  [11, 'expand-infeasible'],
]);

/** As VolumePlugin.expand: with nothing of the volume beside it, whatever the driver's options say. */
export async function expandVolume(
  rpc: VolumeRpc,
  layout: Layout,
  spec: CsiVolumeSpec,
  call: ExpandCall,
): Promise<Result<void>> {
  const { publication } = call;
  const staging = layout.stagingPath(spec);
  const volumePath = publication === undefined ? staging : layout.driverTarget(spec, publication);
  const expanded = await rpc(spec, call, {
    method: NodeService.nodeExpandVolume,
    build: (driver) => expandRequest(spec, call, driver, { staging, volumePath }),
    direction: 'climbing',
    sharing: 'alone',
    codes: CODES,
  });
  // Its capacity_bytes is not believed, nor by a kubelet: who tells the size of a pool would grow no more.
  return expanded.ok ? done : expanded;
}
