/** Who waits for a lock of flock(2), as the kernel tells it. */
import { readFileSync, statSync } from 'node:fs';
import { until } from '../until.ts';

/** Settles when somebody waits for the lock of this file: behind an arrow in /proc/locks (proc_locks(5)). */
export async function lockWaiter(path: string): Promise<void> {
  const inode = `:${statSync(path).ino} `;
  await until(`somebody waits for ${path}`, () =>
    readFileSync('/proc/locks', 'latin1')
      .split('\n')
      .some((line) => line.includes(' -> FLOCK ') && line.includes(inode)),
  );
}
