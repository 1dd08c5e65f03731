/** Since when anything of a volume stands here: what its attachment said before is not about that. */
import type { Clock } from '../../mount/host.ts';
import { mayBeLost } from './attachment-rung.ts';
import type { FollowedVolume, FollowedVolumes } from './followed-volumes.ts';

export interface StandingTimes {
  /** All that are followed now, by the names of their attachments; answers those that stand and did not before. */
  note(followed: FollowedVolumes): readonly FollowedVolume[];
  /** Host clock: nobody had noted before that anything of it stands; Infinity: nobody has yet. */
  sinceMs(name: string): number;
}

export function createStandingTimes(clock: Pick<Clock, 'nowMs'>): StandingTimes {
  let times: ReadonlyMap<string, number> = new Map();
  return {
    note(followed) {
      const nowMs = clock.nowMs();
      const standing = [...followed].filter(([, { volume }]) => mayBeLost(volume));
      const begun = standing.filter(([name]) => !times.has(name));
      times = new Map(standing.map(([name]) => [name, times.get(name) ?? nowMs]));
      return begun.map(([, one]) => one);
    },
    sinceMs: (name) => times.get(name) ?? Number.POSITIVE_INFINITY,
  };
}
