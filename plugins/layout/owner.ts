/** Path to identity: what a path of the layout is for, and whose it is. The inverse of layout.ts. Pure. */
import { type AbsolutePath, isBelow, parseAbsolutePath } from '../../mount/host.ts';
import { nameBegun } from '../../mount/temporary-file.ts';
import { isObjectName, parsePodUid, type PodUid } from '../volume.ts';
import {
  DEVICES,
  DRIVER_VOLUMES,
  FORMATS,
  intentOf,
  LOCAL_VOLUMES,
  MARKERS,
  MOUNT,
  OWN,
  OWN_FILES,
  PLUGINS,
  PODS,
  RECORDS,
  REGISTRY,
  SESSIONS,
  SUBPATHS,
  unescapePlugin,
  VOLUMES,
  WRAPPED,
} from './component.ts';
import type { PathOwner, SharedOwner } from './path-owner.ts';
import { type Components, isBlockVolumeName, ownerInPlugins, partOf, shared } from './stage-owner.ts';

/**
 * What owns the path in the layout below `root`; undefined for what no kubelet and no Mooring makes, and for a text
 * that is no path. Guarantees: for each function of `Layout` and each identity it is called with, the owner of the path
 * is that identity, unless the identity has a reserved name (`isBlockVolumeName`, `isStagingDriver`). A path has only
 * the hash of a volume handle, so that is all that its owner has. Never throws.
 */
export function ownerBelow(root: AbsolutePath, text: string): PathOwner | undefined {
  const path = parseAbsolutePath(text);
  if (path === undefined) return undefined;
  if (path === root) return shared('root');
  if (!isBelow(path, root)) return undefined;
  const components = path.slice(root === '/' ? 1 : root.length + 1).split('/');
  const begun = nameBegun(components.at(-1) ?? '');
  const of = begun === undefined ? undefined : ownerOfComponents([...components.slice(0, -1), begun]);
  return of !== undefined && isWritten(of) ? { kind: 'temporary', of } : ownerOfComponents(components);
}

/** Is it a file that is written by `Host.writeFile`, so that a crash may leave half of it? */
function isWritten(owner: PathOwner): boolean {
  switch (owner.kind) {
    case 'own-file':
    case 'record':
    case 'format':
    case 'session-note':
      return true;
    case 'marker':
      return owner.part === 'content';
    case 'volume':
    case 'stage':
    case 'block-volume':
      return owner.part === 'data';
    case 'block-publication':
    case 'local-device-publication':
      return owner.part === 'held';
    default:
      return false;
  }
}

function ownerOfComponents([top, ...rest]: Components): PathOwner | undefined {
  switch (top) {
    case PODS:
      return ownerInPods(rest);
    case PLUGINS:
      return ownerInPlugins(rest);
    case REGISTRY:
      return named('registry', rest, (name) => ({ kind: 'registration', name }));
    case OWN:
      return ownerInOwn(rest);
    default:
      return undefined;
  }
}

/** Whose an entry is of a directory in which each entry is one thing, with nothing below. */
function named(
  directory: SharedOwner['directory'],
  [name, ...more]: Components,
  ownerOf: (name: string) => PathOwner,
): PathOwner | undefined {
  if (name === undefined) return shared(directory);
  return more.length === 0 ? ownerOf(name) : undefined;
}

function ownerInOwn([name, ...rest]: Components): PathOwner | undefined {
  if (name === undefined) return shared('own');
  if (name === FORMATS) return ownerInFormats(rest);
  if (name === SESSIONS) return ownerInSessions(rest);
  if (name === RECORDS) return named('records', rest, (record) => ({ kind: 'record', name: record }));
  const file = OWN_FILE_NAMES.get(name);
  return file === undefined || rest.length > 0 ? undefined : { kind: 'own-file', file };
}

function ownerInFormats([file, ...more]: Components): PathOwner | undefined {
  if (file === undefined) return shared('formats');
  const specName = intentOf(file) ?? '';
  return more.length === 0 && isObjectName(specName) ? { kind: 'format', specName } : undefined;
}

function ownerInSessions([file, ...more]: Components): PathOwner | undefined {
  if (file === undefined) return shared('session-notes');
  const name = file.endsWith('.json') ? file.slice(0, -'.json'.length) : '';
  return more.length === 0 && isObjectName(name) ? { kind: 'session-note', name } : undefined;
}

const OWN_FILE_NAMES: ReadonlyMap<string, keyof typeof OWN_FILES> = new Map(
  (['source', 'agentLock', 'helpersLock'] as const).map((file) => [OWN_FILES[file], file]),
);

function ownerInPods([uid, directory, ...rest]: Components): PathOwner | undefined {
  if (uid === undefined) return shared('pods');
  const pod = parsePodUid(uid);
  if (pod === undefined) return undefined;
  if (directory === undefined) return { kind: 'pod', pod };
  switch (directory) {
    case VOLUMES:
      return ownerInVolumes(pod, rest);
    case DEVICES:
      return ownerInDevices(pod, rest);
    case PLUGINS:
      return ownerInMarkers(pod, rest);
    case SUBPATHS:
      return ownerInSubpaths(pod, rest);
    default:
      return undefined;
  }
}

function ownerInVolumes(pod: PodUid, [plugin, specName, ...inside]: Components): PathOwner {
  if (plugin === undefined || specName === undefined) return { kind: 'pod', pod };
  return { kind: 'volume', pod, plugin: unescapePlugin(plugin), specName, part: partOf(inside, MOUNT) };
}

function ownerInDevices(pod: PodUid, [plugin, specName, ...more]: Components): PathOwner | undefined {
  if (plugin === undefined) return { kind: 'pod', pod };
  if ((plugin !== DRIVER_VOLUMES && plugin !== LOCAL_VOLUMES) || more.length > 0) return undefined;
  if (specName === undefined) return { kind: 'pod', pod };
  if (plugin === LOCAL_VOLUMES)
    return isObjectName(specName)
      ? { kind: 'local-device-publication', pod, specName, part: 'link' }
      : undefined;
  return isBlockVolumeName(specName) ? { kind: 'block-publication', pod, specName, part: 'link' } : undefined;
}

function ownerInMarkers(pod: PodUid, [plugin, name, ...inside]: Components): PathOwner | undefined {
  if (plugin === undefined) return { kind: 'pod', pod };
  if (plugin !== MARKERS) return undefined;
  if (name === undefined) return { kind: 'pod', pod };
  return { kind: 'marker', pod, ...markedBy(name), part: inside.length === 0 ? 'directory' : 'content' };
}

/** Which volume of the pod the directory of a readiness marker is about, by its name. */
export function markedBy(name: string): { readonly specName: string; readonly isWrapped: boolean } {
  const isWrapped = name.startsWith(WRAPPED);
  return { specName: isWrapped ? name.slice(WRAPPED.length) : name, isWrapped };
}

function ownerInSubpaths(pod: PodUid, components: Components): PathOwner | undefined {
  const [specName, container, index, ...more] = components;
  if (specName === undefined || container === undefined || index === undefined) return { kind: 'pod', pod };
  return more.length === 0 ? { kind: 'subpath', pod, specName, container, index } : undefined;
}
