/** What claims are told of the volumes on this machine: which stand, and how far each has grown. */
import type { Cancel } from '../../mount/host.ts';
import { persistentVolumeOf } from '../../plugins/kinds/volume-questions.ts';
import { type ActualVolume, isSetUp } from '../../reconciler/model/actual-state.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import type { Reconciler } from '../../reconciler/reconciler.ts';
import type { VolumesHere } from './claim-desk.ts';
import type { GrowthFacts } from './growth-report.ts';

/** What of a running agent is looked at. */
export interface VolumesWatch {
  view(): { readonly reconciler: Pick<Reconciler, 'actual' | 'desired' | 'obstacles'> };
  onChange(listener: () => void): Cancel;
}

export function volumesHere(watch: VolumesWatch): VolumesHere {
  const setUp = (): readonly ActualVolume[] => [...watch.view().reconciler.actual().values()].filter(isSetUp);
  return {
    standing: () => new Set(setUp().flatMap(({ spec }) => persistentVolumeOf(spec) ?? [])),
    growthOf(volumeName) {
      const volume = setUp().find(({ spec }) => persistentVolumeOf(spec) === volumeName);
      return volume === undefined ? undefined : growthOf(volume, watch);
    },
    onChange: (listener) => watch.onChange(listener),
  };
}

function growthOf(volume: ActualVolume, watch: VolumesWatch): GrowthFacts | undefined {
  const { reconciler } = watch.view();
  const { id } = volume.spec;
  const size = reconciler.desired().volumes.get(id)?.size;
  if (size === undefined) return undefined;
  const isMine = (one: Pick<Obstacle, 'volume' | 'operation'>): boolean =>
    one.volume === id && one.operation === 'expand';
  const obstacle = reconciler.obstacles().find(isMine);
  const isRunning = obstacle?.kind === 'running';
  return {
    wantedBytes: size.bytes,
    hasBytes: volume.sizeBytes,
    held: size.held,
    hasBegun: isRunning || (obstacle?.attempts ?? 0) > 0,
    refused: volume.refusedExpansion,
    failure: isRunning ? obstacle.lastFailure : failureOf(obstacle),
  };
}

/** What the last try ran into; of one that was never tried, nothing. */
function failureOf(obstacle: Obstacle | undefined): GrowthFacts['failure'] {
  if (obstacle === undefined || obstacle.attempts === 0 || obstacle.code === undefined) return undefined;
  return { code: obstacle.code, message: obstacle.message };
}
