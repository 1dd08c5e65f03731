/** The directories a CSI volume has on this node, and the kubelet's `vol_data.json` in them. */
import { done, fail, ok, type Result } from '../../../mount/failure.ts';
import { asExpected, type ExpectedPlace } from '../../../mount/expected-place.ts';
import type { AbsolutePath, Host } from '../../../mount/host.ts';
import { paths } from '../../../mount/path-steps.ts';
import { type Program, transition } from '../../../mount/transition.ts';
import { sha256Hex } from '../../layout/layout.ts';
import { makeVolumeDirectory } from '../../layout/place-directory.ts';
import { type PodDirectories, removePodDirectories } from '../../layout/pod-directory.ts';
import { eraseVolumeData, writeVolumeData } from '../../layout/volume-data.ts';
import type { VolumeData } from '../../layout/volume-data-text.ts';
import { doubtful } from '../../steps.ts';

/**
 * One directory of ours with `vol_data.json` beside the place where the driver mounts: the device directory with its
 * `globalmount`, or a pod's volume directory with its `mount`.
 */
export interface VolumeDirectory {
  readonly path: AbsolutePath;
  readonly mountPoint: AbsolutePath;
  /** The staging path is made by us, the target of a publication by the driver (CSI; A-055, A-061). */
  readonly mountPointMadeBy: 'us' | 'driver';
  readonly data: VolumeData;
  /** Which go when they are empty; undefined: a stage is in no pod. */
  readonly above: PodDirectories | undefined;
}

/** Where a call of the driver takes effect, and what of ours surrounds it. */
export interface DriverPath {
  /** Given to the driver. */
  readonly path: AbsolutePath;
  /**
   * Makes it ready for the driver. A failure has effect `none` when what it made could be removed again. `expectedAll`,
   * where there is one: nothing is done unless all of that is as it says.
   */
  prepare(expectedAll?: readonly ExpectedPlace[]): Promise<Result<Prepared>>;
  /**
   * Unless something is mounted there, removes what the driver left and what is ours: never more than empty
   * directories, empty files, device nodes and what we wrote; directories above that are the pod's go when they are
   * empty. A failure has effect `unknown`, and one of a removal names what is in the way.
   */
  takeAway(): Promise<Result<TakenAway>>;
}

export interface TakenAway {
  /** Something is mounted there, and nothing was removed. */
  readonly isMounted: boolean;
}

export interface Prepared {
  /** Before the call a mount, or the driver's device, was there. */
  readonly mountedBefore: boolean;
  /** The number of the mount that was there. */
  readonly mountIdBefore?: number | undefined;
  /**
   * After a refused call: takes away what `prepare` made. False when the driver changed something all the same, so that
   * the effect is unknown; then all of ours stays.
   */
  undo(): Promise<boolean>;
}

/** `attachmentID` of vol_data.json and name of the VolumeAttachment; no separators, as the kubelet has it. */
export function attachmentId(volumeHandle: string, driver: string, nodeName: string): string {
  return `csi-${sha256Hex(`${volumeHandle}${driver}${nodeName}`)}`;
}

/** The place of a volume with files: of a stage or of a publication. */
export function driverPathIn(host: Host, directory: VolumeDirectory): DriverPath {
  const { path, mountPoint, above } = directory;
  return {
    path: mountPoint,
    async prepare(expectedAll) {
      const prepared = await host.perform(prepareVolumeDirectory, { ...directory, expectedAll });
      if (!prepared.ok) return prepared;
      const { mountId, isFresh } = prepared.value;
      const undo = async (): Promise<boolean> => {
        const undone = await host.perform(undoVolumeDirectory, { path, mountPoint, mountId, isFresh });
        return undone.ok && undone.value;
      };
      return ok({ mountedBefore: mountId !== undefined, mountIdBefore: mountId, undo });
    },
    takeAway: () => host.perform(removeVolumeDirectory, { path, mountPoint, above }),
  };
}

interface Preparation {
  /** Names what was mounted there before. */
  readonly mountId: number | undefined;
  /** There was no directory. */
  readonly isFresh: boolean;
}

type Directory = Pick<VolumeDirectory, 'path' | 'mountPoint'>;

interface PreparedDirectory extends VolumeDirectory {
  readonly expectedAll: readonly ExpectedPlace[] | undefined;
}

export const prepareVolumeDirectory = transition<PreparedDirectory, Preparation>(
  'prepare-volume-directory',
  function* ({ expectedAll = [], ...directory }) {
    for (const expected of expectedAll) {
      const known = yield* asExpected(expected);
      if (!known.ok) return known;
    }
    const facts = yield* paths.inspect(directory.path);
    if (!facts.ok) return unchanged(facts);
    const isFresh = facts.value.kind === 'absent';
    const seen = expectedAll.find(({ path }) => path === directory.mountPoint);
    const isKnown = isFresh || seen !== undefined;
    const mountId = isKnown ? ok(seen?.mountId) : yield* paths.mountIdOf(directory.mountPoint);
    if (!mountId.ok) return unchanged(mountId);
    const filled = yield* fill(directory, { mountId: mountId.value, isFresh });
    if (filled.ok) return ok({ mountId: mountId.value, isFresh });
    const undone = !isFresh || (yield* remove(directory)).ok;
    return undone ? unchanged(filled) : fail({ ...filled.failure, effect: 'unknown' });
  },
);

/** Answers whether all is as it was before `prepareVolumeDirectory`. */
export const undoVolumeDirectory = transition<Directory & Preparation, boolean>(
  'undo-volume-directory',
  function* ({ path, mountPoint, mountId, isFresh }) {
    const now = yield* paths.mountIdOf(mountPoint);
    if (!now.ok || now.value !== mountId) return ok(false);
    return ok(!isFresh || (yield* remove({ path, mountPoint })).ok);
  },
);

export const removeVolumeDirectory = transition<Directory & Pick<VolumeDirectory, 'above'>, TakenAway>(
  'remove-volume-directory',
  function* ({ path, mountPoint, above }) {
    const mountId = yield* paths.mountIdOf(mountPoint);
    if (!mountId.ok) return doubtful<never>(mountId);
    if (mountId.value !== undefined) return ok({ isMounted: true });
    const removed = yield* remove({ path, mountPoint });
    if (!removed.ok) return removed;
    const tidied = above === undefined ? done : yield* removePodDirectories(path, above);
    return tidied.ok ? ok({ isMounted: false }) : doubtful<never>(tidied);
  },
);

function* fill(directory: VolumeDirectory, { mountId, isFresh }: Preparation): Program<Result<void>> {
  const made = yield* makeVolumeDirectory(directory.path);
  if (!made.ok) return made;
  const written = yield* writeVolumeData(directory.path, directory.data, isFresh);
  // A mounted mount point is the root of somebody's volume: neither its mode nor its existence is ours to set.
  if (!written.ok || mountId !== undefined) return written;
  return yield* directory.mountPointMadeBy === 'us'
    ? makeVolumeDirectory(directory.mountPoint)
    : removeMountPoint(directory.mountPoint);
}

/** A directory of ours for a volume, with `vol_data.json` in it. */
export const placeVolumeData = transition<Pick<VolumeDirectory, 'path' | 'data'>, void>(
  'place-volume-data',
  function* ({ path, data }) {
    const made = yield* makeVolumeDirectory(path);
    return made.ok ? yield* writeVolumeData(path, data) : made;
  },
);

function* remove({ path, mountPoint }: Directory): Program<Result<void>> {
  const removed = yield* removeFromWithin(path, mountPoint);
  return removed.ok ? removed : fail({ blocker: path, ...removed.failure, effect: 'unknown' });
}

function* removeFromWithin(path: AbsolutePath, mountPoint: AbsolutePath): Program<Result<void>> {
  const emptied = yield* removeMountPoint(mountPoint);
  if (!emptied.ok) return emptied;
  const erased = yield* eraseVolumeData(path);
  return erased.ok ? yield* paths.removeEmptyDirectory(path) : erased;
}

/** Drivers make the target a directory or a file, and remove it, or leave it (DR-09): an empty one is taken away. */
function* removeMountPoint(path: AbsolutePath): Program<Result<void>> {
  const facts = yield* paths.inspect(path);
  if (!facts.ok) return facts;
  const { kind, sizeBytes } = facts.value;
  if (kind === 'absent') return ok(undefined);
  if (kind === 'directory') return yield* paths.removeEmptyDirectory(path);
  if (kind === 'file' && sizeBytes === 0) return yield* paths.removeFile(path);
  const message = `left behind: a ${kind}, neither an empty file nor a directory`;
  return fail({ code: 'path-wrong-kind', message, effect: 'none', blocker: path });
}

/** A failure after which everything is as it was. */
export function unchanged(failed: { readonly ok: false; readonly failure: Parameters<typeof fail>[0] }) {
  return fail({ ...failed.failure, effect: 'none' });
}
