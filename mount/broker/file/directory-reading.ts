/** Listing a directory, and reading all its files at once. Path brokers only. */
import { lstatSync, opendirSync, readdirSync } from 'node:fs';
import { stampOf } from './content-stamp.ts';
import { refuseAnother } from './file-identity.ts';
import { failTooLarge, readChild } from './file-reading.ts';
import { factsOf } from './path-facts.ts';
import { isAboutEntry } from '../path/file-system-death.ts';
import { type OpenPath, childIn, withDirectory } from '../path/path-walk.ts';
import { failErrno } from '../../errno.ts';
import { ok, type Result } from '../../failure.ts';
import type { AbsolutePath, DirectoryReading, FileEntry } from '../../host.ts';

export function listDirectory(path: AbsolutePath, entriesMax: number): Result<readonly string[]> {
  return withDirectory(path, (place) => namesIn(place, path, entriesMax));
}

function namesIn(place: OpenPath, path: AbsolutePath, entriesMax: number): Result<readonly string[]> {
  const names: string[] = [];
  try {
    const directory = opendirSync(place.path);
    try {
      for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
        names.push(entry.name);
        if (names.length > entriesMax) return failTooLarge(path, `has more than ${entriesMax} entries`);
      }
    } finally {
      directory.closeSync();
    }
  } catch (error) {
    return isAboutEntry(error)
      ? plainNamesIn(place, path, entriesMax)
      : failErrno(error, `list ${path}`, 'none');
  }
  return ok(names);
}

/** Without a look at what they are: one of them may have gone by now. */
function plainNamesIn(place: OpenPath, path: AbsolutePath, entriesMax: number): Result<readonly string[]> {
  const names = readdirSync(place.path);
  return names.length > entriesMax ? failTooLarge(path, `has more than ${entriesMax} entries`) : ok(names);
}

export function readDirectoryFiles(
  path: AbsolutePath,
  reading: DirectoryReading,
  stampAgeMs: number,
): Result<readonly FileEntry[]> {
  const { entriesMax, fileBytesMax, known, contentBytesMax = Number.POSITIVE_INFINITY, only } = reading;
  return withDirectory(path, (place) => {
    const another = refuseAnother(place, path, reading.identity);
    if (another !== undefined) return another;
    const names = only === undefined ? namesIn(place, path, entriesMax) : ok([only]);
    if (!names.ok) return names;
    const seen = names.value.flatMap((name): Omit<FileEntry, 'content'>[] => {
      const stats = lstatSync(childIn(place, name).path, { throwIfNoEntry: false, bigint: true });
      // Gone since it was listed: not there.
      if (stats === undefined) return [];
      const facts = factsOf(stats);
      // Taken before the file is read: one that is written meanwhile has another stamp the next time.
      return [{ name, facts, stamp: facts.kind === 'file' ? stampOf(stats, stampAgeMs) : undefined }];
    });
    let left = contentBytesMax;
    return ok(
      seen
        .sort((a, b) => a.facts.sizeBytes - b.facts.sizeBytes)
        .map(({ name, facts, stamp }): FileEntry => {
          const isRead = facts.kind === 'file' && (stamp === undefined || stamp !== known?.get(name));
          if (!isRead) return { name, facts, content: undefined, stamp };
          // What is too long for one answer is refused by its own length, which the caller wants to know.
          const isTooLong = facts.sizeBytes > fileBytesMax;
          // Without room nothing is read: a size of 0 does not say that there is no content.
          if (!isTooLong && (left <= 0 || facts.sizeBytes > left))
            return { name, facts, content: undefined, stamp: undefined, unread: true };
          const content = readChild(childIn(place, name), fileBytesMax);
          if (content.ok) left -= content.value.length;
          return { name, facts, content, stamp: content.ok ? stamp : undefined };
        }),
    );
  });
}
