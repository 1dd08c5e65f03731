/**
 * What the attach/detach controller waits for before it takes volumes from this node while that is not Ready. The Node
 * and the pods tell it, which are followed anyway: nothing is asked, and the Lease is not read (D-126).
 */
import type { ApiObjectEnvelope } from '../../../kubernetes/api/api-object.ts';
import { FieldReader } from '../../../kubernetes/fields/field-reader.ts';
import { OUT_OF_SERVICE } from '../../../kubernetes/objects/read-object.ts';
import type { PodUid } from '../../../plugins/volume.ts';
import { type DetachReport, FORCE_AFTER_MS, type PodDemand } from '../cluster-report.ts';
import { evictionMs } from './pod-eviction.ts';
import { countsForNoVolume, podLife } from './pod-life.ts';

/** More pods than a node has. Who is not among them counts as gone for long. */
const ENDED_MAX = 2_000;

/** What is known of the cluster at one moment. */
export interface ClusterSight {
  /** Undefined when it is not there, or was not read yet. */
  readonly node: ApiObjectEnvelope | undefined;
  readonly pods: Iterable<ApiObjectEnvelope>;
}

export class DetachClock {
  /** Pods that count for their volumes. */
  #demanding: ReadonlySet<PodUid> = new Set();
  /** Host clock: since when the others do not; the oldest first, none older than the controller waits. */
  readonly #endedMs = new Map<PodUid, number>();
  #seenMs: number | undefined;

  /** To be told of each change, so that it is known since when a pod counts no more. */
  look({ node, pods }: ClusterSight, nowMs: number): DetachReport | undefined {
    const reader = new FieldReader(node?.value, '', []);
    const taints = reader.key('spec').key('taints').list();
    const demands = new Map<PodUid, PodDemand>();
    for (const pod of pods) {
      const demand = demandOf(pod, taints);
      if (demand !== undefined) demands.set(pod.uid as PodUid, demand);
    }
    this.#note(new Set(demands.keys()), nowMs);
    const condition = reader
      .key('status')
      .key('conditions')
      .list()
      .find((one) => one.key('type').text() === 'Ready');
    const ready = condition?.key('status').text();
    if (node === undefined || ready === 'True') {
      this.#seenMs = undefined;
      return undefined;
    }
    this.#seenMs ??= nowMs;
    for (const [uid, sinceMs] of this.#endedMs) demands.set(uid, { kind: 'ended', sinceMs });
    const sinceWallMs = Date.parse(condition?.key('lastTransitionTime').text() ?? '');
    return {
      ready: condition === undefined ? 'missing' : ready === 'False' ? ready : 'Unknown',
      sinceWallMs: Number.isNaN(sinceWallMs) ? undefined : sinceWallMs,
      seenMs: this.#seenMs,
      outOfService: taints.some((taint) => taint.key('key').text() === OUT_OF_SERVICE),
      pods: demands,
    };
  }

  #note(demanding: ReadonlySet<PodUid>, nowMs: number): void {
    for (const uid of this.#demanding) if (!demanding.has(uid)) this.#endedMs.set(uid, nowMs);
    for (const [uid, sinceMs] of this.#endedMs) {
      const isOld = nowMs - sinceMs > FORCE_AFTER_MS || this.#endedMs.size > ENDED_MAX;
      if (isOld || demanding.has(uid)) this.#endedMs.delete(uid);
    }
    this.#demanding = demanding;
  }
}

/** Undefined where it counts for nothing: it has ended, or is the shadow of a manifest. */
function demandOf({ value }: ApiObjectEnvelope, taints: readonly FieldReader[]): PodDemand | undefined {
  const life = podLife(value);
  if (life === 'over' || life === 'mirror') return undefined;
  if (life === 'ending') return countsForNoVolume(value) ? undefined : { kind: 'leaving' };
  const markedFromMs = evictionMs(new FieldReader(value, '', []), taints);
  return markedFromMs === 'never' ? { kind: 'staying' } : { kind: 'there', markedFromMs };
}
