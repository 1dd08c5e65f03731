/** Secrets, configMaps and their like: files on a tmpfs, replaced as one generation. */
import { CONTENT_PLUGIN } from './pod-traits.ts';
import { type Failure, fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { type Program, transition } from '../../mount/transition.ts';
import {
  dropGeneration,
  type Generation,
  type HiddenGeneration,
  isWritten,
  showGeneration,
  writeGeneration,
} from './atomic-writer.ts';
import { CONTENT_BYTES_MAX, CONTENT_FILES_MAX, type ContentTree, parseContentTree } from './content-tree.ts';
import { removeOwnLeftovers } from './content-leftovers.ts';
import { giveToGroup, type MountedPlace } from './group-ownership.ts';
import { printable } from '../../mount/text/printable.ts';
import { findHiddenNames } from './nested-mount-points.ts';
import type { Layout } from '../layout/layout.ts';
import {
  createMemoryMount,
  endMemory,
  type FilledMemory,
  fillMemory,
  type MemoryEnd,
  type MemoryPlace,
} from './memory-mount.ts';
import type { PublicationCall, VolumePlugin } from '../plugin.ts';
import { podDirectories } from '../layout/pod-directory.ts';
import { createPodPlugin } from './pod-plugin.ts';
import { placeReadyMarker } from '../layout/ready-marker.ts';
import { doubtful } from '../steps.ts';
import type { ContentVolumeSpec } from '../volume.ts';

/** Only root writes here: a container that could would lead the writer astray (CVE-2017-1002102, SE-04). */
const VOLUME_MODE = 0o755;
const PAGE_BYTES = 4_096;
/** More of a name is not told. */
const NAME_BYTES_MAX = 64;
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
    looksItself: true,
    async publish(call) {
      const tree = wantedTree(kind, call);
      if (!tree.ok) return tree;
      const target = layout.volumeDirectory(call.spec, call.publication);
      const gid = call.publication.fsGroup?.gid;
      const request = { target, mode: VOLUME_MODE, sizeBytes: VOLUME_BYTES };
      const ready = layout.readyDirectory(call.spec, call.publication);
      const content = { tree: tree.value, gid };
      const there = await memory.mount(request, publishContent, {
        ready,
        expected: call.expected,
        ...content,
      });
      if (!there.ok) return there;
      const { mount, filled } = there.value;
      const all = async () =>
        (call.refresh ? await refuseHidden(host, target, tree.value) : undefined) ?? ok({ mount });
      if (filled.hidden === undefined || gid === undefined) return all();
      const given = await giveAll(host, { path: target, mountId: mount.mountId }, call, gid);
      const shown = await (given.ok
        ? host.perform(showGeneration, { path: target, ...content, ...filled.hidden })
        : host.perform(dropGeneration, { path: target, failure: given.failure, ...filled.hidden }));
      if (shown.ok) return all();
      return filled.wasThere ? shown : doubtful<never>(shown);
    },
    async isUpToDate(call) {
      const tree = wantedTree(kind, call);
      const target = layout.volumeDirectory(call.spec, call.publication);
      if (!tree.ok) return false;
      const gid = call.publication.fsGroup?.gid;
      const written = await host.perform(isWritten, { path: target, tree: tree.value, gid });
      return written.ok && written.value;
    },
    async unpublish(call) {
      if (call.spec.kind !== kind) return notOurs(call);
      const path = layout.volumeDirectory(call.spec, call.publication);
      const ready = layout.readyDirectory(call.spec, call.publication);
      const above = podDirectories(layout, call.publication.pod.uid);
      return mounter.unmountThen(removeContent, { path, ready, above }, { expected: call.expected });
    },
  });
}

interface PublishedContent extends MemoryPlace, Generation {
  readonly ready: AbsolutePath;
}

interface Written {
  /** The tmpfs was there before mount(8). */
  readonly wasThere: boolean;
  /** It is to be given to the group first. */
  readonly hidden: HiddenGeneration | undefined;
}

export const publishContent = transition<PublishedContent, FilledMemory<Written>>(
  'publish-content',
  (content) =>
    fillMemory(content, function* (): Program<Result<Written>> {
      const marked = yield* placeReadyMarker(content.ready);
      if (!marked.ok) return marked;
      const written = yield* writeGeneration(content);
      return written.ok ? ok({ wasThere: content.attempt === 'not-yet', hidden: written.value }) : written;
    }),
  { removesTrees: true },
);

export const removeContent = transition<MemoryEnd, number | undefined>(
  'remove-content',
  (end) => endMemory(end, () => removeOwnLeftovers(end.path)),
  { removesTrees: true },
);

/** As in the kubelet all of the volume is walked, whatever the pod's change policy: it is a few files. */
function giveAll(host: Host, place: MountedPlace, call: PublicationCall, gid: number): Promise<Result<void>> {
  const { progress, stillWanted } = call;
  const volume = call.spec.id;
  const fsGroup = { gid, changePolicy: 'Always' } as const;
  return giveToGroup(host, { ...place, volume, fsGroup, readOnly: true, progress, stillWanted });
}

/**
 * What came into the wish where a directory for something mounted has been made before: that stays, as does a mount on
 * it. Everything else is as it is wanted, so nothing is in doubt (kubelet: the refresh fails at the link).
 */
async function refuseHidden(host: Host, path: AbsolutePath, tree: ContentTree) {
  const names = [...tree.files.keys(), ...tree.directories.keys()];
  const found = await host.perform(findHiddenNames, { path, names });
  const [name, ...others] = found.ok ? found.value : [];
  if (name === undefined) return undefined;
  const more = others.length === 0 ? ' is' : ` and ${others.length} more are`;
  const message =
    `"${printable(name, NAME_BYTES_MAX)}"${more} hidden: containers have something mounted in a directory of that ` +
    'name, which stays until the pod ends; all else is as it is wanted';
  return fail({ code: 'spec-invalid', message, effect: 'none' });
}

function wantedTree(kind: ContentVolumeSpec['kind'], call: PublicationCall): Result<ContentTree> {
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
    message: `not a volume of this kind of content: ${spec.kind}`,
    effect: 'none',
  });
}
