/** Replacing a file as a whole, by a temporary file and rename. Path brokers only. */
import { closeSync, constants, fchmodSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs';
import { attempt, unlinkIfThere } from './attempt.ts';
import { type OpenPath, type ChildPath, childIn, withChild } from '../path/path-walk.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, type Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';
import { temporaryName, type WriteOptions } from '../../temporary-file.ts';

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * Temporary file and rename. The temporary name is fixed, so that what a dead agent left is found and replaced: the
 * caller never writes one path twice at the same time.
 */
export function writeFile(path: AbsolutePath, content: Uint8Array, options: WriteOptions): Result<void> {
  return withChild(path, (child) => {
    const placed =
      options.exclusive === true
        ? makeFile(child, content, options)
        : replaceFile(child, path, content, options);
    if (!placed.ok || !options.durable) return placed;
    return attempt(`fsync ${path}`, 'unknown', () => syncDirectory(child.parent));
  });
}

function replaceFile(
  child: ChildPath,
  path: AbsolutePath,
  content: Uint8Array,
  options: WriteOptions,
): Result<void> {
  const temporary = childIn(child.parent, temporaryName(child.name));
  const written = attempt(`write ${temporary.name} for ${path}`, 'none', () =>
    writeAnew(temporary, content, options),
  );
  const placed = written.ok
    ? attempt(`rename to ${child.name}`, 'none', () => renameSync(temporary.path, child.path))
    : written;
  if (!placed.ok) attempt(`unlink ${temporary.name}`, 'none', () => unlinkIfThere(temporary));
  return placed;
}

/**
 * Under its own name: the directory may be somebody else's (a hostPath), who may have a file of the temporary name, or
 * of a file system without hard links, by which a temporary file could be put in a place without replacing.
 */
function makeFile(child: ChildPath, content: Uint8Array, options: WriteOptions): Result<void> {
  let descriptor: number;
  try {
    // The mode is whole from the first moment on: a broker has no umask.
    descriptor = openSync(child.path, NEW_FILE, options.mode);
  } catch (error) {
    return failErrno(error, `make ${child.name}`, 'none');
  }
  const written = attempt(`write ${child.name}`, 'none', () => fillAndClose(descriptor, content, options));
  if (written.ok) return done;
  const gone = attempt(`unlink ${child.name}`, 'unknown', () => unlinkIfThere(child));
  return gone.ok ? written : gone;
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

function writeNew(child: ChildPath, content: Uint8Array, options: WriteOptions): void {
  fillAndClose(openSync(child.path, NEW_FILE, 0o600), content, options);
}

function fillAndClose(descriptor: number, content: Uint8Array, { mode, durable }: WriteOptions): void {
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
