/** The kubelet's `vol_data.json`: what a directory of a CSI volume says of itself. */
import type { Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';
import { temporaryPath } from '../../mount/temporary-file.ts';

export const VOLUME_DATA = 'vol_data.json';
const VOLUME_DATA_MODE = 0o644;

export type VolumeData = Readonly<Record<string, string>>;

/** Keys in order: the same volume has the same bytes. */
export async function writeVolumeData(
  host: Host,
  directory: AbsolutePath,
  data: VolumeData,
): Promise<Result<void>> {
  const content = Buffer.from(`${JSON.stringify(data, Object.keys(data).sort())}\n`);
  // Not durable: after a power cut the mount it speaks of is gone too, and the records are the memory.
  return host.writeFile(below(directory, VOLUME_DATA), content, { mode: VOLUME_DATA_MODE, durable: false });
}

/** With what a write that was cut short leaves. None is success. */
export async function removeVolumeData(host: Host, directory: AbsolutePath): Promise<Result<void>> {
  const path = below(directory, VOLUME_DATA);
  const removed = await host.removeFile(path);
  return removed.ok ? host.removeFile(temporaryPath(path)) : removed;
}
