/** Can what is mounted still be used? Judged by what the kernel answers, and by what was mounted there. */
import { type DeathCause, type Effect, type Failure, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, FileSystemProbe, Host, MountIdentity } from '../../mount/host.ts';
import type { FileSystemTerms } from '../traits/volume-traits.ts';

/** `silent`: it has not answered in time; nobody knows whether it will. */
export type FileSystemFinding = 'usable' | 'silent' | DeathCause;

export interface FileSystemPlace {
  readonly path: AbsolutePath;
  readonly spec: FileSystemTerms;
  /** As it was when it was made; undefined: nobody knows. */
  readonly mount: MountIdentity | undefined;
  /** The pod has it for reading only. */
  readonly readOnly?: boolean;
}

/**
 * Read-only counts as dead where it is to be written and could be when it was made: ext4 and btrfs do so by themselves
 * after an error, and the mount table goes on saying `rw` (MT-06). Nothing mounted is not dead: others look for that.
 */
export async function findDeath(
  host: Pick<Host, 'probeFileSystem'>,
  place: FileSystemPlace,
): Promise<Result<FileSystemFinding>> {
  const probed = await host.probeFileSystem(place.path);
  return probed.ok ? ok(findingOf(probed.value, place)) : probed;
}

/** What an answer means there. Pure. */
export function findingOf(probe: FileSystemProbe, place: Omit<FileSystemPlace, 'path'>): FileSystemFinding {
  if (probe.kind === 'silent') return 'silent';
  if (probe.kind === 'dead') return probe.cause;
  const isLocked = probe.kind === 'alive' && probe.readOnly && !wasReadOnly(place);
  return isLocked ? 'read-only' : 'usable';
}

/** What is dead about a mount that was made just now, as its first look shows it; undefined: it serves. Pure. */
export function deathAtFirst(
  { death, turnedReadOnly }: { readonly death?: DeathCause; readonly turnedReadOnly?: true },
  terms: Pick<FileSystemPlace, 'spec' | 'readOnly'>,
): DeathCause | undefined {
  return death ?? (turnedReadOnly === true && !isForReading(terms) ? 'read-only' : undefined);
}

function wasReadOnly(place: Omit<FileSystemPlace, 'path'>): boolean {
  return isForReading(place) || place.mount?.readOnly === true;
}

function isForReading({ spec, readOnly }: Pick<FileSystemPlace, 'spec' | 'readOnly'>): boolean {
  const { accessModes, mountOptions } = spec;
  const isForReaders = accessModes.length > 0 && accessModes.every((mode) => mode === 'ReadOnlyMany');
  return spec.readOnly || readOnly === true || isForReaders || mountOptions.includes('ro');
}

const MEANING: Readonly<Record<DeathCause, string>> = {
  'shut-down': 'it was shut down',
  'emergency-read-only': 'an error made it read-only (emergency_ro)',
  'read-only': 'it has become read-only',
  'daemon-gone': 'its daemon is gone (ENOTCONN)',
  'device-gone': 'its device is gone (ENODEV)',
  stale: 'its handle is stale (ESTALE)',
  damaged: 'it is damaged (EUCLEAN)',
  'input-output': 'it answers with I/O errors (EIO)',
};

/** The failure that tells a finding which is not `usable`. */
export function deathFailure(
  path: AbsolutePath,
  finding: Exclude<FileSystemFinding, 'usable'>,
  effect: Effect = 'none',
  deadDevice?: string,
): Failure {
  if (finding === 'silent') {
    const message = `the file system at ${path} does not answer`;
    return { code: 'deadline-passed', message, effect, blocker: path };
  }
  const message = `the file system at ${path} is dead: ${MEANING[finding]}`;
  const device = deadDevice === undefined ? {} : { deadDevice };
  return { code: 'file-system-dead', message, effect, blocker: path, death: finding, ...device };
}
