/** Small texts and listings of /proc and /sys, where what is asked about may be gone by now. */
import { readdirSync, readFileSync } from 'node:fs';
import { errnoOf } from '../../errno.ts';

/** What reading about a process says when the process has ended. */
export const ENDED: ReadonlySet<string> = new Set(['ENOENT', 'ESRCH', 'EINVAL']);

export function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (ENDED.has(errnoOf(error))) return [];
    throw error;
  }
}

/** Undefined when there is no such file, no such process, or no such device any more. */
export function readOrNothing(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const errno = errnoOf(error);
    if (ENDED.has(errno) || errno === 'ENODEV' || errno === 'ENOTDIR') return undefined;
    throw error;
  }
}
