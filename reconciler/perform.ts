/** From an operation to the one plugin verb, and from its result to what was learnt. */
import { assert, type Result } from '../mount/failure.ts';
import {
  type Needs,
  NO_SECRETS,
  type PublicationCall,
  type VolumeCall,
  type VolumePlugin,
} from '../plugins/plugin.ts';
import type { PublicationKey } from '../plugins/volume.ts';
import type { ActualVolume, Learnt, Outcome } from './actual-state.ts';
import type { DesiredVolume } from './desired-state.ts';
import type { Operation } from './operation.ts';

export interface PerformContext {
  /** As begun: what the record says while the effect is under way. */
  readonly volume: ActualVolume;
  /** Of today's driver on the way up; as set up on the way down (DR-16). */
  readonly needs: Needs;
  readonly wanted: DesiredVolume | undefined;
  readonly stillWanted: () => boolean;
}

/** Never rejects for input or the world; settles when the effect has ended. */
export async function performVerb(
  plugin: VolumePlugin,
  operation: Operation,
  context: PerformContext,
): Promise<Outcome> {
  const call = volumeCall(context);
  switch (operation.kind) {
    case 'attach':
      return outcomeOf(await plugin.attach(call), ({ publishContext }) => ({ publishContext }));
    case 'detach':
      return outcomeOf(await plugin.detach(call), () => ({}));
    case 'stage':
      return outcomeOf(await plugin.stage(call), ({ stagedMount }) => ({ mount: stagedMount }));
    case 'unstage':
      return outcomeOf(await plugin.unstage(call), () => ({}));
    case 'publish': {
      const generation = context.wanted?.publications.get(operation.publication)?.generation;
      const published = await plugin.publish(publicationCall(call, context, operation.publication));
      return outcomeOf(published, ({ mount }) => ({ mount, generation }));
    }
    case 'unpublish':
      return outcomeOf(
        await plugin.unpublish(publicationCall(call, context, operation.publication)),
        () => ({}),
      );
  }
}

function volumeCall({ volume, needs, wanted, stillWanted }: PerformContext): VolumeCall {
  return {
    spec: volume.spec,
    facts: { needs, publishContext: volume.publishContext, stagedMount: volume.stagedMount },
    secrets: wanted?.secrets ?? NO_SECRETS,
    stillWanted,
  };
}

function publicationCall(call: VolumeCall, context: PerformContext, key: PublicationKey): PublicationCall {
  const publication = context.volume.publications.get(key)?.spec;
  assert(publication !== undefined, 'a begun publication is known');
  return { ...call, publication, files: context.wanted?.publications.get(key)?.files };
}

function outcomeOf<T>(result: Result<T>, learnt: (value: T) => Learnt): Outcome {
  return result.ok
    ? { kind: 'done', learnt: learnt(result.value) }
    : { kind: 'failed', failure: result.failure };
}
