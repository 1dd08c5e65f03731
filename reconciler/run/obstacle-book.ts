/** Keeps the one current reason of every wait, and since when it has been the reason. */
import { type Failure, FAILURE_RETRY } from '../../mount/failure.ts';
import type { Clock } from '../../mount/host.ts';
import type { PublicationKey, VolumeId } from '../../plugins/volume.ts';
import type { VolumeInFlight, VolumeSubmission } from './volume-operation.ts';
import { triesBefore } from './in-flight-text.ts';
import { type Obstacle, type Wait, waitMessage } from '../model/obstacle.ts';
import { type Operation, publicationOf } from '../model/operation.ts';

/** What the last planning of a volume ran into. */
export type Blockade =
  | { readonly from: 'plan'; readonly wait: Wait }
  | {
      readonly from: 'executor';
      readonly operation: Operation;
      readonly submission: Exclude<VolumeSubmission, { kind: 'started' }>;
    };

export interface ObstacleBook {
  /** All blockades of the volume; those that stay the same keep their `sinceMs`. */
  replace(volume: VolumeId, blockades: readonly Blockade[]): void;
  /** What runs or queues now is among them. */
  list(inFlight: readonly VolumeInFlight[]): readonly Obstacle[];
  /**
   * Is this failure of this operation another one than the last time? A repeated failure is not logged again. Forgotten
   * when a retry ended well, or the operation is planned no more.
   */
  isNews(operation: Operation, failure: Failure): boolean;
  /** Were others found the last time, or none, since the failure of the operation was news? */
  isNewHolder(operation: Operation, holder: string): boolean;
  /** Nothing of the volume is here or wanted, and nothing of it is in the way: what it failed of is news again. */
  forget(volume: VolumeId): void;
}

/** The last failure of an operation, and how many passes in a row have found nothing in its way since. */
interface LastCode {
  readonly text: string;
  freePasses: number;
  holder: string | undefined;
}

/** One is a retry that has just started. While it runs it is in its own way, so a second one is told of its end. */
const FREE_PASSES_MAX = 1;

/** Nothing of it is under way, so it is in no step. */
const NOT_BEGUN = { step: undefined, overdue: false } as const;

type Entry = Omit<Obstacle, 'sinceMs' | 'volume'> & { sinceMs: number };

/** `tell`: what is said of an operation that is planned. */
export function createObstacleBook(
  clock: Pick<Clock, 'nowMs'>,
  tell: (inFlight: VolumeInFlight) => Obstacle,
): ObstacleBook {
  const volumes = new Map<VolumeId, readonly Entry[]>();
  const lastCodes = new Map<VolumeId, Map<string, LastCode>>();

  function forgetEnded(volume: VolumeId, blockades: readonly Blockade[]): void {
    const codes = lastCodes.get(volume);
    if (codes === undefined) return;
    const hindered = new Map(blockades.map((blockade) => [keyOf(blockade), blockade]));
    for (const [key, last] of codes) {
      const blockade = hindered.get(key);
      if (blockade === undefined) last.freePasses += 1;
      else if (!isBusy(blockade)) last.freePasses = 0;
      if (last.freePasses > FREE_PASSES_MAX) codes.delete(key);
    }
    if (codes.size === 0) lastCodes.delete(volume);
  }

  return {
    replace(volume, blockades) {
      const before = volumes.get(volume) ?? [];
      const described = blockades.flatMap((blockade) => describe(blockade, clock.nowMs()));
      const entries = onePerPlace(described);
      for (const entry of entries) {
        const same = before.find((other) => isSame(other, entry));
        if (same !== undefined) entry.sinceMs = Math.min(same.sinceMs, entry.sinceMs);
      }
      if (entries.length > 0) volumes.set(volume, entries);
      else volumes.delete(volume);
      forgetEnded(volume, blockades);
    },
    list(inFlight) {
      const waiting = [...volumes].flatMap(([volume, entries]) =>
        entries.map((entry) => ({ volume, ...entry })),
      );
      const busy = inFlight.map(tell);
      const taken = new Set(busy.map((one) => `${one.volume} ${one.publication ?? ''}`));
      return [...busy, ...waiting.filter((one) => !taken.has(`${one.volume} ${one.publication ?? ''}`))];
    },
    isNews(operation, failure) {
      const codes = lastCodes.get(operation.volume) ?? new Map<string, LastCode>();
      lastCodes.set(operation.volume, codes);
      const key = keyOfPlace(operation.kind, publicationOf(operation));
      const text = `${failure.code} ${failure.effect}`;
      const known = codes.get(key);
      const news = known?.text !== text;
      codes.set(key, { text, freePasses: 0, holder: news ? undefined : known?.holder });
      return news;
    },
    isNewHolder(operation, holder) {
      const last = lastCodes.get(operation.volume)?.get(keyOfPlace(operation.kind, publicationOf(operation)));
      if (last === undefined || last.holder === holder) return false;
      last.holder = holder;
      return true;
    },
    forget: (volume) => void lastCodes.delete(volume),
  };
}

function keyOf(blockade: Blockade): string {
  return blockade.from === 'plan'
    ? keyOfPlace(blockade.wait.operation, blockade.wait.publication)
    : keyOfPlace(blockade.operation.kind, publicationOf(blockade.operation));
}

function keyOfPlace(kind: Operation['kind'] | undefined, publication: PublicationKey | undefined): string {
  return `${kind ?? ''} ${publication ?? ''}`;
}

/** Nothing new is known of an operation that is busy: it runs, or waits for another. */
function isBusy(blockade: Blockade): boolean {
  return blockade.from === 'executor' && blockade.submission.kind === 'busy';
}

/**
 * One reason for each place (INV-34): that of what comes first. In quarantine, what keeps it from coming down is the
 * reason why it is not set up.
 */
function onePerPlace(all: readonly Entry[]): readonly Entry[] {
  const told = new Map<PublicationKey | undefined, Entry>();
  for (const entry of all) {
    const first = told.get(entry.publication);
    const isNearer = first?.kind === 'quarantined' && entry.kind !== 'quarantined';
    if (first === undefined || isNearer) told.set(entry.publication, entry);
  }
  return all.filter((entry) => told.get(entry.publication) === entry);
}

function isSame(a: Entry, b: Entry): boolean {
  return (
    a.kind === b.kind && a.code === b.code && a.publication === b.publication && a.operation === b.operation
  );
}

function describe(blockade: Blockade, nowMs: number): Entry[] {
  if (blockade.from === 'plan') return [describeWait(blockade.wait, nowMs)];
  const { operation, submission } = blockade;
  const common = { publication: publicationOf(operation), operation: operation.kind } as const;
  if (submission.kind === 'busy') {
    // Busy with itself is "running", which the operations in flight tell.
    if (submission.with.kind === operation.kind && publicationOf(submission.with) === common.publication)
      return [];
    const message = `waits for ${submission.with.kind} of the same volume to end`;
    const blocker = submission.with.kind;
    return [
      {
        ...common,
        kind: 'waiting-turn',
        code: undefined,
        message,
        blocker,
        ...triesBefore(submission.setback),
        sinceMs: nowMs,
        ...NOT_BEGUN,
      },
    ];
  }
  const { failure, attempts, sinceMs, retryAtMs } = submission;
  return [
    {
      ...common,
      kind: FAILURE_RETRY[failure.code] === 'later' ? 'waiting-retry' : 'waiting-change',
      code: failure.code,
      message: failure.message,
      blocker: failure.blocker,
      sinceMs,
      nextRetryMs: retryAtMs,
      attempts,
      lastFailure: undefined,
      ...NOT_BEGUN,
    },
  ];
}

function describeWait(wait: Wait, nowMs: number): Entry {
  return {
    kind: wait.kind,
    publication: wait.publication,
    operation: wait.operation,
    code: wait.kind === 'waiting-driver' ? 'driver-not-registered' : wait.failure?.code,
    message: waitMessage(wait, 'this pod'),
    blocker: wait.failure?.blocker,
    sinceMs: nowMs,
    ...triesBefore(undefined),
    ...NOT_BEGUN,
  };
}
