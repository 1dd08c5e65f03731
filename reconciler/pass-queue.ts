/** The volumes that something happened to, until the next pass visits them. */
import type { VolumeId } from '../plugins/volume.ts';

export interface PassQueue {
  /** The volume is visited in the next pass, which is due at the end of this turn. */
  touch(volume: VolumeId): void;
  /** No pass is due. */
  idle(): boolean;
  /** Passes made so far. */
  passes(): number;
  /** No pass is made any more. */
  close(): void;
  isClosed(): boolean;
}

/** `onPass` is called after each pass over the volumes that were touched; never over all because one changed. */
export function createPassQueue(visit: (volume: VolumeId) => void, onPass: () => void): PassQueue {
  const dirty = new Set<VolumeId>();
  let passes = 0;
  let scheduled = false;
  let closed = false;

  function pass(): void {
    scheduled = false;
    if (closed) return;
    passes += 1;
    for (const volume of dirty) {
      dirty.delete(volume);
      visit(volume);
    }
    onPass();
  }

  return {
    touch(volume) {
      dirty.add(volume);
      if (scheduled || closed) return;
      scheduled = true;
      queueMicrotask(pass);
    },
    idle: () => !scheduled,
    passes: () => passes,
    close() {
      closed = true;
    },
    isClosed: () => closed,
  };
}
