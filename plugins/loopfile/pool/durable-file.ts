/** Files that survive a crash: whole or not at all, and on disk when the promise settles. */
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Replaces `path` through `<path>.tmp`, fsync and rename. One writer at a time. */
export async function writeDurably(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** A new file that is all hole: it takes no room until it is written to. */
export async function makeSparseFile(path: string, sizeBytes: number): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.truncate(sizeBytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A rename is only durable once its directory is (fsync(2)). */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
