/** The frame of a kind of volume that lives and dies with its pod: only publish and unpublish do anything. */
import { done, ok, type Result } from '../../mount/failure.ts';
import type { MountIdentity } from '../../mount/host.ts';
import type { Needs, PublicationCall, VolumeCall, VolumePlugin } from '../plugin.ts';
import { noLongerWanted } from '../steps.ts';
import type { PluginName } from '../volume.ts';

export interface PodVerbs {
  readonly name: PluginName;
  readonly looksItself?: true;
  publish(call: PublicationCall): Promise<Result<{ readonly mount: MountIdentity | undefined }>>;
  unpublish(call: PublicationCall): Promise<Result<void>>;
  readonly isUpToDate?: VolumePlugin['isUpToDate'];
  /** How full it is, of volumes of which that can be told. */
  readonly usage?: Required<Pick<VolumePlugin, 'statistics' | 'hasStatistics'>>;
  /** What is there for all pods of a volume, where several share it. */
  readonly shared?: Pick<VolumePlugin, 'stage' | 'unstage'>;
}

const NEEDS: Needs = { attach: false, stage: false, expand: false };
const SHARED_NEEDS: Needs = { ...NEEDS, stage: true };

/** Adds the rungs that are not needed (they succeed and do nothing), the lane, and the question "still wanted?". */
export function createPodPlugin(verbs: PodVerbs): VolumePlugin {
  return {
    name: verbs.name,
    ...(verbs.looksItself === undefined ? {} : { looksItself: verbs.looksItself }),
    needs: () => (verbs.shared === undefined ? NEEDS : SHARED_NEEDS),
    lane: () => verbs.name,
    attach: async (call) => ifStillWanted(call, async () => ok({ publishContext: undefined })),
    detach: async (call) => ifStillWanted(call, async () => done),
    stage: async (call) =>
      ifStillWanted(call, async () => verbs.shared?.stage(call) ?? ok({ stagedMount: undefined })),
    unstage: async (call) => ifStillWanted(call, async () => verbs.shared?.unstage(call) ?? done),
    publish: async (call) => ifStillWanted(call, () => verbs.publish(call)),
    unpublish: async (call) => ifStillWanted(call, () => verbs.unpublish(call)),
    ...(verbs.isUpToDate === undefined ? {} : { isUpToDate: verbs.isUpToDate }),
    ...verbs.usage,
  };
}

async function ifStillWanted<T>(call: VolumeCall, verb: () => Promise<Result<T>>): Promise<Result<T>> {
  return call.stillWanted() ? verb() : noLongerWanted();
}
