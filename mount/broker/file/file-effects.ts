/** Removing, renaming and linking files. Path brokers only: any of it may hang for ever. */
import { readlinkSync, renameSync, symlinkSync } from 'node:fs';
import { attempt, unlinkIfThere } from './attempt.ts';
import { isMissing } from './path-facts.ts';
import { withChild } from '../path/path-walk.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, fail, ok, type Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';

export function removeFile(path: AbsolutePath): Result<void> {
  const removed = withChild(path, (child) => attempt(`unlink ${path}`, 'none', () => unlinkIfThere(child)));
  return isMissing(removed) ? done : removed;
}

export function rename(from: AbsolutePath, to: AbsolutePath): Result<void> {
  return withChild(from, (source) =>
    withChild(to, (target) => {
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
  return withChild(path, (child) => attempt(`symlink ${path}`, 'none', () => symlinkSync(text, child.path)));
}

export function readLink(path: AbsolutePath): Result<string> {
  return withChild(path, (child) => {
    try {
      return ok(readlinkSync(child.path));
    } catch (error) {
      return failErrno(error, `readlink ${path}`, 'none');
    }
  });
}
