/** Giving a volume to the pod's group, told so that people can follow a long walk. */
import { done, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import { doubtful } from '../steps.ts';
import type { FsGroup, VolumeId } from '../volume.ts';

/** Where a volume was mounted for a pod just now. */
export interface MountedPlace {
  readonly path: AbsolutePath;
  readonly mountId: number;
}

export interface GroupRequest {
  readonly volume: VolumeId;
  /** The root of the volume. */
  readonly path: AbsolutePath;
  /** What was proven to be mounted there; undefined: it is a plain directory. */
  readonly mountId: number | undefined;
  readonly fsGroup: FsGroup;
  /** What the pod may only read gets r for its group, everything else rw. */
  readonly readOnly: boolean;
  readonly progress: (text: string) => void;
  readonly stillWanted: () => boolean;
}

/**
 * Walks the volume as the kubelet does (KEP-695), after the walks of other pods that came before: of two groups the one
 * that comes last has all of it. A walk cut short is taken up again by the next one.
 * Every failure has effect `unknown`: what was changed stays changed.
 */
export async function giveToGroup(
  host: Pick<Host, 'changeOwnership'>,
  request: GroupRequest,
): Promise<Result<void>> {
  const { volume, path, mountId, fsGroup, readOnly, progress, stillWanted } = request;
  const walked = await host.changeOwnership({
    volume,
    path,
    mountId,
    gid: fsGroup.gid,
    readOnly,
    policy: fsGroup.changePolicy === 'OnRootMismatch' ? 'on-root-mismatch' : 'always',
    onProgress: (entriesSeen) => {
      progress(`changing the group to ${fsGroup.gid}: ${entriesSeen.toLocaleString('en-US')} entries seen`);
    },
    onWaiting: (gid) => progress(`waiting until the volume has been given to group ${gid}`),
    isCancelled: () => !stillWanted(),
  });
  return walked.ok ? done : doubtful(walked);
}
