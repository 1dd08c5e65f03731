/** Do two pods of one local volume see one directory? Told by the mount table, of the places that there are by now. */
import { done, fail, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import { nameOfRoot } from '../../mount/text/root-name.ts';
import type { Layout } from '../layout/layout.ts';
import type { PublicationCall } from '../plugin.ts';

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

/** Undefined where that is not to be told: nobody has asked yet for what is to be mounted there. */
function placeOf(table: MountTable, path: AbsolutePath): Place | undefined {
  const mount = table.way(path).at(-1);
  if (mount === undefined || mount.fsType === 'autofs') return undefined;
  const rest = mount.target === '/' ? path : path.slice(mount.target.length);
  const root = `${mount.root === '/' ? '' : mount.root}${rest}`;
  return { device: mount.device, root: root === '' ? '/' : root };
}
