/** When a volume is grown on this node (CSI NodeExpandVolume; KEP-531, KEP-1790). Pure. */
import type { Needs } from '../../plugins/plugin.ts';
import { type Bytes, isMoreThan } from '../../plugins/volume.ts';
import { type ActualVolume, isRestarted } from './actual-state.ts';
import type { DesiredVolume } from './desired-state.ts';

/**
 * `first`: staged and no pod was told of it yet, so it is grown before one sees it. `beside`: published, so it is grown
 * while it is used. Never when it was refused for this size, or, refused because it was in use, while it is.
 */
export function isGrowthDue(
  needs: Needs | undefined,
  desired: DesiredVolume,
  actual: ActualVolume | undefined,
): 'first' | 'beside' | 'no' {
  const { size } = desired;
  if (needs?.expand !== true || size === undefined || size.held !== undefined || actual === undefined)
    return 'no';
  const has = actual.sizeBytes ?? size.knownBytes;
  if (has === undefined || !isMoreThan(size.bytes, has) || isRefused(actual, size.bytes)) return 'no';
  const published = [...actual.publications.values()];
  if (published.some(({ presence }) => presence.kind === 'present')) return 'beside';
  // No pod has anything either of what stood before a reboot; one that is being set up may have it.
  const isUsed = published.some(({ untold, presence }) => untold !== true || !isRestarted(presence));
  return !isUsed && needs.stage && actual.staged.kind === 'present' ? 'first' : 'no';
}

/** "In use" holds for every size; it ends when nothing is published any more, and then it is forgotten. */
function isRefused({ refusedExpansion }: ActualVolume, wanted: Bytes): boolean {
  if (refusedExpansion === undefined) return false;
  return refusedExpansion.because === 'in-use' || refusedExpansion.toBytes === wanted;
}
