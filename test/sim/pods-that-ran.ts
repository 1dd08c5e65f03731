/**
 * Which pods may run: all that is wanted for one was there in one moment, in whichever life of the agent. What died
 * before that goes to be set up anew; what dies after it stays with the pod.
 */
import type { AgentView } from '../../agent/node/agent-view.ts';
import type { PodUid, VolumeId } from '../../plugins/volume.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import { type DesiredState, isPodWanted, isUnresolved } from '../../reconciler/model/desired-state.ts';

/** What was seen to be dead for so long was decided about. */
const DECIDED_MS = 1_000;

interface PodsThatRanParts {
  readonly nowMs: () => number;
  /** Is anything mounted for the pod, whoever knows of it? */
  readonly hasMounts: (pod: PodUid) => boolean;
  /** Has the agent seen all that may be there of the pod? */
  readonly isKnown: (pod: PodUid) => boolean;
}

export class PodsThatRan {
  readonly #parts: PodsThatRanParts;
  readonly #ran = new Set<PodUid>();
  /** Whether the pod had nothing when this life saw it wanted first, and could not have (D-136). */
  readonly #isNew = new Map<PodUid, boolean>();
  /** Since when the agent knows of a stage that it is dead, and nothing of the volume was under way. */
  readonly #deadSinceMs = new Map<VolumeId, number>();
  #had: ReadonlySet<PodUid> = new Set();
  #reconciler: AgentView['reconciler'] | undefined;

  constructor(parts: PodsThatRanParts) {
    this.#parts = parts;
  }

  has(pod: PodUid): boolean {
    return this.#ran.has(pod);
  }

  /** No container outlives the power. */
  forgetAll(): void {
    this.#ran.clear();
  }

  /** After every event. The answer: what the pods have that became ready and are new to this life, and it is dead. */
  look(reconciler: AgentView['reconciler']): readonly string[] {
    const [actual, desired] = [reconciler.actual(), reconciler.desired()];
    const isLifeNew = this.#reconciler !== reconciler;
    if (isLifeNew) {
      this.#reconciler = reconciler;
      this.#isNew.clear();
      this.#deadSinceMs.clear();
    }
    const wanted = placesByPod(desired);
    for (const pod of wanted.keys())
      if (!this.#isNew.has(pod))
        this.#isNew.set(pod, !isLifeNew && !this.#had.has(pod) && this.#parts.isKnown(pod));
    this.#noteDead(reconciler);
    this.#had = new Set(
      [...actual.values()].flatMap(({ publications }) =>
        [...publications.values()].map(({ spec }) => spec.pod.uid),
      ),
    );
    for (const pod of this.#ran) if (this.#isOver(pod, desired)) this.#ran.delete(pod);
    const waiting = new Set(desired.unresolved.map(({ pod }) => pod.uid));
    const found: string[] = [];
    for (const [pod, volumes] of wanted) {
      if (this.#ran.has(pod) || waiting.has(pod)) continue;
      if (!volumes.every((id) => isThere(actual, id, pod))) continue;
      this.#ran.add(pod);
      const dead = volumes.find((id) => this.#isKnownDead(id));
      if (this.#isNew.get(pod) === true && dead !== undefined) found.push(`${pod} is ready with ${dead}`);
    }
    return found;
  }

  /** Nobody wants it, and nothing is left of it: if it comes again under its uid, it begins anew. */
  #isOver(pod: PodUid, desired: DesiredState): boolean {
    const { complete, volumes, unresolved, frozenPods, heldPods, unknownOrigins } = desired;
    // What cannot be read may want it.
    if (!complete || unknownOrigins.size > 0 || this.#had.has(pod) || isPodWanted(volumes, pod)) return false;
    if (isUnresolved(unresolved, pod) || frozenPods.has(pod) || heldPods?.has(pod) === true) return false;
    return !this.#parts.hasMounts(pod);
  }

  #noteDead(reconciler: AgentView['reconciler']): void {
    const busy = new Set(reconciler.running().map(({ operation }) => operation.volume));
    for (const [id, { sickness, staged }] of reconciler.actual()) {
      if (sickness?.of !== 'stage' || staged.kind === 'absent' || busy.has(id)) this.#deadSinceMs.delete(id);
      else if (!this.#deadSinceMs.has(id)) this.#deadSinceMs.set(id, this.#parts.nowMs());
    }
  }

  #isKnownDead(id: VolumeId): boolean {
    const sinceMs = this.#deadSinceMs.get(id);
    return sinceMs !== undefined && this.#parts.nowMs() - sinceMs > DECIDED_MS;
  }
}

function placesByPod({ volumes }: DesiredState): ReadonlyMap<PodUid, readonly VolumeId[]> {
  const wanted = new Map<PodUid, VolumeId[]>();
  for (const [id, { publications }] of volumes) {
    for (const { spec } of publications.values()) {
      const { uid } = spec.pod;
      wanted.set(uid, [...(wanted.get(uid) ?? []), id]);
    }
  }
  return wanted;
}

function isThere(actual: ActualState, id: VolumeId, pod: PodUid): boolean {
  const places = [...(actual.get(id)?.publications.values() ?? [])];
  return places.some(({ spec, presence }) => spec.pod.uid === pod && presence.kind === 'present');
}
