/** Replacing a file as a whole, by a temporary file and rename. Path brokers only. */
import {
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { attempt, unlinkIfThere } from './attempt.ts';
import { type OpenPath, type ChildPath, childIn, withChild } from '../path/path-walk.ts';
import { errnoOf } from '../../errno.ts';
import { done, type Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';
import { temporaryName, type WriteOptions } from '../../temporary-file.ts';

/**
 * Temporary file and rename. The temporary name is fixed, so that what a dead agent left is found and replaced: the
 * caller never writes one path twice at the same time.
 */
export function writeFile(path: AbsolutePath, content: Uint8Array, options: WriteOptions): Result<void> {
  return withChild(path, (child) => {
    const temporary = childIn(child.parent, temporaryName(child.name));
    const written = attempt(`write ${temporary.name} for ${path}`, 'none', () =>
      writeAnew(temporary, content, options),
    );
    const placed = written.ok ? putInPlace(temporary, child, options) : written;
    if (!placed.ok) {
      attempt(`unlink ${temporary.name}`, 'none', () => unlinkIfThere(temporary));
      return placed;
    }
    return options.durable ? attempt(`fsync ${path}`, 'unknown', () => syncDirectory(child.parent)) : done;
  });
}

function putInPlace(temporary: ChildPath, child: ChildPath, options: WriteOptions): Result<void> {
  if (options.exclusive !== true) {
    return attempt(`rename to ${child.name}`, 'none', () => renameSync(temporary.path, child.path));
  }
  // link(2) is the rename that never replaces.
  const linked = attempt(`link to ${child.name}`, 'none', () => linkSync(temporary.path, child.path));
  return linked.ok
    ? attempt(`unlink ${temporary.name}`, 'unknown', () => unlinkSync(temporary.path))
    : linked;
}

/** A dead agent has hardly ever left one: that one is in the way is asked when it is. */
function writeAnew(child: ChildPath, content: Uint8Array, options: WriteOptions): void {
  try {
    return writeNew(child, content, options);
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
  unlinkIfThere(child);
  writeNew(child, content, options);
}

function writeNew(child: ChildPath, content: Uint8Array, { mode, durable }: WriteOptions): void {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const descriptor = openSync(child.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (let written = 0; written < content.length; ) {
      written += writeSync(descriptor, content, written, content.length - written);
    }
    fchmodSync(descriptor, mode);
    if (durable) fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function syncDirectory(place: OpenPath): void {
  const descriptor = openSync(place.path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
