/**
 * The fields `force` and `fence` of CSI pull 477, which no released CSI has: for drivers that were opted in by name.
 *
 * Never by a capability: the numbers of that proposal mean something else today (7 GET_VOLUME_HEALTH, 14 MODIFY_VOLUME;
 * B-5).
 */
import type { RemoteMethod } from '../../../mount/remote-call.ts';

/** NodeUnpublishVolumeRequest and NodeUnstageVolumeRequest: prefer success, even at the cost of data. */
export const FORCE_FIELD = 3;
/** ControllerUnpublishVolumeRequest: make the volume inaccessible to the node, whatever is still staged there. */
export const FENCE_FIELD = 4;

/** The method with a boolean field set to true behind whatever the request holds (protobuf: fields in any order). */
export function withFlag<Request, Reply>(
  method: RemoteMethod<Request, Reply>,
  field: typeof FORCE_FIELD | typeof FENCE_FIELD,
): RemoteMethod<Request, Reply> {
  const tag = field << 3;
  const flag = Buffer.from([tag, 1]);
  return {
    path: method.path,
    requestSerialize: (request) => Buffer.concat([method.requestSerialize(request), flag]),
    responseDeserialize: method.responseDeserialize,
  };
}
