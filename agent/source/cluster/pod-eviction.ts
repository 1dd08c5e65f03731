/** When taints of a Node mark a pod for deletion, as the taint eviction controller reckons it. Pure. */
import type { FieldReader } from '../../../kubernetes/fields/field-reader.ts';

const EVICTS = 'NoExecute';
/** As JSON.parse reads the largest whole number that Kubernetes has, which is no exact one any more. */
const INT64_LIMIT = 2 ** 63;
/** The controller counts nanoseconds in as many bits, some 292 years. */
const SECONDS_LIMIT = INT64_LIMIT / 1e9;

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

/** None, or less than none, is at once; one that is not written, or is the largest that can be, is for good. */
function secondsOf(toleration: FieldReader): readonly number[] {
  const field = toleration.key('tolerationSeconds');
  const seconds = field.integer(-INT64_LIMIT, INT64_LIMIT, 'seconds') ?? 0;
  return field.present && seconds < SECONDS_LIMIT ? [Math.max(0, seconds)] : [];
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
