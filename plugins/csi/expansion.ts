/** Growing a volume on the node (CSI NodeExpandVolume). */
import { fail, type FailureCode, ok, type Result } from '../../mount/failure.ts';
import type { Layout } from '../layout/layout.ts';
import type { ExpandCall } from '../plugin.ts';
import { type Bytes, bytesFrom, type CsiVolumeSpec } from '../volume.ts';
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
): Promise<Result<{ readonly sizeBytes: Bytes }>> {
  const { publication, toBytes } = call;
  const staging = layout.stagingPath(spec);
  const volumePath = publication === undefined ? staging : layout.driverTarget(spec, publication);
  const expanded = await rpc(spec, call, {
    method: NodeService.nodeExpandVolume,
    build: (driver) => expandRequest(spec, call, driver, { staging, volumePath }),
    direction: 'climbing',
    sharing: 'alone',
    codes: CODES,
  });
  if (!expanded.ok) return expanded;
  const { capacityBytes } = expanded.value;
  // Zero is "not said".
  if (capacityBytes === 0n) return ok({ sizeBytes: toBytes });
  if (capacityBytes > 0n) return ok({ sizeBytes: bytesFrom(capacityBytes) });
  const message = `${spec.driver} NodeExpandVolume: a capacity of ${capacityBytes} bytes`;
  return fail({ code: 'driver-answer-invalid', message, effect: 'unknown', blocker: spec.driver });
}
