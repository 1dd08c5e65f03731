/** Logs that most pods vanished from the manifests at once, and how that ended: one line each. */
import type { Clock } from '../mount/host.ts';
import type { Log } from '../reconciler/log.ts';
import type { Wish } from './wish.ts';

export interface VanishingLog {
  /** The wish as it is now. */
  note(wish: Pick<Wish, 'pods' | 'vanishing'>): void;
}

export function createVanishingLog(log: Log, clock: Pick<Clock, 'nowMs'>): VanishingLog {
  let told: Wish['vanishing'];
  return {
    note({ pods, vanishing }) {
      const before = told;
      told = vanishing;
      if (vanishing !== undefined) {
        if (before !== undefined && vanishing.pods.size <= before.pods.size) return;
        const waitMs = Math.max(0, Math.round(vanishing.untilMs - clock.nowMs()));
        log.warn('most pods vanished from the manifests at once, kept for now', {
          vanished: vanishing.pods.size,
          pods: pods.size,
          waitMs,
        });
      } else if (before !== undefined) {
        const back = [...before.pods].filter((pod) => pods.has(pod)).length;
        log.warn('vanished pods decided on', { back, takenDown: before.pods.size - back });
      }
    },
  };
}
