/** The entries of a directory, one after the other, with their names as they are on the disk. Path brokers only. */
import { type Dir, type Dirent, opendirSync } from 'node:fs';
import { errnoOf } from '../../errno.ts';
import { isAboutEntry } from '../path/file-system-death.ts';
import type { OpenPath } from '../path/path-walk.ts';

/**
 * One at a time: where a listing does not tell what its entries are (DT_UNKNOWN: NFS, XFS without ftype), Node.js asks
 * each of a batch itself, and with one that has gone it loses the others. The C library reads ahead all the same.
 */
const BATCH_ENTRIES = 1;

/** Throws what the kernel answers. */
export function openEntries(place: OpenPath): Dir {
  return opendirSync(place.path, { encoding: 'buffer' as BufferEncoding, bufferSize: BATCH_ENTRIES });
}

/** Null at the end. What has gone since it was listed is left out; throws what else the kernel answers. */
export function nextEntry(entries: Dir): Dirent | null {
  for (;;) {
    try {
      return entries.readSync();
    } catch (error) {
      if (!isAboutEntry(error) || errnoOf(error) !== 'ENOENT') throw error;
    }
  }
}

export function nameOf(entry: Dirent): Buffer {
  return entry.name as unknown as Buffer;
}
