/** Removing, renaming and linking files. Path brokers only: any of it may hang for ever. */
import { readlinkSync, renameSync, symlinkSync } from 'node:fs';
import { attempt, unlinkIfThere } from './attempt.ts';
import { isMissing } from './path-facts.ts';
import { withSpot } from '../path/path-walk.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, fail, ok, type Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';

export function removeFile(path: AbsolutePath): Result<void> {
  const removed = withSpot(path, (spot) => attempt(`unlink ${path}`, 'none', () => unlinkIfThere(spot)));
  return isMissing(removed) ? done : removed;
}

export function rename(from: AbsolutePath, to: AbsolutePath): Result<void> {
  return withSpot(from, (source) =>
    withSpot(to, (target) => {
      try {
        renameSync(source.path, target.path);
        return done;
      } catch (error) {
        const failed = failErrno(error, `rename ${from} to ${to}`, 'none');
        // rename(2) says EEXIST or ENOTEMPTY for the same thing, by file system.
        return errnoOf(error) === 'EEXIST'
          ? fail({ ...failed.failure, code: 'directory-not-empty' })
          : failed;
      }
    }),
  );
}

export function makeLink(path: AbsolutePath, text: string): Result<void> {
  return withSpot(path, (spot) => attempt(`symlink ${path}`, 'none', () => symlinkSync(text, spot.path)));
}

export function readLink(path: AbsolutePath): Result<string> {
  return withSpot(path, (spot) => {
    try {
      return ok(readlinkSync(spot.path));
    } catch (error) {
      return failErrno(error, `readlink ${path}`, 'none');
    }
  });
}
