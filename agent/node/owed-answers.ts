/** Who was asked, who owes an answer, and when it may be asked again: at most one question about a thing at a time. */
import type { Clock } from '../../mount/host.ts';
import { doubledMs } from '../../mount/process/back-off.ts';

export interface OwedAnswersParts {
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly periodMs: number;
  /** Somebody begins to owe an answer, or gives it at last. */
  readonly onOwed: (key: string, owed: 'begins' | 'ends') => void;
}

/** All times are of the host's clock. */
export interface Owed {
  /** The first of the questions in a row that was not answered. */
  readonly sinceMs: number;
  /** Undefined: while it is open it is not asked again. */
  readonly nextAskMs: number | undefined;
}

/** `answered`: the other side has ended it, well or not. `unasked`: it was not even asked, so it owes what it owed. */
export type Ending = 'answered' | 'unanswered' | 'unasked';

/**
 * Guarantees: while a question is open no other is asked. A driver may be at work on one that it did not answer in
 * time, so the next comes after 5 minutes, then twice as long each time, up to an hour; or with a new driver instance.
 */
export interface OwedAnswers {
  mayAsk(key: string): boolean;
  begin(key: string, lane: string): void;
  end(key: string, ending: Ending): void;
  /** Questions of a lane that are open, and how many of them are younger than a second. */
  openIn(lane: string): { readonly all: number; readonly fresh: number };
  /** Undefined: nothing is owed. */
  owed(key: string): Owed | undefined;
  /** How many answers the lane owes. */
  countOwed(lane: string): number;
  askedMs(key: string): number | undefined;
  /** Which life of the driver is here: where it is another one, nobody is at work on what the old one was asked. */
  learnLife(lane: string, life: string): void;
  /** What is unknown and owes nothing that is waited for. */
  forget(isKnown: (key: string) => boolean): void;
}

/** From when on an open question is hung and leaves its place to others. */
const FRESH_MS_MAX = 1_000;
/**
 * From when on an open question is owed, before it has ended: only what the kernel holds on to is open for so long. A
 * look waits 30 s for its turn and takes 30 s, and the driver has 10 s beside it.
 */
const OPEN_MS_MAX = 90_000;
/** Names come from anybody who registers. */
const LIVES_MAX = 1_024;
const REASK = { firstMs: 300_000, maxMs: 3_600_000 } as const;

interface Entry {
  readonly lane: string;
  readonly askedMs: number;
  isOpen: boolean;
  unanswered: number;
  sinceMs: number | undefined;
  nextAskMs: number | undefined;
}

export function createOwedAnswers({ clock, periodMs, onOwed }: OwedAnswersParts): OwedAnswers {
  const entries = new Map<string, Entry>();
  const open = new Map<string, Set<Entry>>();
  const isKnownLife = createLives();

  function owedOf(entry: Entry | undefined): Owed | undefined {
    if (entry === undefined) return undefined;
    const isLate = entry.isOpen && clock.nowMs() - entry.askedMs > OPEN_MS_MAX;
    const sinceMs = entry.sinceMs ?? (isLate ? entry.askedMs : undefined);
    return sinceMs === undefined ? undefined : { sinceMs, nextAskMs: entry.nextAskMs };
  }

  return {
    mayAsk(key) {
      const known = entries.get(key);
      if (known === undefined) return true;
      return !known.isOpen && (known.nextAskMs ?? 0) <= clock.nowMs();
    },
    begin(key, lane) {
      const known = entries.get(key);
      const { unanswered = 0, sinceMs = undefined } = known ?? {};
      const askedMs = clock.nowMs();
      const entry: Entry = { lane, askedMs, isOpen: true, unanswered, sinceMs, nextAskMs: undefined };
      entries.set(key, entry);
      open.set(lane, (open.get(lane) ?? new Set()).add(entry));
    },
    end(key, ending) {
      const entry = entries.get(key);
      if (entry === undefined) return;
      entry.isOpen = false;
      const inLane = open.get(entry.lane);
      inLane?.delete(entry);
      if (inLane?.size === 0) open.delete(entry.lane);
      const owed = settle(entry, ending, periodMs);
      if (owed !== undefined) onOwed(key, owed);
    },
    openIn(lane) {
      const nowMs = clock.nowMs();
      const inLane = [...(open.get(lane) ?? [])];
      return {
        all: inLane.length,
        fresh: inLane.filter(({ askedMs }) => nowMs - askedMs < FRESH_MS_MAX).length,
      };
    },
    owed: (key) => owedOf(entries.get(key)),
    countOwed: (lane) =>
      [...entries.values()].filter((one) => one.lane === lane && owedOf(one) !== undefined).length,
    askedMs: (key) => entries.get(key)?.askedMs,
    learnLife(lane, life) {
      if (isKnownLife(lane, life)) return;
      for (const entry of entries.values()) if (entry.lane === lane) entry.nextAskMs = undefined;
    },
    forget(isKnown) {
      const nowMs = clock.nowMs();
      for (const [key, { isOpen, nextAskMs }] of entries) {
        // A volume that comes back meets the question that its driver may still be at work on.
        if (!isOpen && !isKnown(key) && (nextAskMs ?? 0) <= nowMs) entries.delete(key);
      }
    },
  };
}

/** What begins or ends to be owed by it. */
function settle(entry: Entry, ending: Ending, periodMs: number): 'begins' | 'ends' | undefined {
  const { sinceMs, askedMs } = entry;
  switch (ending) {
    case 'answered':
      entry.unanswered = 0;
      entry.sinceMs = undefined;
      return sinceMs === undefined ? undefined : 'ends';
    case 'unanswered':
      entry.unanswered += 1;
      entry.sinceMs = sinceMs ?? askedMs;
      entry.nextAskMs = askedMs + Math.max(periodMs, doubledMs(entry.unanswered, REASK));
      return sinceMs === undefined ? 'begins' : undefined;
    case 'unasked':
      if (sinceMs !== undefined) entry.nextAskMs = askedMs + periodMs;
      return undefined;
  }
}

/** Learns the life of a lane, and answers whether it was known. */
function createLives(): (lane: string, life: string) => boolean {
  // The one that was learnt last is at the end.
  const lives = new Map<string, string>();
  return (lane, life) => {
    const isKnown = lives.get(lane) === life;
    lives.delete(lane);
    lives.set(lane, life);
    const [oldest] = lives.keys();
    if (lives.size > LIVES_MAX && oldest !== undefined) lives.delete(oldest);
    return isKnown;
  };
}
