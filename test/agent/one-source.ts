/** One source and the wish that it makes, on a node where nothing is. */
import { createMergedSources, type MergedSources } from '../../agent/source/merged-sources.ts';
import type { NodeSight, ObjectsSource } from '../../agent/source/objects-source.ts';
import { done } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';
import { createSlices, type Slices } from '../../mount/process/slices.ts';

export const EMPTY_NODE: NodeSight = {
  stake: () => 'nothing',
  missing: () => 0,
  refuseStranger: async () => done,
};

export interface OneSource extends Omit<MergedSources, 'start'> {
  start(): Promise<void>;
}

export function oneSource(
  host: Pick<Host, 'nowMs' | 'timer' | 'random'>,
  source: ObjectsSource,
  slices: Slices = createSlices({ clock: host }),
): OneSource {
  const merged = createMergedSources({ host, sources: [source], slices });
  return { ...merged, start: () => merged.start(EMPTY_NODE) };
}
