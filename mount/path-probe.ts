/** `Host.probeFileSystem`: does a mounted file system still answer, and can it be written? Path brokers only. */
import { closeSync, statfsSync } from 'node:fs';
import { errnoOf } from './errno.ts';
import { type DeathCause, ok, type Result } from './failure.ts';
import type { AbsolutePath, FileSystemProbe } from './host.ts';
import { deathInOptions, deathOf, deathOfError, isReadOnly } from './file-system-death.ts';
import { findMount } from './path-mount.ts';
import { mountIdOf, openPlace, type Place, withSpot } from './path-walk.ts';

/** ext2, 3 and 4 (statfs(2)): of them the table is asked, too. */
const EXT_MAGIC = 0xef53;

/** See Host.probeFileSystem; never `silent`: whoever waits says that. */
export function probeFileSystem(path: AbsolutePath): Result<FileSystemProbe> {
  const probed = withSpot(path, (spot): Result<FileSystemProbe> => {
    let place: Place;
    try {
      place = openPlace(spot);
    } catch (error) {
      return ok(errnoOf(error) === 'ENOENT' ? { kind: 'unmounted' } : deadOf(error));
    }
    try {
      const mountId = mountIdOf(place);
      if (mountId === mountIdOf(spot.parent)) return ok({ kind: 'unmounted' });
      const death = deathOf(place) ?? deathInTable(place, mountId);
      return ok(death === undefined ? { kind: 'alive', readOnly: isReadOnly(place) } : dead(death));
    } finally {
      closeSync(place.descriptor);
    }
  });
  return !probed.ok && probed.failure.code === 'path-missing' ? ok({ kind: 'unmounted' }) : probed;
}

function deathInTable(place: Place, mountId: number): DeathCause | undefined {
  try {
    if (statfsSync(place.path).type !== EXT_MAGIC) return undefined;
  } catch (error) {
    return deathOfError(error);
  }
  const entry = findMount(mountId);
  return entry.ok ? deathInOptions(entry.value.superOptions) : undefined;
}

function dead(cause: DeathCause): FileSystemProbe {
  return { kind: 'dead', cause };
}

function deadOf(error: unknown): FileSystemProbe {
  const cause = deathOfError(error);
  return cause === undefined ? { kind: 'alive', readOnly: false } : dead(cause);
}
