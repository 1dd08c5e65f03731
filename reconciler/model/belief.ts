/**
 * What is believed of the volumes of this node, and the only place where it changes. Everyone else has a view that
 * cannot be written to. Each door is named by its cause, and what its cause cannot change is a broken invariant.
 */
import { assert } from '../../mount/failure.ts';
import type { PodUid, VolumeId } from '../../plugins/volume.ts';
import { type ActualState, type ActualVolume, isForgettable, podsOf } from './actual-state.ts';

export interface BeliefView {
  /** Live: what is learnt later shows in it. */
  readonly volumes: ActualState;
  /** The volumes that have, or may have, a place of the pod; found without a look at the others. */
  ofPod(pod: PodUid): readonly ActualVolume[];
}

export interface Belief extends BeliefView {
  /** An operation begins: what it may change is unsure until it has ended. */
  begin(volume: ActualVolume): void;
  /** An operation has ended with something to remember. */
  learn(volume: ActualVolume): void;
  /** The kernel was asked about a volume that is known, and shows it otherwise than it was believed. */
  observe(volume: ActualVolume): void;
  /** Time has passed over calls that were given up: what they may have made counts as possible. */
  expect(volume: ActualVolume): void;
  /** A volume was found on disk or in the mount table. */
  reconstruct(volume: ActualVolume): void;
  /** Whether it may belong to another node has changed, or under which attachment it stands. */
  quarantine(volume: ActualVolume): void;
  /** Nothing of it is left, or another volume explains it. */
  forget(id: VolumeId): void;
}

/** What is forgettable in `recovered` is kept until it was visited. */
export function createBelief(recovered: ActualState): Belief {
  const volumes = new Map<VolumeId, ActualVolume>();
  const byPod = new Map<PodUid, Set<VolumeId>>();

  function index(before: ActualVolume | undefined, after: ActualVolume | undefined): void {
    if (before?.publications === after?.publications) return;
    const left = new Set(before === undefined ? [] : podsOf(before));
    const come = new Set(after === undefined ? [] : podsOf(after));
    for (const pod of left) {
      if (before === undefined || come.has(pod)) continue;
      const ids = byPod.get(pod);
      ids?.delete(before.spec.id);
      if (ids?.size === 0) byPod.delete(pod);
    }
    for (const pod of come) {
      if (after === undefined || left.has(pod)) continue;
      byPod.set(pod, (byPod.get(pod) ?? new Set()).add(after.spec.id));
    }
  }

  function set(volume: ActualVolume): void {
    const { id } = volume.spec;
    index(volumes.get(id), volume);
    volumes.set(id, volume);
  }

  /** A volume that stands keeps the specification and the needs of the day it was set up. */
  function change(volume: ActualVolume): void {
    const before = volumes.get(volume.spec.id);
    assert(before !== undefined, 'only what is known is seen otherwise');
    assert(before.needs === volume.needs, 'a look does not change what a volume needs');
    set(volume);
  }

  for (const volume of recovered.values()) set(volume);
  return {
    volumes,
    ofPod(pod) {
      return [...(byPod.get(pod) ?? [])].flatMap((id) => volumes.get(id) ?? []);
    },
    begin: set,
    learn(volume) {
      assert(volumes.has(volume.spec.id), 'what an operation is about is known until it has ended');
      assert(!isForgettable(volume), 'what is wholly down is forgotten');
      set(volume);
    },
    observe: change,
    expect: change,
    reconstruct: set,
    quarantine(volume) {
      // An operator may say so of a volume that is wanted, and of which nothing stands yet.
      if (volumes.has(volume.spec.id)) change(volume);
      else set(volume);
    },
    forget(id) {
      index(volumes.get(id), undefined);
      volumes.delete(id);
    },
  };
}
