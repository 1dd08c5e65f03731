/** The staging directory of a volume, when nothing tells any more whose it was. */
import { done, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';
import { GLOBAL_MOUNT } from './component.ts';
import { removeUnlessInUse } from './pod-directory.ts';
import { removeVolumeData } from './volume-data.ts';

/**
 * Removes `globalmount`, a vol_data.json that says nothing, and the directory, as far as they are empty. A mounted
 * `globalmount`, or one with files in it, keeps everything as it is.
 */
export async function removeEmptyDeviceDirectory(host: Host, directory: AbsolutePath): Promise<Result<void>> {
  const mountPoint = await host.removeEmptyDirectory(below(directory, GLOBAL_MOUNT));
  if (!mountPoint.ok && mountPoint.failure.code !== 'path-missing') return done;
  const forgotten = await host.perform(removeVolumeData, { path: directory });
  return forgotten.ok ? removeUnlessInUse(host, directory) : forgotten;
}
