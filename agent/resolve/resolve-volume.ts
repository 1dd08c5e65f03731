/** From a volume as a pod names it to a volume to set up, or the reason why it cannot be one. Pure. */
import { ok, type Result } from '../../mount/failure.ts';
import { CONTENT_PLUGIN, EMPTY_DIR_PLUGIN, IMAGE_PLUGIN } from '../../plugins/pod/pod-traits.ts';
import { type ContentVolumeSpec, podVolumeId, type VolumeSpec } from '../../plugins/volume.ts';
import { type ContentFiles, contentFiles } from './content-files.ts';
import { downwardFiles } from './downward-files.ts';
import { withMountPoints } from './mount-points.ts';
import type { Pod, PodVolume, PodVolumeSource, Stamped } from '../../kubernetes/objects/objects.ts';
import { whyUnsupported } from '../../kubernetes/sources/other-kinds.ts';
import { type ProjectingPod, projectedFiles } from './projected-files.ts';
import { resolveClaim, resolveOwnClaim } from './resolve-claim.ts';
import { resolveInline } from './resolve-inline.ts';
import { resolveHostPath, resolveIscsi, resolveNfs } from './resolve-in-tree.ts';
import { refuse } from '../../kubernetes/fields/refuse.ts';
import { PLAIN, type Resolved, type Sources } from './resolved.ts';

/** A failure freezes the pod; what only keeps the volume from climbing is `blocked`. */
export function resolveVolume(sources: Sources, pod: Stamped<Pod>, volume: PodVolume): Result<Resolved> {
  const { source, name } = volume;
  const { uid } = pod.reference;
  switch (source.kind) {
    case 'unsupported':
      return refuse('kind-unsupported', whyUnsupported(source.what));
    case 'claim':
      return resolveClaim(sources, pod, volume, source);
    case 'own-claim':
      return resolveOwnClaim(sources, pod, volume);
    case 'csi-inline':
      return ok(resolveInline(sources, pod, name, source));
    case 'empty-dir': {
      const id = podVolumeId(EMPTY_DIR_PLUGIN, uid, name);
      const { kind, medium, hugePageBytes } = source;
      const sizeLimitBytes = sizeIn(sources, source);
      const huge = hugePageBytes === 0 ? {} : { hugePageBytes };
      const spec: VolumeSpec = { kind, id, pod: uid, name, medium, sizeLimitBytes, ...huge };
      return ok({ ...PLAIN, specName: name, spec });
    }
    case 'host-path':
      return resolveHostPath(sources, pod, { source, name });
    case 'iscsi':
      return ok(resolveIscsi(sources, pod, { source, name }));
    case 'nfs':
      return ok(resolveNfs(pod, name, source));
    case 'image': {
      const { reference, pullPolicy } = source;
      const id = podVolumeId(IMAGE_PLUGIN, uid, name);
      const spec: VolumeSpec = { kind: 'image', id, pod: uid, name, image: { reference, pullPolicy } };
      return ok({ ...PLAIN, specName: name, readOnly: true, spec });
    }
    case 'secret':
    case 'config-map':
      return ok(
        withContent(sources, pod, volume, source.kind, (whose) =>
          contentFiles(sources.desired, whose, source),
        ),
      );
    case 'downward-api':
      return ok(
        withContent(sources, pod, volume, source.kind, () => ok(downwardFiles(source, sources.allocatable))),
      );
    case 'projected':
      return ok(
        withContent(sources, pod, volume, source.kind, (whose) => projectedFiles(sources, whose, source)),
      );
  }
}

/** Never more memory than the node has for all of its pods (kubelet: SizeMemoryBackedVolumes). */
function sizeIn(
  { allocatable }: Pick<Sources, 'allocatable'>,
  { medium, sizeLimitBytes }: Extract<PodVolumeSource, { kind: 'empty-dir' }>,
): number {
  const ofNode = Number(allocatable.memory ?? 0n);
  if (medium !== 'memory' || ofNode === 0) return sizeLimitBytes;
  return sizeLimitBytes > 0 && sizeLimitBytes < ofNode ? sizeLimitBytes : ofNode;
}

function withContent(
  { options }: Pick<Sources, 'options'>,
  pod: Stamped<Pod>,
  { name }: PodVolume,
  kind: ContentVolumeSpec['kind'],
  filesFor: (whose: ProjectingPod) => Result<ContentFiles>,
): Resolved {
  const { reference, origin, fsGroup } = pod;
  const { uid } = reference;
  const spec: VolumeSpec = { kind, id: podVolumeId(CONTENT_PLUGIN[kind], uid, name), pod: uid, name };
  const hasVolume = (): boolean => options.hasMounted?.(spec.id, uid) === true;
  const content = filesFor({ reference, origin, fsGroup, hasVolume });
  const found = content.ok ? withMountPoints(content.value, pod, name) : { blocked: content.failure };
  return { ...PLAIN, specName: name, spec, ...found };
}
