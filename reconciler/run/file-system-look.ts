/** At each resync: do the file systems of the volumes that stand still serve? What is found is told, and planned by. */
import type { Belief } from '../model/belief.ts';
import type { Failure } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';
import { deathFailure, type FileSystemPlace, findDeath } from '../../plugins/guard/dead-file-system.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { stagingPathOf } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualVolume, Sickness } from '../model/actual-state.ts';
import type { Log } from '../../mount/process/log.ts';

export interface FileSystemLookParts {
  readonly host: Pick<Host, 'probeFileSystem'>;
  readonly layout: Layout;
  readonly log: Log;
  readonly belief: Belief;
  readonly isBusy: (volume: VolumeId) => boolean;
  readonly onFound: (volume: VolumeId) => void;
}

/**
 * Asks about all volumes and comes back at once: one that hangs holds up no other, and is not asked again before it has
 * answered. What changed while it was asked is left for the next time.
 */
export function createFileSystemLook(parts: FileSystemLookParts): () => void {
  const { host, layout, log, belief } = parts;
  const open = new Set<VolumeId>();

  async function look(before: ActualVolume): Promise<void> {
    const { id } = before.spec;
    open.add(id);
    const sickness = await sicknessOf(before);
    open.delete(id);
    const now = belief.volumes.get(id);
    if (now !== before || parts.isBusy(id) || sickness === 'unknown') return;
    if (isSame(sickness, before.sickness)) return;
    belief.observe({ ...before, sickness });
    if (sickness === undefined) log.info('file system serves again', { volume: id });
    else {
      const { code, message } = sickness.failure;
      log.warn('file system does not serve', { volume: id, code, message });
    }
    parts.onFound(id);
  }

  /** The stage first: it decides about others. Places of the same device show the same file system. */
  async function sicknessOf(volume: ActualVolume): Promise<Sickness | undefined | 'unknown'> {
    const asked = new Set<string>();
    for (const { of, device, ...place } of placesOf(volume)) {
      if (asked.has(device)) continue;
      asked.add(device);
      const found = await findDeath(host, place);
      if (!found.ok) return 'unknown';
      if (found.value === 'usable') continue;
      const failure: Failure = deathFailure(place.path, found.value);
      return { failure, of: found.value === 'silent' ? 'place' : of };
    }
    return undefined;
  }

  function placesOf({ spec, staged, stagedMount, publications }: ActualVolume) {
    const places: (FileSystemPlace & Pick<Sickness, 'of'> & { readonly device: string })[] = [];
    const fileSystem = traitsOf(spec).fileSystem?.(spec);
    if (fileSystem === undefined) return places;
    const staging = stagingPathOf(spec, layout);
    if (staged.kind !== 'absent' && stagedMount !== undefined && staging !== undefined) {
      const { device } = stagedMount;
      places.push({ path: staging, spec: fileSystem, mount: stagedMount, of: 'stage', device });
    }
    for (const { presence, mount, spec: place } of publications.values()) {
      if (presence.kind !== 'present' || mount === undefined) continue;
      const { readOnly } = place;
      const path = layout.mountPoint(spec, place);
      places.push({ path, spec: fileSystem, mount, of: 'place', device: mount.device, readOnly });
    }
    return places;
  }

  return () => {
    for (const volume of belief.volumes.values())
      if (!open.has(volume.spec.id) && placesOf(volume).length > 0) void look(volume);
  };
}

function isSame(a: Sickness | undefined, b: Sickness | undefined): boolean {
  return a?.of === b?.of && a?.failure.message === b?.failure.message && a?.failure.code === b?.failure.code;
}
