/** Who keeps a mount busy: looked for when the failure was told and its next try planned, and added to the reason. */
import type { Failure } from '../../mount/failure.ts';
import { type AbsolutePath, type Host, parseAbsolutePath } from '../../mount/host.ts';
import type { Operation } from '../model/operation.ts';

export interface HolderSearchParts {
  readonly host: Pick<Host, 'findHolders'>;
  /** Somebody was found who holds what the operation failed at. */
  readonly onFound: (operation: Operation, failure: Failure, holders: string) => void;
}

/**
 * Guarantees: nothing waits for it; at most one search of a path at a time and `SEARCHES_MAX` in all, so that searches
 * that hang take no more helpers than these. What has no turn is not searched: the next failure asks again.
 */
export interface HolderSearch {
  /** Does nothing for a failure that names no held mount. */
  begin(operation: Operation, failure: Failure): void;
  /** What is found from now on is dropped. */
  stop(): void;
}

const SEARCHES_MAX = 2;
const HOLDERS_LENGTH_MAX = 512;

export function createHolderSearch({ host, onFound }: HolderSearchParts): HolderSearch {
  const open = new Set<AbsolutePath>();
  let stopped = false;

  async function search(path: AbsolutePath, operation: Operation, failure: Failure): Promise<void> {
    open.add(path);
    const holders = await host.findHolders(path);
    open.delete(path);
    if (stopped || !holders.ok || holders.value.length === 0) return;
    onFound(operation, failure, holders.value.join(', ').slice(0, HOLDERS_LENGTH_MAX));
  }

  return {
    begin(operation, failure) {
      const path = parseAbsolutePath(failure.heldAt ?? '');
      if (path === undefined || stopped || open.has(path) || open.size >= SEARCHES_MAX) return;
      void search(path, operation, failure);
    },
    stop() {
      stopped = true;
    },
  };
}
