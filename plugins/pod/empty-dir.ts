/** emptyDir: a plain directory on disk, or a tmpfs, that is born empty and dies with its pod. */
import { EMPTY_DIR_PLUGIN } from './pod-traits.ts';
import { done, fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, type Host, REMOVE_TREE_DEADLINE_MS } from '../../mount/host.ts';
import type { Mounter } from '../../mount/mounter.ts';
import { giveToGroup } from './group-ownership.ts';
import type { Layout } from '../layout/layout.ts';
import { createMemoryMount } from './memory-mount.ts';
import type { PublicationCall, VolumePlugin } from '../plugin.ts';
import { removeEmptyPodDirectories } from '../layout/pod-directory.ts';
import { createPodPlugin } from './pod-plugin.ts';
import { hasReadyMarker, placeReadyMarker, removeReadyMarker } from '../layout/ready-marker.ts';
import { doubtful, inOrder } from '../steps.ts';
import type { EmptyDirVolumeSpec, FsGroup } from '../volume.ts';

/** Every user of the pod writes into it; the 0750 parents keep other pods and users out (SE-35). */
const VOLUME_MODE = 0o777;
/** With a group: what is made in it is that group's, too. */
const SETGID = 0o2000;

interface DirectoryPath {
  readonly spec: EmptyDirVolumeSpec;
  readonly target: AbsolutePath;
  readonly ready: AbsolutePath;
}

/**
 * Guarantees: content is never cleared by publish, only by unpublish, and unpublish never deletes what is mounted
 * below (`mount-busy`, INV-8). A memory medium is judged by its mount, never by the marker (RB-06).
 */
export function createEmptyDirPlugin(host: Host, layout: Layout, mounter: Mounter): VolumePlugin {
  const memory = createMemoryMount(host, mounter);

  function placeOf({ spec, publication }: PublicationCall): Result<DirectoryPath> {
    if (spec.kind !== 'empty-dir') return notOurs(spec.kind);
    const target = layout.volumeDirectory(spec, publication);
    return ok({ spec, target, ready: layout.readyDirectory(spec, publication) });
  }

  return createPodPlugin({
    name: EMPTY_DIR_PLUGIN,
    async publish(call) {
      const place = placeOf(call);
      if (!place.ok) return place;
      const { spec, target, ready } = place.value;
      if (spec.medium === 'disk') {
        const placed = await placeDirectory(host, place.value, call);
        return placed.ok ? ok({ mount: undefined }) : placed;
      }
      const gid = call.publication.fsGroup?.gid;
      const mode = gid === undefined ? VOLUME_MODE : VOLUME_MODE | SETGID;
      const mount = await memory.mount({ target, mode, gid, sizeBytes: spec.sizeLimitBytes });
      if (!mount.ok) return mount;
      const marked = await placeReadyMarker(host, ready);
      return marked.ok ? ok({ mount: mount.value }) : doubtful(marked);
    },
    async unpublish(call) {
      const place = placeOf(call);
      if (!place.ok) return place;
      const { spec, target, ready } = place.value;
      call.step({ kind: 'working', deadlineMs: REMOVE_TREE_DEADLINE_MS });
      const content =
        spec.medium === 'disk'
          ? [() => removeDirectory(host, mounter, target)]
          : [() => mounter.unmount(target), () => host.removeEmptyDirectory(target)];
      return inOrder(
        ...content,
        () => removeReadyMarker(host, ready),
        () => removeEmptyPodDirectories(host, layout, call.publication.pod.uid),
      );
    },
  });
}

function notOurs(kind: string): Result<never> {
  return fail({ code: 'spec-invalid', message: `not an emptyDir: ${kind}`, effect: 'none' });
}

/** A marked directory is left exactly as it is, its mode and group too: the pod owns it by now. */
async function placeDirectory(
  host: Host,
  { spec, target, ready }: DirectoryPath,
  { publication, progress, stillWanted }: PublicationCall,
): Promise<Result<void>> {
  const alone = await refuseMount(host, target);
  if (!alone.ok) return alone;
  const facts = await host.inspect(target);
  if (!facts.ok) return facts;
  const { kind } = facts.value;
  if (kind !== 'absent' && kind !== 'directory') {
    return fail({
      code: 'path-wrong-kind',
      message: `a ${kind} stands where the emptyDir must be: ${target}`,
      effect: 'none',
      blocker: target,
    });
  }
  const marked = await hasReadyMarker(host, ready);
  if (!marked.ok) return marked;
  if (marked.value && kind === 'directory') return done;
  const gid = publication.fsGroup?.gid;
  const give = async (): Promise<Result<void>> => {
    if (gid === undefined) return done;
    // As in the kubelet always all of it, whatever the pod's change policy: there is nothing in it yet.
    const fsGroup: FsGroup = { gid, changePolicy: 'Always' };
    return giveToGroup(host, {
      volume: spec.id,
      path: target,
      fsGroup,
      readOnly: false,
      progress,
      stillWanted,
    });
  };
  return inOrder(
    () => host.makeDirectory(target, VOLUME_MODE),
    give,
    () => placeReadyMarker(host, ready),
  );
}

/** Found on disk without a record, its medium was a guess: a tmpfs of ours on it was a memory medium after all. */
async function removeDirectory(host: Host, mounter: Mounter, target: AbsolutePath): Promise<Result<void>> {
  const seen = await host.lookUpMount(target);
  if (!seen.ok) return seen;
  const bare = seen.value.mounted ? await mounter.unmountOwn(target) : done;
  return bare.ok ? host.removeTree(target) : bare;
}

/** A disk emptyDir is never a mount point; whatever is mounted there holds data that is not ours to delete (DL-02). */
async function refuseMount(host: Host, target: AbsolutePath): Promise<Result<void>> {
  const seen = await host.lookUpMount(target);
  if (!seen.ok) return seen;
  if (!seen.value.mounted) return done;
  return fail({
    code: 'mount-foreign',
    message: `something is mounted on the plain directory ${target}`,
    effect: 'none',
    blocker: target,
  });
}
