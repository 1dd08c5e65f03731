/** Attachments that this node makes itself: the controller service of the driver beside it is called. */
import { printable } from '../../../mount/text/printable.ts';
import { done, fail, type Failure, ok, type Result } from '../../../mount/failure.ts';
import { FENCE_FIELD, withFlag } from '../call/force-field.ts';
import { controllerPublishRequest, controllerUnpublishRequest, mapFits } from '../call/request.ts';
import type { VolumeRpc } from '../call/volume-rpc.ts';
import type { DriverInstance, DriverRegistry } from '../driver/driver.ts';
import {
  ControllerServiceCapability_RPC_Type as ControllerCapability,
  ControllerService,
} from '../wire/generated/csi.ts';
import type { VolumeCall } from '../../plugin.ts';
import type { CsiVolumeSpec } from '../../volume.ts';
import type { Attachment } from './attachment.ts';

export interface CalledAttachmentParts {
  readonly drivers: Pick<DriverRegistry, 'get'>;
  readonly inTurn: VolumeRpc;
  /** May this driver be sent `fence` for a volume in quarantine? */
  readonly mayFence: (driver: string) => boolean;
  /** Forgotten without a detach, as its driver has none now: the storage may have it attached under the node id. */
  readonly onUndetached: (spec: CsiVolumeSpec, node: string) => void;
}

export function createCalledAttachment(parts: CalledAttachmentParts): Attachment {
  const { drivers, inTurn, mayFence, onUndetached } = parts;
  return {
    isNeeded(spec) {
      const driver = drivers.get(spec.driver);
      return driver === undefined ? undefined : attaches(driver) && spec.attachRequired !== false;
    },
    node: (spec) => drivers.get(spec.driver)?.nodeId,
    async attach(spec, call) {
      let today: string | undefined;
      const attached = await inTurn(spec, call, {
        method: ControllerService.controllerPublishVolume,
        build: (driver) => {
          today = driver.nodeId;
          return controllerPublishRequest(spec, call, driver);
        },
        direction: 'climbing',
        sharing: 'alone',
      });
      if (!attached.ok) return fail(underOtherNode(attached.failure, call, today));
      const { publishContext } = attached.value;
      if (mapFits(publishContext)) return ok({ publishContext });
      const message = 'ControllerPublishVolume: the publish context has more than 4 KiB';
      return fail({ code: 'driver-answer-invalid', message, effect: 'unknown', blocker: spec.driver });
    },
    async detach(spec, call) {
      const driver = drivers.get(spec.driver);
      const { attachedNode } = call.facts;
      // Found on disk, a volume may or may not be attached: a driver that does not attach settles that.
      if (driver !== undefined && !attaches(driver) && attachedNode === undefined) return done;
      let attachesNone = false;
      const method = ControllerService.controllerUnpublishVolume;
      const detached = await inTurn(spec, call, {
        method: call.force && mayFence(spec.driver) ? withFlag(method, FENCE_FIELD) : method,
        build: (today) => {
          attachesNone = hasController(today) && !attaches(today);
          return hasController(today) ? controllerUnpublishRequest(spec, call, today) : noController(today);
        },
        direction: 'teardown',
        sharing: 'alone',
      });
      // A driver that came back without attaching, and says so once more when it is asked, has nothing to detach.
      const isSettled = !detached.ok && attachesNone && detached.failure.code === 'driver-unimplemented';
      if (isSettled && attachedNode !== undefined)
        onUndetached(spec, printable(attachedNode, NODE_ID_BYTES_SHOWN));
      return detached.ok || isSettled ? done : detached;
    },
  };
}

const NODE_ID_BYTES_SHOWN = 256;

/** A storage that does not know the node by that id any more refuses, and the driver would not say which one it was. */
function underOtherNode(failure: Failure, { facts }: VolumeCall, today: string | undefined): Failure {
  const { attachedNode } = facts;
  if (today === undefined || attachedNode === undefined || attachedNode === today) return failure;
  const [then, now] = [attachedNode, today].map((node) => printable(node, NODE_ID_BYTES_SHOWN));
  const both = `attached under the node id "${then}", and the driver calls this node "${now}" now`;
  return { ...failure, message: `${both}: ${failure.message}` };
}

/** No controller call may go to such a driver: what it has attached waits until it has the service again. */
function noController({ name }: DriverInstance): Result<never> {
  const message = `the volume is attached by a call of ${name}, which has no controller service now to detach it`;
  return fail({ code: 'driver-unimplemented', message, effect: 'none', blocker: name });
}

function hasController({ controllerCapabilities }: DriverInstance): boolean {
  return controllerCapabilities !== undefined;
}

function attaches(driver: DriverInstance): boolean {
  return driver.controllerCapabilities?.has(ControllerCapability.PUBLISH_UNPUBLISH_VOLUME) ?? false;
}
