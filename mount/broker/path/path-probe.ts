/** `Host.probeFileSystem`: does a mounted file system still answer, and can it be written? Path brokers only. */
import { closeSync } from 'node:fs';
import { errnoOf, failErrno } from '../../errno.ts';
import { ok, type Result } from '../../failure.ts';
import type { AbsolutePath, FileSystemProbe } from '../../host.ts';
import { deathOfError } from './file-system-death.ts';
import { findMount, seeFileSystem } from './mount-lookup.ts';
import { mountIdOf, openPath, type OpenPath, withChild } from './path-walk.ts';

/** See Host.probeFileSystem; never `silent`: whoever waits says that. */
export function probeFileSystem(path: AbsolutePath): Result<FileSystemProbe> {
  const probed = withChild(path, (child): Result<FileSystemProbe> => {
    let place: OpenPath;
    try {
      place = openPath(child);
    } catch (error) {
      const cause = deathOfError(error);
      if (cause !== undefined) return ok({ kind: 'dead', cause });
      return errnoOf(error) === 'ENOENT'
        ? ok({ kind: 'unmounted' })
        : failErrno(error, `look at ${child.name}`, 'none');
    }
    try {
      const mountId = mountIdOf(place);
      return mountId === mountIdOf(child.parent) ? ok({ kind: 'unmounted' }) : probe(place, mountId);
    } finally {
      closeSync(place.descriptor);
    }
  });
  return !probed.ok && probed.failure.code === 'path-missing' ? ok({ kind: 'unmounted' }) : probed;
}

function probe(place: OpenPath, mountId: number): Result<FileSystemProbe> {
  const { death, device, readOnly = false } = seeFileSystem(place, mountId);
  if (death !== undefined) return ok({ kind: 'dead', cause: death });
  if (device !== undefined) return ok({ kind: 'alive', readOnly, device });
  const entry = findMount(mountId);
  return entry.ok ? ok({ kind: 'alive', readOnly, device: entry.value.device }) : entry;
}
