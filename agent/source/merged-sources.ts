/** All sources as one wish: put together anew, in slices, whenever one of them has something else to say. */
import type { Cancel, Host } from '../../mount/host.ts';
import { createRounds } from '../../mount/process/rounds.ts';
import type { Slices } from '../../mount/process/slices.ts';
import {
  assembleDesiredObjects,
  createAssembly,
  NOTHING_DESIRED,
  type DesiredObjects,
} from './desired-objects.ts';
import type { NodeSight, ObjectsSource } from './objects-source.ts';

export interface MergedSourcesParts {
  readonly host: Pick<Host, 'random'>;
  /** The first comes first where two contradict each other. */
  readonly sources: readonly ObjectsSource[];
  readonly slices: Slices;
}

export interface MergedSources {
  /** Settles after the first reading of every source, whether it succeeded or not (`current().complete` says so). */
  start(node: NodeSight): Promise<void>;
  /** Nothing is read and no listener is called any more. */
  stop(): void;
  /** Replaced as a whole and never changed in place. */
  current(): DesiredObjects;
  /** Called after `current()` was replaced. */
  onChange(listener: () => void): Cancel;
}

/** Revisions begin anywhere below this, so that one of an earlier life is not met again by chance. */
const FIRST_REVISION_MAX = 2 ** 40;

export function createMergedSources({ host, sources, slices }: MergedSourcesParts): MergedSources {
  const listeners = new Set<() => void>();
  const assembly = createAssembly(Math.floor(host.random() * FIRST_REVISION_MAX));
  let desired = NOTHING_DESIRED;

  const assembling = createRounds<DesiredObjects>({
    slices,
    begin: () =>
      assembleDesiredObjects(
        sources.map((source) => ({ ...source.current(), name: source.name })),
        assembly,
      ),
    onDone: (assembled) => {
      desired = assembled;
      for (const listener of listeners) listener();
    },
  });

  const cancels = sources.map((source) => source.onChange(() => assembling.ask()));

  return {
    async start(node) {
      await Promise.all(sources.map((source) => source.start(node)));
      await assembling.settled();
    },
    stop() {
      for (const source of sources) source.stop();
      for (const cancel of cancels) cancel();
      assembling.stop();
      listeners.clear();
    },
    current: () => desired,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
