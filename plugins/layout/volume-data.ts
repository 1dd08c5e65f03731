/** The kubelet's `vol_data.json`: what a directory of a CSI volume says of itself. */
import { done, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { temporaryPath } from '../../mount/temporary-file.ts';
import { type Program, transition, type TransitionArgs } from '../../mount/transition.ts';
import { VOLUME_DATA } from './component.ts';
import {
  formatVolumeData,
  parseVolumeData,
  type VolumeData,
  type VolumeDataOwner,
} from './volume-data-text.ts';

const VOLUME_DATA_MODE = 0o644;
const VOLUME_DATA_BYTES_MAX = 65_536;

/** The file of the directory. */
export function volumeDataIn(directory: AbsolutePath): AbsolutePath {
  return below(directory, VOLUME_DATA);
}

/** Undefined: the file is missing, empty or damaged. A failure says that it could not be read now. */
export async function readVolumeData(
  host: Pick<Host, 'readFile'>,
  directory: AbsolutePath,
): Promise<Result<VolumeDataOwner | undefined>> {
  return ownerIn(await host.readFile(volumeDataIn(directory), VOLUME_DATA_BYTES_MAX));
}

/** `readVolumeData` as steps: who writes it in a transition about the same path does so before or after. */
export function* lookUpVolumeData(directory: AbsolutePath): Program<Result<VolumeDataOwner | undefined>> {
  return ownerIn(yield* paths.readFile(volumeDataIn(directory), VOLUME_DATA_BYTES_MAX));
}

function ownerIn(content: Result<Uint8Array>): Result<VolumeDataOwner | undefined> {
  if (content.ok) return ok(parseVolumeData(Buffer.from(content.value).toString('utf8')));
  return content.failure.code === 'path-missing' ? ok(undefined) : content;
}

/**
 * What stands as it is to be is not written: a pod that runs is published to again on a full disk, too (DR-07). In a
 * directory that `isFresh` nothing stands.
 */
export function* writeVolumeData(
  directory: AbsolutePath,
  data: VolumeData,
  isFresh = false,
): Program<Result<void>> {
  const content = Buffer.from(formatVolumeData(data));
  const found = isFresh ? undefined : yield* paths.readFile(volumeDataIn(directory), VOLUME_DATA_BYTES_MAX);
  if (found?.ok === true && content.equals(found.value)) return done;
  // Not durable: after a power cut the mount it speaks of is gone too, and the records are the memory.
  return yield* paths.writeFile(volumeDataIn(directory), content, { mode: VOLUME_DATA_MODE, durable: false });
}

/** Removes the file, and what a write that was cut short has left of it. A missing file is success. */
export function* eraseVolumeData(directory: AbsolutePath): Program<Result<void>> {
  const path = volumeDataIn(directory);
  const removed = yield* paths.removeFile(path);
  return removed.ok ? yield* paths.removeFile(temporaryPath(path)) : removed;
}

/** `eraseVolumeData` of the directory at the path. */
export const removeVolumeData = transition<TransitionArgs, void>('remove-volume-data', ({ path }) =>
  eraseVolumeData(path),
);
