/** Attachments as a cluster grants them: given and withdrawn by the test, asked for and given back by the agent. */
import { done, fail, ok } from '../../../../mount/failure.ts';
import type { GrantedAttachment } from '../../../../plugins/csi/attach/attachment.ts';
import { noLongerWanted } from '../../../../plugins/steps.ts';
import type { PublishContext } from '../../../../plugins/plugin.ts';
import type { VolumeId } from '../../../../plugins/volume.ts';

export interface TestGrants extends GrantedAttachment {
  /** The volumes that were asked for and not given back, as an in-use report has them. */
  readonly inUse: ReadonlySet<VolumeId>;
  give(volume: VolumeId, publishContext?: PublishContext): void;
  withdraw(volume: VolumeId): void;
}

export function createGrants(): TestGrants {
  const given = new Map<VolumeId, PublishContext>();
  const inUse = new Set<VolumeId>();
  const listeners = new Set<(volume: VolumeId) => void>();
  const tell = (volume: VolumeId): void => {
    for (const listener of listeners) listener(volume);
  };
  return {
    inUse,
    isNeeded: ({ attachRequired }) => attachRequired !== false,
    async attach({ id, driver }, call) {
      if (!call.stillWanted()) return noLongerWanted();
      inUse.add(id);
      const publishContext = given.get(id);
      if (publishContext !== undefined) return ok({ publishContext });
      const message = 'the cluster has not attached it to this node';
      return fail({ code: 'not-attached', message, effect: 'unknown', blocker: driver });
    },
    async detach({ id }, call) {
      if (!call.stillWanted()) return noLongerWanted();
      inUse.delete(id);
      return done;
    },
    give(volume, publishContext = {}) {
      given.set(volume, publishContext);
      tell(volume);
    },
    withdraw(volume) {
      given.delete(volume);
      tell(volume);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
