/** From the wish to what the reconciler works on: read in slices, and taken over as a whole in one turn. */
import type { Clock } from '../../mount/host.ts';
import { createRounds } from '../../mount/process/rounds.ts';
import type { Sliced, Slices } from '../../mount/process/slices.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { DesiredState } from '../../reconciler/model/desired-state.ts';
import { NOTHING_DESIRED, type DesiredObjects } from '../source/desired-objects.ts';
import { LookPace } from '../source/look-pace.ts';

/** Volumes that were found on disk. */
export interface Joining {
  readonly found: readonly ActualVolume[];
  /** They join what stands, in the turn in which it was decided whom to keep of them. */
  readonly join: () => void;
}

export interface DesiredObjectsReaderParts {
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  readonly slices: Slices;
  /** The newest wish. */
  readonly newest: () => DesiredObjects;
  readonly desire: (desiredObjects: DesiredObjects) => Sliced<DesiredState>;
  /** What is wanted, and whom to keep of what stands and of what is `found`, are taken in one turn. */
  readonly take: (
    desiredObjects: DesiredObjects,
    desired: DesiredState,
    found: readonly ActualVolume[],
  ) => void;
}

export interface DesiredObjectsReader {
  /** The wish that was taken last: what is desired is made of this one, of which the newest may be a newer one. */
  current(): DesiredObjects;
  /**
   * Reads the newest wish; while one is being read, once more when that one was taken. Where much is wanted and much of
   * it changes, a pause of up to a second is between two readings; none is before a wish that is whole after one that
   * was not, nor when somebody is `joining`.
   */
  read(joining?: Joining): void;
  /** Settles when the newest wish was taken, or after `stop`. */
  settled(): Promise<void>;
  stop(): void;
}

/** What readings may take of the time while much changes. */
const SHARE = 0.25;

export function createDesiredObjectsReader({
  clock,
  slices,
  newest,
  desire,
  take,
}: DesiredObjectsReaderParts): DesiredObjectsReader {
  let current = NOTHING_DESIRED;
  const waiting: Joining[] = [];

  function* round(): Sliced<() => void> {
    const desiredObjects = newest();
    const joining = waiting.splice(0);
    const desired = yield* desire(desiredObjects);
    return () => {
      current = desiredObjects;
      take(
        desiredObjects,
        desired,
        joining.flatMap(({ found }) => found),
      );
      for (const { join } of joining) join();
    };
  }

  const rounds = createRounds({
    slices,
    begin: round,
    onDone: (takeOver) => takeOver(),
    pace: new LookPace(clock, SHARE),
  });
  return {
    current: () => current,
    read(joining) {
      if (joining !== undefined) waiting.push(joining);
      const isWhole = newest().complete && !current.complete;
      rounds.ask(joining !== undefined || isWhole);
    },
    settled: rounds.settled,
    stop: rounds.stop,
  };
}
