/** When taints of a Node mark a pod for deletion, as the taint eviction controller reckons it. Pure. */
import type { FieldReader } from '../../../kubernetes/fields/field-reader.ts';

const EVICTS = 'NoExecute';

/**
 * In ms since the epoch, by the cluster's clock; `never`: the pod tolerates all for good; undefined: no taint evicts,
 * or none says since when it is there. Of several taints, and of several tolerations of one, the soonest counts.
 */
export function evictionMs(pod: FieldReader, taints: readonly FieldReader[]): number | 'never' | undefined {
  const evicting = taints.filter((taint) => taint.key('effect').text() === EVICTS);
  if (evicting.length === 0) return undefined;
  const tolerations = pod.key('spec').key('tolerations').list();
  const times = evicting.flatMap((taint) => {
    const matching = tolerations.filter((one) => tolerates(one, taint));
    const spans = matching.flatMap((one) => secondsOf(one));
    if (matching.length > 0 && spans.length === 0) return [];
    const addedMs = Date.parse(taint.key('timeAdded').text() ?? '');
    return [addedMs + Math.min(...(matching.length === 0 ? [0] : spans)) * 1_000];
  });
  if (times.length === 0) return 'never';
  const told = times.filter((one) => !Number.isNaN(one));
  return told.length === 0 ? undefined : Math.min(...told);
}

/** None, or less than none, is at once; one that is not written is for good. */
function secondsOf(toleration: FieldReader): readonly number[] {
  const seconds = toleration.key('tolerationSeconds');
  if (!seconds.present) return [];
  return [Math.max(0, seconds.integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 'seconds') ?? 0)];
}

/** An empty key with `Exists` is every key, and an empty effect every effect. */
function tolerates(toleration: FieldReader, taint: FieldReader): boolean {
  const [key, effect, operator] = ['key', 'effect', 'operator'].map((one) => textOf(toleration, one));
  if (effect !== '' && effect !== EVICTS) return false;
  if (key !== '' && key !== textOf(taint, 'key')) return false;
  if (operator === 'Exists') return true;
  return key !== '' && textOf(toleration, 'value') === textOf(taint, 'value');
}

function textOf(reader: FieldReader, key: string): string {
  return reader.key(key).text() ?? '';
}
