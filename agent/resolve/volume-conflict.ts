/** Two pods that want one volume: what must be the same for both, because a volume is staged once. */
import { assert, type Result } from '../../mount/failure.ts';
import type { CsiVolumeSpec, PodReference, VolumeSpec } from '../../plugins/volume.ts';
import { objectKey } from '../../kubernetes/objects/objects.ts';
import { refuse } from '../source/refuse.ts';
import { compareText } from '../source/desired-objects.ts';

/** A CSI volume, and a pod that wants it. */
export interface Wanted {
  readonly spec: VolumeSpec;
  readonly pod: PodReference;
}

type Conflict = Extract<Result<never>, { ok: false }>;

/** All that a driver is told when it stages or publishes. */
const COMMON = [
  'mode',
  'lifecycle',
  'fsType',
  'mountOptions',
  'volumeAttributes',
  'accessModes',
  'readOnly',
] as const satisfies readonly (keyof CsiVolumeSpec)[];

/**
 * Why the second cannot be the volume of the first (CSI NodePublishVolume: never again with another capability): by
 * `spec-invalid`, or by `volume-in-use` when it will do once the first pod is gone (another SELinux context, KEP-1710).
 */
export function conflictOf(first: Wanted, second: Wanted): Conflict | undefined {
  const [a, b] = [first.spec, second.spec];
  assert(a.kind === 'csi' && b.kind === 'csi', 'only a CSI volume is wanted more than once');
  const holder = objectKey(first.pod);
  if (a.lifecycle === 'Ephemeral' && b.lifecycle === 'Ephemeral') {
    const message =
      `the inline volume ${b.specName} would have the handle of the inline volume ${a.specName} of pod ${holder}, ` +
      'because pod uid and volume name run together: give one of the pods another uid';
    return refuse('spec-invalid', message, holder);
  }
  // The kubelet's paths of a device go by the name of its PersistentVolume.
  const fields = a.mode === 'Block' && b.mode === 'Block' ? ([...COMMON, 'specName'] as const) : COMMON;
  const different = fields.filter((one) => canonical(a[one]) !== canonical(b[one]));
  if (different.length > 0) {
    const message =
      `${titleOf(b)} is the volume of ${a.specName}, which is wanted already, ` +
      `with another ${different.join(', ')}`;
    return refuse('spec-invalid', message);
  }
  if (a.seLinuxContext === b.seLinuxContext) return undefined;
  const message =
    `${titleOf(b)} is wanted with ${contextOf(b)}, and pod ${holder} has it with ${contextOf(a)}: ` +
    'a volume is mounted with one at a time';
  return refuse('volume-in-use', message, holder);
}

function titleOf({ lifecycle, specName }: CsiVolumeSpec): string {
  return `${lifecycle === 'Ephemeral' ? 'inline volume' : 'PersistentVolume'} ${specName}`;
}

function contextOf({ seLinuxContext }: CsiVolumeSpec): string {
  return seLinuxContext === '' ? 'no SELinux context' : `SELinux context ${seLinuxContext}`;
}

function canonical(value: CsiVolumeSpec['volumeAttributes'] | readonly string[] | string | boolean): string {
  if (typeof value !== 'object' || Array.isArray(value)) return JSON.stringify(value);
  return JSON.stringify(Object.entries(value).sort(([a], [b]) => compareText(a, b)));
}
