/** Single system calls as results. Path brokers only. */
import { rmdirSync, unlinkSync } from 'node:fs';
import type { ChildPath } from '../path/path-walk.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, type Effect, type Result } from '../../failure.ts';

export function attempt(doing: string, effect: Effect, act: () => void): Result<void> {
  try {
    act();
    return done;
  } catch (error) {
    return failErrno(error, doing, effect);
  }
}

export function unlinkIfThere(child: ChildPath): void {
  try {
    unlinkSync(child.path);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}

/** rmdir(2), never of a mount point. Absent is success. */
export function removeDirectoryAt(path: string | Buffer, shown: string, effect: Effect): Result<void> {
  try {
    rmdirSync(path);
    return done;
  } catch (error) {
    return errnoOf(error) === 'ENOENT' ? done : failErrno(error, `rmdir ${shown}`, effect);
  }
}
