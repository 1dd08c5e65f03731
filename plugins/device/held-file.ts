/** The file that a device is bound to, and what else may lie where a device was. */
import { done, fail, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import { temporaryPath } from '../../mount/temporary-file.ts';

/** The kubelet's. */
const MODE = 0o640;

export function makeHeldFile(host: Host, held: AbsolutePath): Promise<Result<void>> {
  return host.writeFile(held, new Uint8Array(), { mode: MODE, durable: false });
}

/** The file our bind lies on, with what a crash inside Host.writeFile leaves. Only an empty one is ours. */
export async function removeHeldFile(host: Host, held: AbsolutePath): Promise<Result<void>> {
  const removed = await removeLeft(host, held);
  if (!removed.ok) return removed;
  return host.removeFile(temporaryPath(held));
}

/**
 * What a driver leaves where a device was: nothing, an empty file it had bound the device to, the node it made, or a
 * directory. Nothing of that holds data; anything else is named and stays.
 */
export async function removeLeft(host: Host, path: AbsolutePath): Promise<Result<void>> {
  const facts = await host.inspect(path);
  if (!facts.ok) return facts;
  const { kind, sizeBytes } = facts.value;
  if (kind === 'absent') return done;
  if (kind === 'directory') return host.removeEmptyDirectory(path);
  if ((kind === 'file' && sizeBytes === 0) || kind === 'block') {
    const mountId = await host.mountIdOf(path);
    if (!mountId.ok) return mountId;
    if (mountId.value === undefined) return host.removeFile(path);
    return fail({ code: 'mount-busy', message: `${path} is still mounted`, effect: 'none', blocker: path });
  }
  const message = `left behind: a ${kind} at ${path}, neither an empty file nor a device`;
  return fail({ code: 'path-wrong-kind', message, effect: 'none', blocker: path });
}
