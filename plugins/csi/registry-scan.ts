/** Which entries of the registry directory are looked at, when there are more of them than drivers there can be. */
import { ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, type FileEntry, type Host, parseAbsolutePath } from '../../mount/host.ts';

export interface RegistryScan {
  /** All, or so many as are looked at. */
  readonly sockets: readonly AbsolutePath[];
  /** What is to be told of the directory. */
  readonly refusal: string | undefined;
}

const SOCKETS_MAX = 256;
const ENTRIES_MAX = 10_000;

/**
 * Guarantees: a known driver stays, whatever is put beside it; of the rest sockets come before anything else, and older
 * ones before younger ones, so that neither files nor new sockets hide a driver.
 */
export async function scanRegistry(
  host: Pick<Host, 'listDirectory' | 'readDirectoryFiles'>,
  directory: AbsolutePath,
  isKnown: (socket: AbsolutePath) => boolean,
): Promise<Result<RegistryScan>> {
  const socketOf = (name: string): AbsolutePath[] => {
    const socket = name.startsWith('.') ? undefined : parseAbsolutePath(`${directory}/${name}`);
    return socket === undefined ? [] : [socket];
  };
  const names = await host.listDirectory(directory, SOCKETS_MAX);
  if (names.ok) return ok({ sockets: names.value.flatMap(socketOf), refusal: undefined });
  if (names.failure.code !== 'too-large') return names;
  const bounds = { entriesMax: ENTRIES_MAX, fileBytesMax: Number.MAX_SAFE_INTEGER, contentBytesMax: 0 };
  const entries = await host.readDirectoryFiles(directory, bounds);
  if (!entries.ok) return entries;
  const sorted = entries.value
    .toSorted(socketsFirst)
    .flatMap(({ name }) => socketOf(name))
    .sort((a, b) => Number(isKnown(b)) - Number(isKnown(a)));
  const left = sorted.length - SOCKETS_MAX;
  const refusal =
    `has ${entries.value.length} entries, and ${left} of them are not looked at: only ${SOCKETS_MAX} are, known ` +
    'drivers first, then the oldest sockets; remove what is no socket of a driver';
  return ok({ sockets: sorted.slice(0, SOCKETS_MAX), refusal: left > 0 ? refusal : undefined });
}

function socketsFirst(a: FileEntry, b: FileEntry): number {
  const isSocket = ({ facts }: FileEntry): number => Number(facts.kind === 'socket');
  const byName = a.name < b.name ? -1 : 1;
  return isSocket(b) - isSocket(a) || a.facts.modifiedMs - b.facts.modifiedMs || byName;
}
