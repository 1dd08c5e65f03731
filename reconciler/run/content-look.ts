/** After a restart: do the files of a volume stand as they are wanted? Then none is written, and no record either. */
import type { PluginRegistry } from '../../plugins/plugin.ts';
import type { ActualVolume, VolumeOutcome } from '../model/actual-state.ts';
import type { learn } from '../model/belief-change.ts';
import type { Belief } from '../model/belief.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { Operation } from '../model/operation.ts';
import { type PerformContext, publicationCallOf } from './perform.ts';

export interface ContentLookParts {
  readonly plugins: PluginRegistry;
  readonly belief: Belief;
  readonly desired: () => DesiredState;
  readonly learn: typeof learn;
}

/** What surrounds an operation, whatever it is about. */
export type Surroundings = Omit<PerformContext, 'volume' | 'actual' | 'needs' | 'wanted'>;

/**
 * What a publish comes to that would find every file as it is wanted, and belief has learnt it; settles with undefined
 * when the publish has to be done. Undefined at once: there is nothing to look at. Looked at is what was proven to be
 * mounted still after a restart: which files it has nobody knows then, because no record tells of a content.
 */
export type ContentLook = (
  operation: Operation,
  surroundings: Surroundings,
) => Promise<VolumeOutcome | undefined> | undefined;

export function createContentLook({ plugins, belief, desired, ...policy }: ContentLookParts): ContentLook {
  return (operation, surroundings) => {
    const actual = belief.volumes;
    const volume = actual.get(operation.volume);
    const asked = volume === undefined ? undefined : plugins.of(volume.spec).isUpToDate;
    if (volume === undefined || asked === undefined || operation.kind !== 'publish') return undefined;
    const place = volume.publications.get(operation.publication);
    if (place?.presence.kind !== 'present' || place.generation !== undefined) return undefined;
    const wanted = desired().volumes.get(operation.volume);
    const generation = wanted?.publications.get(operation.publication)?.generation;
    const context: PerformContext = { volume, actual, needs: volume.needs, wanted, ...surroundings };
    return asked(publicationCallOf(context, operation.publication)).then((isSame) => {
      if (!isSame) return surroundings.stillWanted() ? undefined : NO_LONGER_WANTED;
      const learnt = { mount: place.mount, generation, isUnchanged: true } as const;
      const outcome: VolumeOutcome = { kind: 'done', learnt };
      const now: ActualVolume | undefined = actual.get(operation.volume);
      if (now !== undefined) belief.learn(policy.learn(now, volume, operation, outcome));
      return outcome;
    });
  };
}

/** Nothing was done. */
export const NO_LONGER_WANTED: VolumeOutcome = {
  kind: 'failed',
  failure: {
    code: 'no-longer-wanted',
    message: 'the wish changed while what stands was looked at',
    effect: 'none',
  },
};
