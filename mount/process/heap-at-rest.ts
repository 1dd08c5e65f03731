/** Memory that was needed for a burst of work, given back when there is nothing to do. */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Cancel, Clock } from '../host.ts';
import { createGathered } from './gathered.ts';

/** So long nothing has happened: whoever sets up one pod after the other is not stopped between two of them. */
const REST_MS = 1_000;
/** Pages that became empty go with the next collection, once they were swept. */
const SWEPT_MS = 500;
/** Less than that is not worth the pause, and neither is what is less than half of what there is to keep. */
const WASTE_BYTES_MIN = 8_388_608;

export interface HeapAtRestParts {
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** Where something happens memory is made, and more may be. */
  readonly work: { onChange(listener: () => void): Cancel };
  readonly isIdle: () => boolean;
  /** What the heap has, what is garbage included. */
  readonly usedBytes?: () => number;
  readonly collect?: () => void;
}

/**
 * Has V8 collect once the work is over. By itself it keeps what it grew to: of 50 MB that an agent had after it had set
 * up 440 volumes, 20 were alive. Nothing is done on a node on which nothing happens.
 */
export function collectAtRest(parts: HeapAtRestParts): Cancel {
  const { clock, isIdle, usedBytes = heapBytes, collect = collectGarbage } = parts;
  let changedMs = clock.nowMs();
  let keptBytes = 0;
  let cancelSecond: Cancel = () => {};
  const rest = createGathered(clock, REST_MS, () => {
    if (!isIdle() || clock.nowMs() - changedMs < REST_MS) return rest.soon();
    if (usedBytes() - keptBytes < Math.max(WASTE_BYTES_MIN, keptBytes / 2)) return;
    collect();
    keptBytes = usedBytes();
    cancelSecond();
    cancelSecond = clock.timer(SWEPT_MS, collect);
  });
  const unsubscribe = parts.work.onChange(() => {
    changedMs = clock.nowMs();
    rest.soon();
  });
  return () => {
    unsubscribe();
    rest.stop();
    cancelSecond();
  };
}

function heapBytes(): number {
  return getHeapStatistics().used_heap_size;
}

/** The function is there in contexts that are made while the flag is set, and Node.js offers it in no other way. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  collect();
}
