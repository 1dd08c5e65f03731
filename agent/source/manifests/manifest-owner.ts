/**
 * Who may write manifests: whoever can has what root has, because hostPath volumes and drivers act for them. As ssh
 * does, a file that others can write is refused, and of a directory it is said.
 */
import { type AbsolutePath, type Host, parentOf } from '../../../mount/host.ts';
import { whyUntrusted } from '../../../mount/process/file-owner.ts';

const STICKY = 0o1000;

/** One sentence for the directory and each one above it in which others could put something else in its place. */
export async function directoryWarnings(
  host: Pick<Host, 'inspect'>,
  directory: AbsolutePath,
): Promise<readonly string[]> {
  const warnings: string[] = [];
  for (let path = directory; ; path = parentOf(path)) {
    const facts = await host.inspect(path);
    if (facts.ok && facts.value.kind === 'directory') {
      // In a directory with the sticky bit everybody may make entries, and replace none of others.
      const isSafe = path !== directory && (facts.value.mode & STICKY) !== 0;
      const { uid, mode } = facts.value;
      const wrong = whyUntrusted({ uid, mode: isSafe ? 0 : mode });
      if (wrong !== undefined)
        warnings.push(`manifests are read from ${directory}, but of ${path}: ${wrong}`);
    }
    if (path === '/') return warnings;
  }
}
