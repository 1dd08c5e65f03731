/** Whether a socket is root's own: nobody else can have put it there, or put another in its place. */
import { type FailureCode, fail, ok, type Result } from '../../../mount/failure.ts';
import {
  type AbsolutePath,
  type Host,
  isBelow,
  parentOf,
  type PathFacts,
  wayTo,
} from '../../../mount/host.ts';
import type { SocketIdentity } from '../../../mount/remote-call.ts';
import type { Layout } from '../../layout/layout.ts';
import { shown } from '../wire/status.ts';

export interface FoundSocket {
  readonly identity: SocketIdentity;
  /**
   * Another one is another server. With the time of bind(2) besides the inode, because file systems give the number of
   * a removed file to the next one made.
   */
  readonly life: string;
}

export type TrustedLayout = Pick<Layout, 'root' | 'plugins' | 'registry'>;

/** `path-missing` when nothing is there; any other failure says why what is there is not trusted (DR-19, INV-19). */
export async function findSocket(
  host: Host,
  path: AbsolutePath,
  root: AbsolutePath | undefined,
): Promise<Result<FoundSocket>> {
  const directory = await trustDirectory(host, parentOf(path), root);
  if (!directory.ok) return directory;
  const facts = await host.inspect(path);
  if (!facts.ok) return facts;
  const { kind, uid, inode, modifiedMs } = facts.value;
  if (kind === 'absent') return refuse('path-missing', `${path} does not exist`);
  if (kind !== 'socket') return refuse('path-wrong-kind', `${path} is a ${kind}, not a socket`);
  if (uid !== 0) return refuse('endpoint-unsafe', `${path} belongs to uid ${uid}, not to root`);
  return ok({ identity: { path, inode }, life: `${inode} of ${modifiedMs}` });
}

/** What a registrar names must be where drivers put their sockets: it could name any socket of the machine. */
export function isPluginSocket({ plugins, registry }: TrustedLayout, path: AbsolutePath): Result<void> {
  if (isBelow(path, plugins) || isBelow(path, registry)) return ok(undefined);
  return refuse('endpoint-unsafe', `its endpoint ${path} is outside the plug-in directories`);
}

const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/**
 * Every directory from `/` on must be root's, and writable by nobody else: whoever may write in one of them may put
 * another tree in place of the next (sshd, StrictModes). A sticky one, /tmp, is let pass above the state root: there
 * what belongs to root stays root's.
 */
export async function trustDirectory(
  host: Host,
  path: AbsolutePath,
  root: AbsolutePath | undefined,
): Promise<Result<void>> {
  const way = await host.inspectWay(path);
  if (!way.ok) return way;
  const names = wayTo(path);
  for (const [index, facts] of way.value.entries()) {
    const at = names[index] ?? path;
    const isOurs = at === path || (root !== undefined && (at === root || isBelow(at, root)));
    const trusted = trustOne(at, facts, isOurs);
    if (!trusted.ok) return trusted;
  }
  return ok(undefined);
}

function trustOne(at: AbsolutePath, { kind, uid, mode }: PathFacts, isOurs: boolean): Result<void> {
  if (kind === 'absent') return refuse('path-missing', `${at} does not exist`);
  if (kind !== 'directory') return refuse('path-wrong-kind', `${at} is a ${kind}, not a directory`);
  const isClosed = (mode & WRITABLE_BY_OTHERS) === 0 || (!isOurs && (mode & STICKY) !== 0);
  if (uid === 0 && isClosed) return ok(undefined);
  return refuse('endpoint-unsafe', `${at} must belong to root and be writable by nobody else`);
}

/** The text may hold what a stranger sent. */
function refuse(code: FailureCode, message: string): Result<never> {
  return fail({ code, message: shown(message), effect: 'none' });
}
