/** The one list of the kinds of volume: a new kind is a folder below plugins/ and a line here. */
import { assert } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { CSI_TRAITS } from '../csi/csi-traits.ts';
import type { Layout } from '../layout/layout.ts';
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

const byName = new Map<VolumeSpec['kind'], VolumeKind>();
for (const kind of KINDS) registerKind(kind);

/** Another kind, for as long as the process lives: never one whose name or whose plugin's name another one has. */
export function registerKind(kind: VolumeKind): void {
  const { traits } = kind;
  assert(!byName.has(traits.kind), `one kind is called ${traits.kind}`);
  assert(traitsOfPlugin(traits.plugin) === undefined, `one kind has the plugin ${traits.plugin}`);
  byName.set(traits.kind, kind);
}

/** All that there are, in the order of their registration. */
export function volumeKinds(): readonly VolumeKind[] {
  return [...byName.values()];
}

/** Total: every specification has a kind that is registered here. */
export function traitsOf({ kind }: VolumeSpec): VolumeTraits {
  const found = byName.get(kind);
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
