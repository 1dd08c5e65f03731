/** Secrets and configMaps: files on a tmpfs, replaced as one generation. */
import { CONTENT_PLUGIN } from './pod-traits.ts';
import { type Failure, fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { type ContentGroup, isWritten, writeGeneration } from './atomic-writer.ts';
import {
  CONTENT_BYTES_MAX,
  CONTENT_FILES_MAX,
  type ContentDirectory,
  parseContentTree,
} from './content-tree.ts';
import { removeOwnLeftovers } from './content-leftovers.ts';
import { giveToGroup } from './group-ownership.ts';
import type { Layout } from '../layout/layout.ts';
import { createMemoryMount } from './memory-mount.ts';
import type { PublicationCall, VolumePlugin } from '../plugin.ts';
import { removeEmptyPodDirectories } from '../layout/pod-directory.ts';
import { createPodPlugin } from './pod-plugin.ts';
import { placeReadyMarker, removeReadyMarker } from '../layout/ready-marker.ts';
import { doubtful, inOrder } from '../steps.ts';
import type { ContentVolumeSpec } from '../volume.ts';

/** Only root writes here: a container that could would lead the writer astray (CVE-2017-1002102, SE-04). */
const VOLUME_MODE = 0o755;
const PAGE_BYTES = 4_096;
/** Room for the old and the new generation at their largest; tmpfs takes memory only as it is written. */
const VOLUME_BYTES = 2 * (CONTENT_BYTES_MAX + CONTENT_FILES_MAX * PAGE_BYTES);

/**
 * Guarantees: readers see one complete generation at every instant (INV-24); a failed refresh leaves the previous one
 * byte for byte and never unmounts it (DL-22); nothing of it is ever on disk (SE-34) but the kubelet's empty marker;
 * a pod's fsGroup may read every file from the moment it is visible.
 */
export function createContentPlugin(
  kind: ContentVolumeSpec['kind'],
  host: Host,
  layout: Layout,
  mounter: Mounter,
): VolumePlugin {
  const memory = createMemoryMount(host, mounter);

  return createPodPlugin({
    name: CONTENT_PLUGIN[kind],
    async publish(call) {
      const tree = wantedTree(kind, call);
      if (!tree.ok) return tree;
      const target = layout.volumeDirectory(call.spec, call.publication);
      const before = await host.lookUpMount(target);
      if (!before.ok) return before;
      const mount = await memory.mount({ target, mode: VOLUME_MODE, sizeBytes: VOLUME_BYTES });
      if (!mount.ok) return mount;
      const marked = await placeReadyMarker(host, layout.readyDirectory(call.spec, call.publication));
      const group = groupOf(host, target, call);
      const written = marked.ok ? await writeGeneration(host, target, tree.value, group) : marked;
      if (written.ok) return ok({ mount: mount.value });
      return before.value.mounted ? written : doubtful(written);
    },
    async isUpToDate(call) {
      const tree = wantedTree(kind, call);
      const target = layout.volumeDirectory(call.spec, call.publication);
      return tree.ok && (await isWritten(host, target, tree.value, call.publication.fsGroup?.gid));
    },
    async unpublish(call) {
      if (call.spec.kind !== kind) return notOurs(call);
      const target = layout.volumeDirectory(call.spec, call.publication);
      return inOrder(
        () => mounter.unmount(target),
        () => removeOwnLeftovers(host, target),
        () => host.removeEmptyDirectory(target),
        () => removeReadyMarker(host, layout.readyDirectory(call.spec, call.publication)),
        () => removeEmptyPodDirectories(host, layout, call.publication.pod.uid),
      );
    },
  });
}

/** As in the kubelet all of the volume is walked, whatever the pod's change policy: it is a few files. */
function groupOf(host: Host, path: AbsolutePath, call: PublicationCall): ContentGroup | undefined {
  const gid = call.publication.fsGroup?.gid;
  if (gid === undefined) return undefined;
  const { progress, stillWanted } = call;
  const volume = call.spec.id;
  const fsGroup = { gid, changePolicy: 'Always' } as const;
  return {
    gid,
    give: () => giveToGroup(host, { volume, path, fsGroup, readOnly: true, progress, stillWanted }),
  };
}

function wantedTree(kind: ContentVolumeSpec['kind'], call: PublicationCall): Result<ContentDirectory> {
  if (call.spec.kind !== kind) return notOurs(call);
  if (call.files !== undefined) return parseContentTree(call.files.reveal());
  return fail({
    code: 'reference-missing',
    message: 'the wish has no files for this volume',
    effect: 'none',
  });
}

function notOurs({ spec }: PublicationCall): { readonly ok: false; readonly failure: Failure } {
  return fail({
    code: 'spec-invalid',
    message: `not a secret or configMap volume of this kind: ${spec.kind}`,
    effect: 'none',
  });
}
