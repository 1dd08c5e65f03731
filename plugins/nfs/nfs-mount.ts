/** The mount of one pod: where it is made, and whose it is. The server is never asked by any of this. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, MountIdentity } from '../../mount/host.ts';
import { nameOfMount } from '../../mount/mount-sight.ts';
import type { MountAttempt } from '../../mount/mounter.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition, type TransitionArgs } from '../../mount/transition.ts';
import { doubtful } from '../steps.ts';

interface NfsPlace extends TransitionArgs {
  /** `<server>:<path>` */
  readonly source: string;
  readonly attempt: MountAttempt;
}

/** The directory under the mount is never seen while it is mounted, and protected while it is not (DL-15). */
const MOUNT_POINT_MODE = 0o750;

/**
 * The mount that is there; undefined: nothing is, and before the attempt the directory is made. Told by the table: a
 * look through the mount would wait for the server.
 */
export const placeNfsMount = transition<NfsPlace, MountIdentity | undefined>(
  'place-nfs-mount',
  function* (place) {
    const { path, attempt } = place;
    const mountId = yield* paths.mountIdOf(path);
    if (!mountId.ok) return attempt === 'not-yet' ? mountId : doubtful<never>(mountId);
    if (mountId.value !== undefined) return yield* identify(place);
    if (attempt !== 'not-yet') return ok(undefined);
    const made = yield* paths.makeDirectory(path, MOUNT_POINT_MODE, 'mount-point');
    return made.ok ? ok(undefined) : made;
  },
);

function* identify({ path, source, attempt }: NfsPlace): Program<Result<MountIdentity | undefined>> {
  const table = yield* paths.readMountTable(path);
  if (!table.ok) return attempt === 'not-yet' ? table : doubtful<never>(table);
  const stack = table.value.at(path);
  const top = stack.at(-1);
  if (top === undefined) return fail(gone(path));
  // A mount.nfs(8) goes on when its agent is killed, and the next agent begins another one.
  const isMadeTwice = stack.every((one) => one.source === source);
  if (stack.length > 1 && !isMadeTwice) {
    const message = `${stack.length} mounts on top of each other at ${path}`;
    return fail({ code: 'mount-stacked', message, effect: 'none', blocker: path });
  }
  // What mount.nfs(8) has just made may be called otherwise: a server refers to others.
  if (attempt === 'done' || top.source === source) return ok({ mountId: top.mountId, device: top.device });
  const name = nameOfMount(top);
  const message = `not ${source} is mounted: ${name}`;
  return fail({ code: 'mount-foreign', message, effect: 'none', blocker: name });
}

function gone(path: AbsolutePath) {
  return {
    code: 'mount-failed',
    message: `what was mounted at ${path} has just gone`,
    effect: 'unknown',
  } as const;
}
