/** Did the wish for a volume change in a way that makes another try worth while? */
import { isSameSpec, isSameValue } from '../../plugins/kinds/spec-fields.ts';
import { isSameSecret } from '../../plugins/secret/sensitive.ts';
import { isSameSubpaths, type VolumeId } from '../../plugins/volume.ts';
import { isSameContext } from './attachment-identity.ts';
import type { DesiredPublication, DesiredVolume } from './desired-state.ts';

/** By which wish each volume was planned last. */
export interface DesiredChanges {
  /** The volume is about to be planned by this one: is another try worth while because of it? */
  isNews(volume: VolumeId, wanted: DesiredVolume | undefined): boolean;
}

export function createDesiredChanges(): DesiredChanges {
  const heeded = new Map<VolumeId, DesiredVolume>();
  return {
    isNews(volume, wanted) {
      const before = heeded.get(volume);
      if (wanted === before) return false;
      if (wanted === undefined) heeded.delete(volume);
      else heeded.set(volume, wanted);
      return wanted !== undefined && !isSameDesire(before, wanted);
    },
  };
}

const SECRETS = ['controllerPublish', 'stage', 'publish', 'expand'] as const;

/** True when nothing that an operation depends on differs; then back-off goes on. */
function isSameDesire(before: DesiredVolume | undefined, after: DesiredVolume): boolean {
  if (before === undefined || before.blocked?.code !== after.blocked?.code) return false;
  if (!SECRETS.every((one) => isSameSecret(before.secrets[one], after.secrets[one]))) return false;
  if (before.size?.bytes !== after.size?.bytes) return false;
  if (!isSameContext(before.attachment?.publishContext, after.attachment?.publishContext)) return false;
  if (before.publications.size !== after.publications.size) return false;
  for (const [key, wanted] of after.publications) {
    const known = before.publications.get(key);
    if (known === undefined || !isSamePlace(known, wanted)) return false;
  }
  return isSameSpec(before.spec, after.spec);
}

function isSamePlace(before: DesiredPublication, after: DesiredPublication): boolean {
  return (
    before.generation === after.generation &&
    before.hasDifferentLabels === after.hasDifferentLabels &&
    before.spec.readOnly === after.spec.readOnly &&
    isSameValue(before.spec.fsGroup, after.spec.fsGroup) &&
    isSameSubpaths(before.spec, after.spec)
  );
}
