/**
 * Time that moves only when nothing else can: timers and the completions of effects are events on one queue.
 *
 * Guarantees: (1) one event at a time, and between two events every promise that can settle has settled (all
 * code under test uses microtasks only). (2) Order is by time; events of one millisecond run in an
 * order drawn from the seed. (3) Nothing here loops: the caller counts `steps` and gives up.
 */
import type { Cancel } from '../../mount/host.ts';
import type { Random } from './random.ts';

interface Event {
  readonly atMs: number;
  readonly tie: number;
  fire: (() => void) | undefined;
}

export interface VirtualTime {
  nowMs(): number;
  /** Calls `fire` once, `delayMs` virtual milliseconds from now, unless cancelled. */
  after(delayMs: number, fire: () => void): Cancel;
  /** Fires the earliest event and lets every promise settle; undefined when the queue is empty. */
  step(): Promise<void> | undefined;
  /** Events fired so far. */
  steps(): number;
  /** When the next event is due; undefined when the queue is empty. */
  nextAtMs(): number | undefined;
  settle(): Promise<void>;
}

const STEPS_PER_TURN = 32;

export function createVirtualTime(random: Random): VirtualTime {
  const queue: Event[] = [];
  let nowMs = 0;
  let steps = 0;

  /**
   * A tick queued here runs when no microtask is left. Now and then a turn of the real loop, so that node gets round to
   * telling of rejections nobody handles.
   */
  function settle(): Promise<void> {
    return new Promise((resolve) => {
      if (steps % STEPS_PER_TURN === 0) setImmediate(resolve);
      else process.nextTick(resolve);
    });
  }

  function dropCancelled(): void {
    while (queue[0] !== undefined && queue[0].fire === undefined) pop(queue);
  }

  return {
    nowMs: () => nowMs,
    after: (delayMs, fire) => {
      const event: Event = { atMs: nowMs + Math.max(0, delayMs), tie: random.next(), fire };
      push(queue, event);
      return () => {
        event.fire = undefined;
      };
    },
    step: () => {
      dropCancelled();
      const event = pop(queue);
      if (event === undefined) return undefined;
      nowMs = event.atMs;
      steps += 1;
      event.fire?.();
      return settle();
    },
    steps: () => steps,
    nextAtMs: () => {
      dropCancelled();
      return queue[0]?.atMs;
    },
    settle,
  };
}

function earlier(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.tie < b.tie);
}

/** Binary heap, smallest first. */
function push(heap: Event[], event: Event): void {
  let at = heap.length;
  heap.push(event);
  while (at > 0) {
    const up = (at - 1) >> 1;
    const parent = heap[up] as Event;
    if (!earlier(event, parent)) break;
    heap[at] = parent;
    at = up;
  }
  heap[at] = event;
}

function pop(heap: Event[]): Event | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (top === undefined || last === undefined || heap.length === 0) return top;
  let at = 0;
  for (;;) {
    const left = 2 * at + 1;
    const right = left + 1;
    let least = left;
    if (left >= heap.length) break;
    if (right < heap.length && earlier(heap[right] as Event, heap[left] as Event)) least = right;
    if (!earlier(heap[least] as Event, last)) break;
    heap[at] = heap[least] as Event;
    at = least;
  }
  heap[at] = last;
  return top;
}
