/** A mount below our root that no record and no paper explains: it can only be taken down. */
import { ORPHAN_PLUGIN } from './orphan-traits.ts';
import { done, fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, type Host, isBelow, parentOf } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { removeEmptyBlockDirectories } from '../layout/block-directory.ts';
import { createDevicePublication } from '../device/device-publication.ts';
import { removeHeldFile, removeLeft } from '../device/held-file.ts';
import type { Layout } from '../layout/layout.ts';
import type { PathOwner } from '../layout/path-owner.ts';
import type { VolumePlugin } from '../plugin.ts';
import { removeEmptyPodDirectories, removeUnlessInUse } from '../layout/pod-directory.ts';
import { createPodPlugin } from '../pod/pod-plugin.ts';
import { inOrder } from '../steps.ts';
import { removeVolumeData } from '../layout/volume-data.ts';
import {
  RECONSTRUCTED,
  publicationKey,
  type PublicationSpec,
  CSI_PLUGIN,
  type VolumeSpec,
} from '../volume.ts';

/**
 * Guarantees: unpublish unmounts until nothing is mounted there, then removes the empty mount point and its empty
 * parents, and nothing else; a mount point that is not empty stays (`directory-not-empty`, ST-05). Every climbing verb
 * is `spec-invalid`.
 *
 * An orphan at the `held` file of a block volume is the whole publication: what holds the device, the link in the pod
 * and the driver's target go with it. The driver is not asked, because nobody knows which one it was.
 */
export function createOrphanPlugin(host: Host, layout: Layout, mounter: Mounter): VolumePlugin {
  const block = createDevicePublication({ host, root: layout.root, mounter });

  async function unpublishBlock(publication: PublicationSpec): Promise<Result<void>> {
    const places = layout.blockPublication(publication);
    const { published, held } = places;
    return inOrder(
      () => block.takeBack(places),
      () => mounter.unmount(published),
      () => removeLeft(host, published),
      // What tells of the place goes last.
      () => removeHeldFile(host, held),
      () => removeEmptyBlockDirectories(host, layout, publication.specName),
      () => removeEmptyPodDirectories(host, layout, publication.pod.uid),
    );
  }

  const plugin = createPodPlugin({
    name: ORPHAN_PLUGIN,
    publish: async () => cannotClimb(),
    async unpublish({ spec }) {
      const path = pathOf(spec, layout);
      if (!path.ok) return path;
      const publication = blockPublicationAt(path.value, layout);
      if (publication !== undefined) return unpublishBlock(publication);
      return inOrder(
        // Nobody knows what it is of.
        () => mounter.unmount(path.value, { isRemote: true }),
        () => removeMountPoint(host, layout, path.value),
      );
    },
  });
  return { ...plugin, attach: async () => cannotClimb(), stage: async () => cannotClimb() };
}

function pathOf(spec: VolumeSpec, layout: Layout): Result<AbsolutePath> {
  if (spec.kind === 'orphan' && isBelow(spec.path, layout.root)) return ok(spec.path);
  return fail({ code: 'spec-invalid', message: `not an orphan below ${layout.root}`, effect: 'none' });
}

/** The publication of a block volume whose `held` file is at the path; undefined anywhere else. */
function blockPublicationAt(path: AbsolutePath, layout: Layout): PublicationSpec | undefined {
  const owner = layout.ownerOf(path);
  if (owner?.kind !== 'block-publication' || owner.part !== 'held') return undefined;
  const { pod, specName } = owner;
  const reference = { uid: pod, name: '', namespace: '', serviceAccount: '' };
  const key = publicationKey(pod, specName);
  return { key, pod: reference, specName, readOnly: false, origin: RECONSTRUCTED };
}

function cannotClimb(): Result<never> {
  return fail({
    code: 'spec-invalid',
    message: 'a mount that nobody explains can only be taken down',
    effect: 'none',
  });
}

async function removeMountPoint(host: Host, layout: Layout, path: AbsolutePath): Promise<Result<void>> {
  if (!isMountPoint(layout.ownerOf(path))) return done;
  const removed = await removeLeaf(host, path);
  if (!removed.ok) return removed;
  // Beside a CSI mount point: unreadable, or the mount would not be an orphan (k/k#105536).
  const forgotten = await host.perform(removeVolumeData, { path: parentOf(path) });
  if (!forgotten.ok && forgotten.failure.code !== 'path-missing') return forgotten;
  for (let parent = parentOf(path); parentOf(parent) !== layout.root; parent = parentOf(parent)) {
    const gone = await removeUnlessInUse(host, parent);
    if (!gone.ok) return gone;
  }
  return done;
}

/**
 * A bind of a file has a file for its mount point, or a device that is none: ours is empty, and what is not empty is
 * data of somebody.
 */
async function removeLeaf(host: Host, path: AbsolutePath): Promise<Result<void>> {
  const facts = await host.inspect(path);
  if (!facts.ok) return facts;
  const { kind, sizeBytes } = facts.value;
  const isEmptyFile = (kind === 'file' || kind === 'character') && sizeBytes === 0;
  return isEmptyFile ? host.removeFile(path) : host.removeEmptyDirectory(path);
}

/**
 * The kubelet's layout has mount points there. Only there is the directory ours to remove: anywhere else it may lie
 * inside somebody's volume (DL-03).
 */
function isMountPoint(owner: PathOwner | undefined): boolean {
  switch (owner?.kind) {
    case 'volume':
      return owner.part === 'directory' || (owner.part === 'mount' && owner.plugin === CSI_PLUGIN);
    case 'subpath':
      return true;
    case 'stage':
      return owner.part === 'mount';
    default:
      return false;
  }
}
