/** Who waits for a lock of flock(2). */
import { readFileSync } from 'node:fs';
import { descendantsOf } from '../demo/machine.ts';
import { until } from '../until.ts';

/**
 * Settles when a flock(1) of this process sleeps, as it does only while it waits. In a process namespace of its own
 * /proc/locks shows no lock of one that has ended, as has who took this one.
 */
export async function lockWaiter(): Promise<void> {
  await until('a flock waits', () => descendantsOf(process.pid).some(({ pid }) => isSleepingFlock(pid)));
}

function isSleepingFlock(pid: number): boolean {
  try {
    return /^\d+ \(flock\) S /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}
