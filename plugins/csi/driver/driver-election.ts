/** Which registration speaks for a driver name when several do: the newest valid one, without flapping (DR-15). */
import type { Cancel, Clock } from '../../../mount/host.ts';
import type { DriverChange, DriverInstance } from './driver.ts';

/** During a rolling update two pods of one driver are registered; the name changes hands at most once in this time. */
const FLIP_MS_MIN = 10_000;

/** One registration that was found valid. */
export interface Candidate {
  /** Who it is, across instances: compared by identity. */
  readonly owner: object;
  readonly instance: DriverInstance;
  /** Registered later is higher. */
  readonly order: number;
}

export interface DriverElection {
  /** Says who stands for `name` now, and settles who serves. */
  settle(name: string): void;
  get(name: string): DriverInstance | undefined;
  list(): readonly DriverInstance[];
  /** Is it the one that serves the name? */
  serves(name: string, owner: object): boolean;
  onChange(listener: (change: DriverChange) => void): Cancel;
  stop(): void;
}

interface Seat {
  readonly holder: Candidate;
  /** When the seat last went from one living candidate to another. */
  readonly flippedMs: number;
  readonly retry: Cancel | undefined;
}

export function createDriverElection(
  clock: Clock,
  candidates: (name: string) => readonly Candidate[],
): DriverElection {
  const seats = new Map<string, Seat>();
  const listeners = new Set<(change: DriverChange) => void>();

  function tell(change: DriverChange): void {
    for (const listener of [...listeners]) listener(change);
  }

  function settle(name: string): void {
    const seat = seats.get(name);
    seat?.retry?.();
    const standing = [...candidates(name)].sort((a, b) => b.order - a.order);
    const [newest] = standing;
    if (newest === undefined) {
      if (seats.delete(name)) tell({ kind: 'gone', driver: name });
      return;
    }
    const incumbent = standing.find(({ owner }) => owner === seat?.holder.owner);
    const flips = incumbent !== undefined && incumbent !== newest;
    const waitMs = flips && seat !== undefined ? seat.flippedMs + FLIP_MS_MIN - clock.nowMs() : 0;
    const holder = flips && waitMs > 0 ? incumbent : newest;
    seats.set(name, {
      holder,
      flippedMs: flips && holder === newest ? clock.nowMs() : (seat?.flippedMs ?? Number.NEGATIVE_INFINITY),
      retry: waitMs > 0 ? clock.timer(waitMs, () => settle(name)) : undefined,
    });
    if (seat === undefined) tell({ kind: 'registered', driver: name });
    else if (seat.holder.instance !== holder.instance) tell({ kind: 'replaced', driver: name });
  }

  return {
    settle,
    get: (name) => seats.get(name)?.holder.instance,
    list: () => [...seats.values()].map(({ holder }) => holder.instance),
    serves: (name, owner) => seats.get(name)?.holder.owner === owner,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop: () => {
      for (const { retry } of seats.values()) retry?.();
    },
  };
}
