/** Is it the directory that it was? Told by what other pods have by now, and by what was there before. */
import { done, fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import { nameOfRoot } from '../../mount/text/root-name.ts';
import type { Layout } from '../layout/layout.ts';
import type { PublicationCall, VolumeCall } from '../plugin.ts';

const MACHINE = '/' as AbsolutePath;

/** A directory of a file system. */
interface Place {
  readonly device: string;
  readonly root: string;
}

/**
 * `volume-in-use` where another pod has another directory than `path`: a disk may have been unmounted since, and what
 * is left of it is a directory of the node's own; or a link leads elsewhere. What is bound for the pod stays, and one
 * that was deleted is no other's any more. `path`: free of links.
 */
export async function refuseOtherDirectory(
  { host, layout }: { readonly host: Pick<Host, 'readMountTable'>; readonly layout: Layout },
  { spec, publication, companions }: Pick<PublicationCall, 'spec' | 'publication' | 'companions'>,
  path: AbsolutePath,
): Promise<Result<void>> {
  const others = (companions?.() ?? []).filter(({ key }) => key !== publication.key);
  if (others.length === 0) return done;
  const table = await host.readMountTable(MACHINE);
  if (!table.ok) return table;
  const now = placeOf(table.value, path);
  if (now === undefined || table.value.named(layout.target(spec, publication)).length > 0) return done;
  for (const other of others) {
    const target = layout.target(spec, other);
    const theirs = table.value.at(target);
    const isSame = theirs.some((one) => one.device === now.device && one.root === now.root);
    const [lowest] = theirs;
    if (isSame || lowest === undefined || nameOfRoot(lowest.root) !== lowest.root) continue;
    const message =
      `${path} is another directory now (${now.root} of device ${now.device}) than ` +
      `another pod has of the volume (${lowest.root} of device ${lowest.device})`;
    return fail({
      code: 'volume-in-use',
      message: message.slice(0, 1_024),
      effect: 'none',
      blocker: target,
    });
  }
  return done;
}

/**
 * Is something mounted at `path`? `disk-not-mounted` where nothing is, and something was when the volume was staged: a
 * disk that failed or is mounted late leaves a directory of the node's own. Which file system it is is not asked, so
 * that one made anew is no fault. `path`: free of links.
 */
export async function isMountedOn(
  host: Pick<Host, 'mountIdOf'>,
  { facts }: Pick<VolumeCall, 'facts'>,
  path: AbsolutePath,
): Promise<Result<boolean>> {
  const seen = await host.mountIdOf(path);
  if (!seen.ok) return seen;
  const isMounted = seen.value !== undefined;
  if (isMounted || facts.wasMountPoint !== true) return ok(isMounted);
  const shown = path.slice(0, 200);
  const message =
    `nothing is mounted at ${shown}, and something was when the volume was set up: mount it, ` +
    'and this goes on by itself; if the directory itself is meant now, run ' +
    `mount --bind ${shown} ${shown}, or delete all pods of the volume before new ones are made`;
  return fail({ code: 'disk-not-mounted', message, effect: 'none', blocker: path });
}

/** Undefined where that is not to be told: nobody has asked yet for what is to be mounted there. */
function placeOf(table: MountTable, path: AbsolutePath): Place | undefined {
  const mount = table.way(path).at(-1);
  if (mount === undefined || mount.fsType === 'autofs') return undefined;
  const rest = mount.target === '/' ? path : path.slice(mount.target.length);
  const root = `${mount.root === '/' ? '' : mount.root}${rest}`;
  return { device: mount.device, root: root === '' ? '/' : root };
}
