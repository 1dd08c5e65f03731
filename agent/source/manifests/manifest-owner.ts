/**
 * Who may write manifests: whoever can has what root has, because hostPath volumes and drivers act for them. As ssh
 * does, a file that others can write is refused, and of a directory it is said.
 */
import { type AbsolutePath, type Host, parentOf, type PathFacts } from '../../../mount/host.ts';

const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/** Root's, or of the user whom the agent runs as, and writable by nobody else; otherwise what is wrong with it. */
export function whyUntrusted({ mode, uid }: Pick<PathFacts, 'mode' | 'uid'>): string | undefined {
  if (uid !== 0 && uid !== process.getuid?.()) return `it belongs to uid ${uid}, not to root`;
  if ((mode & WRITABLE_BY_OTHERS) === 0) return undefined;
  return `it can be written by others than its owner (mode ${mode.toString(8).padStart(4, '0')}): chmod go-w`;
}

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
