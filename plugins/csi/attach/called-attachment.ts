/** Attachments that this node makes itself: the controller service of the driver beside it is called. */
import { done, fail, ok } from '../../../mount/failure.ts';
import { FENCE_FIELD, withFlag } from '../call/force-field.ts';
import { controllerPublishRequest, controllerUnpublishRequest, mapFits } from '../call/request.ts';
import type { VolumeRpc } from '../call/volume-rpc.ts';
import type { DriverInstance, DriverRegistry } from '../driver/driver.ts';
import {
  ControllerServiceCapability_RPC_Type as ControllerCapability,
  ControllerService,
} from '../wire/generated/csi.ts';
import type { Attachment } from './attachment.ts';

export interface CalledAttachmentParts {
  readonly drivers: Pick<DriverRegistry, 'get'>;
  readonly inTurn: VolumeRpc;
  /** May this driver be sent `fence` for a volume in quarantine? */
  readonly mayFence: (driver: string) => boolean;
}

export function createCalledAttachment({ drivers, inTurn, mayFence }: CalledAttachmentParts): Attachment {
  return {
    isNeeded(spec) {
      const driver = drivers.get(spec.driver);
      return driver === undefined ? undefined : attaches(driver) && spec.attachRequired !== false;
    },
    async attach(spec, call) {
      let node: string | undefined;
      const attached = await inTurn(spec, call, {
        method: ControllerService.controllerPublishVolume,
        build: (driver) => {
          node = driver.nodeId;
          return controllerPublishRequest(spec, call, driver);
        },
        direction: 'climbing',
        sharing: 'alone',
      });
      if (!attached.ok) return attached;
      const { publishContext } = attached.value;
      if (mapFits(publishContext)) return ok({ publishContext, node });
      const message = 'ControllerPublishVolume: the publish context has more than 4 KiB';
      return fail({ code: 'driver-answer-invalid', message, effect: 'unknown', blocker: spec.driver });
    },
    async detach(spec, call) {
      const driver = drivers.get(spec.driver);
      // Found on disk, a volume may or may not be attached: a driver that does not attach settles that.
      if (driver !== undefined && !attaches(driver)) return done;
      const method = ControllerService.controllerUnpublishVolume;
      const detached = await inTurn(spec, call, {
        method: call.force && mayFence(spec.driver) ? withFlag(method, FENCE_FIELD) : method,
        build: (asked) => controllerUnpublishRequest(spec, call, asked),
        direction: 'teardown',
        sharing: 'alone',
      });
      return detached.ok ? done : detached;
    },
  };
}

function attaches(driver: DriverInstance): boolean {
  return driver.controllerCapabilities?.has(ControllerCapability.PUBLISH_UNPUBLISH_VOLUME) ?? false;
}
