/** Walks that give one tree to a group take turns: two at once would leave it to both. */

export interface Turn {
  /** Whose walks, whatever their paths. */
  readonly key: string;
  readonly gid: number;
  /** Ends the wait; a walk that has begun ends by itself. */
  readonly signal: AbortSignal;
  /** Told when it has to wait, and for the walk to which group. */
  readonly onWaiting: (gid: number) => void;
}

export interface OwnershipTurns {
  /**
   * Runs `walk` when all that came before it with this key have ended, whole or not; first come, first served.
   * Undefined when `signal` was aborted before its turn came: then nothing was run.
   */
  run<T>(turn: Turn, walk: () => Promise<T>): Promise<T | undefined>;
}

interface Waiter {
  readonly gid: number;
  readonly begin: () => void;
}

export function createOwnershipTurns(): OwnershipTurns {
  /** Each key has the one that runs, then those that wait. */
  const queues = new Map<string, Waiter[]>();

  function leave(key: string, queue: Waiter[], place: Waiter): void {
    const [running] = queue;
    queue.splice(queue.indexOf(place), 1);
    if (queue.length === 0) queues.delete(key);
    else if (running === place) queue[0]?.begin();
  }

  async function wait({ key, gid, signal, onWaiting }: Turn, queue: Waiter[]): Promise<Waiter> {
    const before = queue.at(-1);
    if (before !== undefined) onWaiting(before.gid);
    let begin = (): void => {};
    const turnCame = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const place: Waiter = { gid, begin };
    queue.push(place);
    queues.set(key, queue);
    if (before === undefined) return place;
    signal.addEventListener('abort', begin, { once: true });
    await turnCame;
    signal.removeEventListener('abort', begin);
    return place;
  }

  return {
    async run(turn, walk) {
      // One that was aborted before tells nobody any more.
      if (turn.signal.aborted) return undefined;
      const queue = queues.get(turn.key) ?? [];
      const place = await wait(turn, queue);
      try {
        return turn.signal.aborted ? undefined : await walk();
      } finally {
        leave(turn.key, queue, place);
      }
    },
  };
}
