/** Two pods that want one volume: what must be the same for both, because a volume is staged once. */
import { assert, type Result } from '../../mount/failure.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import {
  fixedFields,
  meansSame,
  ruleOf,
  type SpecField,
  fieldValue,
} from '../../plugins/kinds/spec-fields.ts';
import { isInline, persistentVolumeOf } from '../../plugins/kinds/volume-questions.ts';
import type { PodReference, VolumeSpec } from '../../plugins/volume.ts';
import { objectKey } from '../../kubernetes/objects/objects.ts';
import { refuse } from '../../kubernetes/fields/refuse.ts';

/** A volume of a shared kind, and a pod that wants it. */
export interface Wanted {
  readonly spec: VolumeSpec;
  readonly pod: PodReference;
}

type Conflict = Extract<Result<never>, { ok: false }>;

/**
 * Why the second cannot be the volume of the first (CSI NodePublishVolume: never again with another capability): by
 * `spec-invalid`, or by `volume-in-use` when it will do once the first pod is gone (another SELinux context, KEP-1710).
 */
export function conflictOf(first: Wanted, second: Wanted): Conflict | undefined {
  const [a, b] = [first.spec, second.spec];
  assert(
    traitsOf(a).isShared && a.kind === b.kind,
    'a volume that is wanted more than once is of a shared kind',
  );
  const holder = objectKey(first.pod);
  if (isInline(a) && isInline(b)) {
    const message =
      `the inline volume ${nameOf(b)} would have the handle of the inline volume ${nameOf(a)} of pod ${holder}, ` +
      'because pod uid and volume name run together: give one of the pods another uid';
    return refuse('spec-invalid', message, holder);
  }
  const different = fixedForBoth(a, b).filter((field) => !meansSame(a, b, field));
  const forGood = different.filter((field) => ruleOf(a, field).inTurn !== true);
  if (forGood.length > 0) {
    const message =
      `${titleOf(b)} is the volume of ${nameOf(a)}, which is wanted already, ` +
      `with another ${forGood.join(', ')}`;
    return refuse('spec-invalid', message);
  }
  const [field] = different;
  if (field === undefined) return undefined;
  const message =
    `${titleOf(b)} is wanted with ${valueTitle(b, field)}, and pod ${holder} has it with ${valueTitle(a, field)}: ` +
    'a volume is mounted with one at a time';
  return refuse('volume-in-use', message, holder);
}

/** What a driver says of all its volumes is not of two pods, though it may be of two lifecycles. */
function fixedForBoth(a: VolumeSpec, b: VolumeSpec): readonly SpecField[] {
  const fixed = new Set(fixedFields(b));
  return fixedFields(a).filter((field) => fixed.has(field) && ruleOf(a, field).ofDriver !== true);
}

function titleOf(spec: VolumeSpec): string {
  const isPersistent = persistentVolumeOf(spec) !== undefined;
  return `${isInline(spec) ? 'inline volume' : isPersistent ? 'PersistentVolume' : 'volume'} ${nameOf(spec)}`;
}

function nameOf(spec: VolumeSpec): string {
  return traitsOf(spec).shownName?.(spec) ?? spec.id;
}

function valueTitle(spec: VolumeSpec, field: SpecField): string {
  const title = ruleOf(spec, field).title ?? field;
  const value = fieldValue(spec, field);
  return value === '' ? `no ${title}` : `${title} ${String(value)}`;
}
