/** Who may write a file by which root acts, and who may read one that proves who root is. As ssh judges its files. */
import type { PathFacts } from '../host.ts';

const WRITABLE_BY_OTHERS = 0o022;
const READABLE_BY_OTHERS = 0o044;

/** Root's, or of the user whom the agent runs as, and writable by nobody else; otherwise what is wrong with it. */
export function whyUntrusted({ mode, uid }: Pick<PathFacts, 'mode' | 'uid'>): string | undefined {
  if (uid !== 0 && uid !== process.getuid?.()) return `it belongs to uid ${uid}, not to root`;
  if ((mode & WRITABLE_BY_OTHERS) === 0) return undefined;
  return `it can be written by others than its owner (mode ${octal(mode)}): chmod go-w`;
}

/** Undefined when nobody but its owner can read it; otherwise what is wrong with a secret. */
export function whyRevealed({ mode }: Pick<PathFacts, 'mode'>): string | undefined {
  if ((mode & READABLE_BY_OTHERS) === 0) return undefined;
  return `it can be read by others than its owner (mode ${octal(mode)}): chmod go-r`;
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}
