/** Which entries of the registry directory are looked at, when there are more of them than drivers there can be. */
import { ok, type Result } from '../../../mount/failure.ts';
import { type AbsolutePath, type FileEntry, type Host, parseAbsolutePath } from '../../../mount/host.ts';
import { listFacts, traceOf } from './trace.ts';

export interface RegistryScan {
  /** All, or so many as are looked at, with their traces. */
  readonly sockets: ReadonlyMap<AbsolutePath, string>;
  /** What is to be told of the directory. */
  readonly refusal: string | undefined;
}

const SOCKETS_MAX = 256;

/**
 * Guarantees: a known driver stays, whatever is put beside it; of the rest sockets come before anything else, and older
 * ones before younger ones, so that neither files nor new sockets hide a driver.
 */
export async function scanRegistry(
  host: Pick<Host, 'readDirectoryFiles'>,
  directory: AbsolutePath,
  isKnown: (socket: AbsolutePath) => boolean,
): Promise<Result<RegistryScan>> {
  const entries = await listFacts(host, directory);
  if (!entries.ok) return entries;
  const sorted = entries.value
    .toSorted(socketsFirst)
    .flatMap(({ name, facts }) => {
      const socket = isLookedAt(name) ? parseAbsolutePath(`${directory}/${name}`) : undefined;
      return socket === undefined ? [] : [[socket, traceOf(facts)] as const];
    })
    .sort(([a], [b]) => Number(isKnown(b)) - Number(isKnown(a)));
  const left = sorted.length - SOCKETS_MAX;
  const refusal =
    `has ${entries.value.length} entries, and ${left} of them are not looked at: only ${SOCKETS_MAX} are, known ` +
    'drivers first, then the oldest sockets; remove what is no socket of a driver';
  return ok({ sockets: new Map(sorted.slice(0, SOCKETS_MAX)), refusal: left > 0 ? refusal : undefined });
}

/** What is hidden is somebody's who is not ready yet. */
export function isLookedAt(name: string): boolean {
  return !name.startsWith('.');
}

function socketsFirst(a: FileEntry, b: FileEntry): number {
  const isSocket = ({ facts }: FileEntry): number => Number(facts.kind === 'socket');
  const byName = a.name < b.name ? -1 : 1;
  return isSocket(b) - isSocket(a) || a.facts.modifiedMs - b.facts.modifiedMs || byName;
}
