/** From the wish to the desired state: every volume of every pod resolved, or the reason why it is not. Pure. */
import { assert, type Failure, type FailureCode, fail, ok, type Result } from '../mount/failure.ts';
import { type AbsolutePath, isBelow } from '../mount/host.ts';
import { NO_SECRETS } from '../plugins/plugin.ts';
import {
  csiVolumeId,
  type CsiVolumeSpec,
  podVolumeId,
  type PodUid,
  type PublicationKey,
  publicationKey,
  type VolumeId,
  type VolumeSpec,
} from '../plugins/volume.ts';
import type {
  DesiredPublication,
  DesiredState,
  DesiredVolume,
  UnresolvedVolume,
} from '../reconciler/desired-state.ts';
import { type Bindings, createBindings } from './bind-claim.ts';
import { contentFiles } from './content-files.ts';
import { resolveSecrets } from './csi-secrets.ts';
import {
  type CsiSource,
  objectKey,
  type PersistentVolume,
  type Pod,
  type PodVolume,
  type Stamped,
} from './objects.ts';
import { compareText, type Wish } from './wish.ts';

/** What the configuration has to say about volumes. */
export interface DesireOptions {
  /** hostPath volumes at, below or above one of these are refused (SE-07): above it lies open as well. */
  readonly deniedHostPaths: readonly AbsolutePath[];
}

/** A volume of one pod, resolved: one volume with one publication. */
interface Resolved {
  readonly spec: VolumeSpec;
  readonly specName: string;
  readonly readOnly: boolean;
  readonly secrets: DesiredVolume['secrets'];
  readonly blocked: Failure | undefined;
  readonly generation: string;
  readonly files: DesiredPublication['files'];
}

interface Growing extends Omit<DesiredVolume, 'publications'> {
  readonly publications: Map<PublicationKey, DesiredPublication>;
}

/**
 * Guarantees: the same wish gives the same state, whatever the order of its objects; what cannot be resolved freezes
 * its own pod and nothing else; of two pods that want one volume in different ways the one with the lower uid is
 * served, the other is unresolved.
 */
export function desire(wish: Wish, options: DesireOptions): DesiredState {
  const bindings = createBindings(wish);
  const volumes = new Map<VolumeId, Growing>();
  const unresolved: UnresolvedVolume[] = [];
  const frozenPods = new Set<PodUid>(wish.frozenPods);
  const pods = [...wish.pods.values()].sort((a, b) => compareText(a.reference.uid, b.reference.uid));
  for (const pod of pods) {
    for (const volume of pod.volumes) {
      const resolved = resolve(wish, bindings, pod, volume, options);
      const added = resolved.ok ? add(volumes, pod, resolved.value) : resolved;
      if (added.ok) continue;
      unresolved.push({ pod: pod.reference, volumeName: volume.name, failure: added.failure });
      frozenPods.add(pod.reference.uid);
    }
  }
  return { complete: wish.complete, volumes, frozenPods, unknownOrigins: wish.unknownOrigins, unresolved };
}

/** One volume for the node, one publication for the pod: a claim used twice in a pod is one place. */
function add(volumes: Map<VolumeId, Growing>, pod: Stamped<Pod>, resolved: Resolved): Result<void> {
  const { spec, specName, secrets, blocked, generation, files } = resolved;
  const known = volumes.get(spec.id);
  const conflict = known === undefined ? undefined : conflictOf(known.spec, spec);
  if (conflict !== undefined) return refuse('spec-invalid', conflict);
  const volume = known ?? { spec, secrets, blocked, publications: new Map() };
  const key = publicationKey(pod.reference.uid, specName);
  const twin = volume.publications.get(key);
  const readOnly = resolved.readOnly && (twin?.spec.readOnly ?? true);
  volume.publications.set(key, {
    spec: { key, pod: pod.reference, specName, readOnly, origin: pod.origin },
    generation,
    files,
  });
  volumes.set(spec.id, volume);
  return ok(undefined);
}

/** Why the two cannot be one volume: all that a driver is told when it stages must be the same for everybody. */
function conflictOf(first: VolumeSpec, second: VolumeSpec): string | undefined {
  assert(first.kind === 'csi' && second.kind === 'csi', 'only a CSI volume is wanted more than once');
  const fields = ['fsType', 'mountOptions', 'volumeAttributes', 'accessModes', 'readOnly'] as const;
  const different = fields.filter((one) => canonical(first[one]) !== canonical(second[one]));
  if (different.length === 0) return undefined;
  return (
    `PersistentVolume ${second.specName} is the volume of ${first.specName}, which is wanted already, ` +
    `with another ${different.join(', ')}`
  );
}

function canonical(value: CsiVolumeSpec['volumeAttributes'] | readonly string[] | string | boolean): string {
  if (typeof value !== 'object' || Array.isArray(value)) return JSON.stringify(value);
  return JSON.stringify(Object.entries(value).sort(([a], [b]) => compareText(a, b)));
}

function resolve(
  wish: Wish,
  bindings: Bindings,
  pod: Stamped<Pod>,
  volume: PodVolume,
  options: DesireOptions,
): Result<Resolved> {
  const { source, name } = volume;
  const { uid, namespace } = pod.reference;
  if (volume.block) return refuse('kind-unsupported', BLOCK);
  const plain = { specName: name, readOnly: false, secrets: NO_SECRETS, blocked: undefined, generation: '' };
  switch (source.kind) {
    case 'unsupported':
      return refuse('kind-unsupported', `volumes of kind ${source.what} are not supported`);
    case 'claim': {
      const bound = bindings.volumeOf(objectKey({ namespace, name: source.claimName }));
      if (!bound.ok) return bound;
      const claim = wish.claims.get(objectKey({ namespace, name: source.claimName }));
      if (claim?.volumeMode === 'Block' || bound.value.volumeMode === 'Block') {
        return refuse('kind-unsupported', BLOCK);
      }
      return resolvePersistent(wish, bound.value, source.readOnly);
    }
    case 'empty-dir': {
      const { medium, sizeLimitBytes } = source;
      const id = podVolumeId('empty-dir', uid, name);
      const spec: VolumeSpec = { kind: 'empty-dir', id, pod: uid, name, medium, sizeLimitBytes };
      return ok({ ...plain, spec, files: undefined });
    }
    case 'host-path': {
      const { path, type } = source;
      const denied = options.deniedHostPaths.find(
        (one) => path === one || isBelow(path, one) || isBelow(one, path),
      );
      if (denied !== undefined)
        return refuse('spec-invalid', `hostPath ${path} is denied, because of ${denied}`);
      const id = podVolumeId('host-path', uid, name);
      return ok({ ...plain, spec: { kind: 'host-path', id, pod: uid, name, path, type }, files: undefined });
    }
    case 'secret':
    case 'config-map': {
      const spec: VolumeSpec = { kind: source.kind, id: podVolumeId(source.kind, uid, name), pod: uid, name };
      const content = contentFiles(wish, namespace, source);
      return ok(
        content.ok
          ? { ...plain, spec, ...content.value }
          : { ...plain, spec, blocked: content.failure, files: undefined },
      );
    }
  }
}

const BLOCK = 'raw block volumes (volumeMode Block, volumeDevices) are not supported; they come with 0.2';

function resolvePersistent(wish: Wish, volume: PersistentVolume, readOnly: boolean): Result<Resolved> {
  const { source, name } = volume;
  if (source.kind === 'unsupported') {
    const message = `PersistentVolume ${name} is of kind ${source.what}, and only csi is supported`;
    return refuse('kind-unsupported', message);
  }
  const { secrets, blocked } = resolveSecrets(wish, source);
  const spec = csiSpec(wish, volume, source);
  return ok({ spec, specName: name, readOnly, secrets, blocked, generation: '', files: undefined });
}

function csiSpec(wish: Wish, volume: PersistentVolume, source: CsiSource): CsiVolumeSpec {
  const driver = wish.drivers.get(source.driver);
  return {
    kind: 'csi',
    id: csiVolumeId(source.driver, source.volumeHandle),
    driver: source.driver,
    volumeHandle: source.volumeHandle,
    specName: volume.name,
    fsType: source.fsType,
    mountOptions: volume.mountOptions,
    volumeAttributes: source.volumeAttributes,
    accessModes: volume.accessModes,
    readOnly: source.readOnly,
    attachRequired: driver?.attachRequired,
    podInfoOnMount: driver?.podInfoOnMount ?? false,
  };
}

function refuse(code: FailureCode, message: string): { readonly ok: false; readonly failure: Failure } {
  return fail({ code, message, effect: 'none' });
}
