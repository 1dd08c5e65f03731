/** Reading regular files, and never anything else. Path brokers only. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { factsOf } from './path-facts.ts';
import { openPath, type OpenPath, type ChildPath, withChild } from '../path/path-walk.ts';
import { failErrno } from '../../errno.ts';
import { fail, ok, type Result } from '../../failure.ts';
import type { AbsolutePath, PathKind } from '../../host.ts';

/** What a file without a size is read into first: its bound may be more than there is memory. */
const UNSIZED_BYTES = 65_536;

export function readFile(path: AbsolutePath, bytesMax: number): Result<Uint8Array> {
  return withChild(path, (child) => readChild(child, bytesMax));
}

/** Opens the place first and the file through it, so that no device, fifo or link is ever opened for reading. */
export function readChild(child: ChildPath, bytesMax: number): Result<Uint8Array> {
  try {
    const place = openPath(child);
    try {
      const { kind } = factsOf(fstatSync(place.descriptor));
      if (kind !== 'file') return failKind(child.name, kind);
      return readPlace(place, child.name, bytesMax);
    } finally {
      closeSync(place.descriptor);
    }
  } catch (error) {
    return failErrno(error, `read ${child.name}`, 'none');
  }
}

function readPlace(place: OpenPath, name: string, bytesMax: number): Result<Uint8Array> {
  const descriptor = openSync(place.path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = fstatSync(descriptor);
    if (size > bytesMax) return failTooLarge(name, `has ${size} bytes, more than ${bytesMax}`);
    // One byte more than it may have, so that growth is seen. Size 0 may be a file of proc or sysfs.
    let buffer = new Uint8Array((size === 0 ? Math.min(bytesMax, UNSIZED_BYTES) : size) + 1);
    let length = 0;
    while (length < buffer.length) {
      const read = readSync(descriptor, buffer, length, buffer.length - length, null);
      if (read === 0) return ok(buffer.slice(0, length));
      length += read;
      if (size === 0 && length === buffer.length) buffer = widened(buffer, bytesMax + 1);
    }
    return failTooLarge(name, 'grew while it was read, or has too many bytes');
  } finally {
    closeSync(descriptor);
  }
}

/** Twice as long, or as long as it may be. */
function widened(bytes: Uint8Array<ArrayBuffer>, lengthMax: number): Uint8Array<ArrayBuffer> {
  const wide = new Uint8Array(Math.min(2 * bytes.length, lengthMax));
  wide.set(bytes);
  return wide;
}

function failKind(name: string, kind: PathKind): Result<never> {
  return fail({
    code: kind === 'symlink' ? 'path-unsafe' : 'path-wrong-kind',
    message: `${name} is a ${kind}`,
    effect: 'none',
  });
}

export function failTooLarge(name: string, why: string): Result<never> {
  return fail({ code: 'too-large', message: `${name} ${why}`, effect: 'none' });
}
