/** The one list of the kinds of volume: a new kind is a folder below plugins/ and a line here. */
import { assert } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { CSI_TRAITS } from '../csi/csi-traits.ts';
import type { Layout } from '../layout/layout.ts';
import { createIscsiPlugin } from '../iscsi/iscsi-plugin.ts';
import { ISCSI_TRAITS } from '../iscsi/iscsi-traits.ts';
import { createLocalPlugin } from '../local/local-plugin.ts';
import { LOCAL_TRAITS } from '../local/local-traits.ts';
import { createNfsPlugin } from '../nfs/nfs-plugin.ts';
import { NFS_TRAITS } from '../nfs/nfs-traits.ts';
import { createOrphanPlugin } from '../orphan/orphan.ts';
import { ORPHAN_TRAITS } from '../orphan/orphan-traits.ts';
import type { VolumePlugin } from '../plugin.ts';
import { createContentPlugin } from '../pod/content.ts';
import { createEmptyDirPlugin } from '../pod/empty-dir.ts';
import { createHostPathPlugin } from '../pod/host-path.ts';
import { createImagePlugin } from '../pod/image.ts';
import {
  CONFIG_MAP_TRAITS,
  DOWNWARD_API_TRAITS,
  EMPTY_DIR_TRAITS,
  HOST_PATH_TRAITS,
  IMAGE_TRAITS,
  PROJECTED_TRAITS,
  SECRET_TRAITS,
} from '../pod/pod-traits.ts';
import type { VolumeTraits } from '../traits/volume-traits.ts';
import type { VolumeSpec } from '../volume.ts';

/** What plugins are made of. */
export interface KindParts {
  readonly host: Host;
  readonly layout: Layout;
  readonly mounter: Mounter;
  /** hostPath and local volumes at, below or above one of these are refused, wherever links lead. */
  readonly deniedHostPaths: readonly AbsolutePath[];
  /** The one that calls drivers: it needs more than the others, and others need more of it. */
  readonly csi: VolumePlugin;
}

export interface VolumeKind {
  readonly traits: VolumeTraits;
  create(parts: KindParts): VolumePlugin;
}

/** The kinds that this program has, a line each. */
const KINDS: readonly VolumeKind[] = [
  { traits: CSI_TRAITS, create: ({ csi }) => csi },
  {
    traits: EMPTY_DIR_TRAITS,
    create: ({ host, layout, mounter }) => createEmptyDirPlugin(host, layout, mounter),
  },
  {
    traits: HOST_PATH_TRAITS,
    create: ({ host, deniedHostPaths }) => createHostPathPlugin(host, deniedHostPaths),
  },
  {
    traits: LOCAL_TRAITS,
    create: ({ deniedHostPaths: denied, ...parts }) => createLocalPlugin({ ...parts, denied }),
  },
  { traits: NFS_TRAITS, create: ({ host, layout, mounter }) => createNfsPlugin(host, layout, mounter) },
  { traits: ISCSI_TRAITS, create: createIscsiPlugin },
  { traits: IMAGE_TRAITS, create: createImagePlugin },
  {
    traits: SECRET_TRAITS,
    create: ({ host, layout, mounter }) => createContentPlugin('secret', host, layout, mounter),
  },
  {
    traits: CONFIG_MAP_TRAITS,
    create: ({ host, layout, mounter }) => createContentPlugin('config-map', host, layout, mounter),
  },
  {
    traits: DOWNWARD_API_TRAITS,
    create: ({ host, layout, mounter }) => createContentPlugin('downward-api', host, layout, mounter),
  },
  {
    traits: PROJECTED_TRAITS,
    create: ({ host, layout, mounter }) => createContentPlugin('projected', host, layout, mounter),
  },
  { traits: ORPHAN_TRAITS, create: ({ host, layout, mounter }) => createOrphanPlugin(host, layout, mounter) },
];

let listed: readonly VolumeKind[] = KINDS;
/** The list as it is looked up, closed from the first question on: nobody has two answers from it. */
let closed: ReadonlyMap<VolumeSpec['kind'], VolumeKind> | undefined;

/** One kind more for this process, before anybody has asked for one: tests have a kind of their own. */
export function registerKind(kind: VolumeKind): void {
  assert(closed === undefined, 'the list of kinds is closed: it was asked already');
  listed = [...listed, kind];
}

function close(): ReadonlyMap<VolumeSpec['kind'], VolumeKind> {
  const byName = new Map(listed.map((kind) => [kind.traits.kind, kind]));
  assert(byName.size === listed.length, 'no two kinds are called the same');
  const plugins = new Set(listed.map(({ traits }) => traits.plugin));
  assert(plugins.size === listed.length, 'no two kinds have plugins of one name');
  closed = byName;
  return byName;
}

/** All that there are, in the order of the list. */
export function volumeKinds(): readonly VolumeKind[] {
  return [...(closed ?? close()).values()];
}

/** Total: every specification has a kind that is in the list. */
export function traitsOf({ kind }: VolumeSpec): VolumeTraits {
  const found = (closed ?? close()).get(kind);
  assert(found !== undefined, `${kind} has traits`);
  return found.traits;
}

/** The traits of the plugin whose name a directory in a pod has; undefined: no kind of ours. */
export function traitsOfPlugin(plugin: string): VolumeTraits | undefined {
  return kinds().find((traits) => traits.plugin === plugin);
}

/** The traits of all that there are. */
export function kinds(): readonly VolumeTraits[] {
  return volumeKinds().map(({ traits }) => traits);
}
