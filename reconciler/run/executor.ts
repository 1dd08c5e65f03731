/** Runs operations: nested keys, back-off, one lane (p-queue) per plugin or driver. */
import PQueue from 'p-queue';
import { assert, FAILURE_RETRY, type Failure } from '../../mount/failure.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import type { CallReport, Step } from '../../plugins/step.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { Outcome } from '../model/actual-state.ts';
import { type BackOffLimits, backOffMs } from '../model/back-off.ts';
import { climbs, conflicts, type Operation, publicationOf } from '../model/operation.ts';
import type { ToldStep } from '../model/told-step.ts';

/** Expected refusals are answers, not errors. */
export type Submission =
  | { readonly kind: 'started' }
  | { readonly kind: 'busy'; readonly with: Operation; readonly setback: Setback | undefined }
  | ({ readonly kind: 'backing-off' } & Setback);

/** The last failure of a key and when it will be tried again (undefined: only when its cause changes). */
export interface Setback {
  readonly failure: Failure;
  readonly attempts: number;
  readonly sinceMs: number;
  readonly retryAtMs: number | undefined;
}

export interface InFlight {
  readonly operation: Operation;
  readonly lane: string;
  readonly phase: 'queued' | 'running';
  /** When it was planned. */
  readonly sinceMs: number;
  /** When its turn came; undefined: not yet. */
  readonly begunMs: number | undefined;
  readonly step: ToldStep;
  /** What a long operation is doing now, for people; undefined when it has not said. */
  readonly progress: string | undefined;
  /** Of the tries before this one; undefined on the first. */
  readonly setback: Setback | undefined;
}

/** `skipped`: when its turn came it was no longer wanted, and nothing was done. */
export type Finished = {
  readonly operation: Operation;
  readonly outcome: Outcome | { readonly kind: 'skipped' };
};

export interface ExecutorParts {
  readonly clock: Clock & { random(): number };
  readonly backOff: BackOffLimits;
  readonly laneOf: (operation: Operation) => string;
  /** How many operations of a lane run at once. */
  readonly laneWidth: (lane: string) => number;
  /** Asked when a slot frees: the world moved while the operation queued. */
  readonly isStillWanted: (operation: Operation) => boolean;
  /** Never rejects; settles only when the effect has ended. */
  readonly perform: (operation: Operation, report: CallReport) => Promise<Outcome>;
  readonly onFinished: (finished: Finished) => void;
  /** It does something else now, or has given a sign of life. */
  readonly onStep: () => void;
  /** A back-off has run out: plan the volume again. */
  readonly onRetry: (volume: VolumeId) => void;
}

export interface Executor {
  submit(operation: Operation): Submission;
  inFlight(): readonly InFlight[];
  inFlightOf(volume: VolumeId): readonly InFlight[];
  /** The cause of its failures has changed: forget the back-off of the volume, or of its way up only. */
  forgive(volume: VolumeId, extent?: 'all' | 'climbs'): void;
  /**
   * Who stands in the way, found after the failure was told. False when it is not the last one of its key any more, or
   * the same was said before.
   */
  blame(operation: Operation, failure: Failure, blocker: string): boolean;
  /**
   * Lends the turns of operations that have given no sign for a minute and ask no driver anything: what they look at
   * hangs, and that is no work of the driver. They keep their keys.
   */
  lendTurns(): void;
  /** Starts nothing any more; what runs goes on. */
  close(): void;
}

interface Entry {
  readonly operation: Operation;
  readonly lane: string;
  readonly sinceMs: number;
  phase: InFlight['phase'];
  begunMs: number | undefined;
  step: ToldStep;
  /** Forgiven while it ran: what a failure proves may be about another wish or driver already. */
  forgiven: boolean;
  progress: string | undefined;
  setback: Setback | undefined;
}

/**
 * Guarantees: never two conflicting operations at once; no more of a lane than its width, but for those whose turns are
 * lent (`lendTurns`); `onFinished` once per started operation, in the turn its key
 * is freed. Assumes: `perform` settles only when the effect has ended.
 * Because: a freed key with a live mount(8) behind it is how data is lost; so p-queue gets a width and nothing else, no
 * timeout and no signal, which would free the slot while the task still runs.
 */
export function createExecutor(parts: ExecutorParts): Executor {
  const lanes = new Map<string, PQueue>();
  const running = new Map<VolumeId, Set<Entry>>();
  const setbacks = new Map<VolumeId, Map<string, { setback: Setback; cancel: Cancel | undefined }>>();
  let closed = false;

  function laneQueue(lane: string): PQueue {
    const known = lanes.get(lane);
    if (known !== undefined) return known;
    const queue = new PQueue({ concurrency: parts.laneWidth(lane) });
    lanes.set(lane, queue);
    return queue;
  }

  function release(entry: Entry): void {
    const entries = running.get(entry.operation.volume);
    assert(entries?.delete(entry) === true, 'an operation is released once');
    if (entries.size === 0) running.delete(entry.operation.volume);
  }

  function isStuck({ phase, step }: Entry): boolean {
    const isOurs = step.kind === 'working' || step.kind === 'verifying';
    return phase === 'running' && isOurs && parts.clock.nowMs() - step.signMs >= STUCK_MS;
  }

  function lend(lane: string): void {
    const entries = [...running.values()].flatMap((ofVolume) => [...ofVolume]);
    const stuck = entries.filter((entry) => entry.lane === lane && isStuck(entry)).length;
    laneQueue(lane).concurrency = parts.laneWidth(lane) + stuck;
  }

  async function execute(entry: Entry): Promise<void> {
    const { operation } = entry;
    if (closed || !parts.isStillWanted(operation)) {
      release(entry);
      parts.onFinished({ operation, outcome: { kind: 'skipped' } });
      return;
    }
    entry.phase = 'running';
    entry.begunMs = parts.clock.nowMs();
    entry.step = told({ kind: 'working' });
    const outcome = await parts.perform(operation, {
      step: (step) => enter(entry, step),
      progress: (text) => {
        // The same words again are no sign of life: a walk that hangs is told of every second.
        if (entry.progress !== text) entry.step = { ...entry.step, signMs: parts.clock.nowMs() };
        entry.progress = text;
        parts.onStep();
      },
    });
    release(entry);
    if (laneQueue(entry.lane).concurrency !== parts.laneWidth(entry.lane)) lend(entry.lane);
    noteOutcome(entry, outcome);
    parts.onFinished({ operation, outcome });
  }

  function told(step: Step): ToldStep {
    const nowMs = parts.clock.nowMs();
    return { ...step, sinceMs: nowMs, signMs: nowMs };
  }

  /** Said again it goes on; of who waits it may be another that comes first by now. */
  function enter(entry: Entry, step: Step): void {
    const { sinceMs, kind } = entry.step;
    entry.step = kind === step.kind && kind !== 'called' ? { ...told(step), sinceMs } : told(step);
    if (kind !== step.kind) entry.progress = undefined;
    parts.onStep();
  }

  function noteOutcome({ operation, forgiven }: Entry, outcome: Outcome): void {
    const key = setbackKey(operation);
    const known = setbacks.get(operation.volume)?.get(key);
    known?.cancel?.();
    if (outcome.kind === 'done') {
      forget(operation.volume, key);
      return;
    }
    if (outcome.failure.code === 'no-longer-wanted') return;
    const attempts = (known?.setback.attempts ?? 0) + 1;
    const waitMs =
      FAILURE_RETRY[outcome.failure.code] === 'on-change' && !forgiven
        ? undefined
        : backOffMs(attempts, parts.backOff, parts.clock.random());
    const nowMs = parts.clock.nowMs();
    const setback: Setback = {
      failure: outcome.failure,
      attempts,
      sinceMs: known?.setback.failure.code === outcome.failure.code ? known.setback.sinceMs : nowMs,
      retryAtMs: waitMs === undefined ? undefined : nowMs + waitMs,
    };
    // The timer decides, not the clock: Node.js fires timers up to a tenth of a millisecond early.
    const due = (): void => {
      const blamed = setbacks.get(operation.volume)?.get(key)?.setback ?? setback;
      setbacks.get(operation.volume)?.set(key, { setback: { ...blamed, retryAtMs: 0 }, cancel: undefined });
      parts.onRetry(operation.volume);
    };
    const cancel = waitMs === undefined ? undefined : parts.clock.timer(waitMs, due);
    const ofVolume = setbacks.get(operation.volume) ?? new Map();
    setbacks.set(operation.volume, ofVolume.set(key, { setback, cancel }));
  }

  function forget(volume: VolumeId, key: string): void {
    const ofVolume = setbacks.get(volume);
    ofVolume?.delete(key);
    if (ofVolume?.size === 0) setbacks.delete(volume);
  }

  return {
    submit(operation) {
      const entries = running.get(operation.volume);
      const setback = setbacks.get(operation.volume)?.get(setbackKey(operation))?.setback;
      for (const other of entries ?? []) {
        if (conflicts(other.operation, operation)) return { kind: 'busy', with: other.operation, setback };
      }
      if (
        setback !== undefined &&
        (setback.retryAtMs === undefined || setback.retryAtMs > parts.clock.nowMs())
      ) {
        return { kind: 'backing-off', ...setback };
      }
      const lane = parts.laneOf(operation);
      const entry: Entry = {
        operation,
        lane,
        sinceMs: parts.clock.nowMs(),
        phase: 'queued',
        begunMs: undefined,
        step: told({ kind: 'queued', behind: `${parts.laneWidth(lane)} other operations of ${lane}` }),
        forgiven: false,
        progress: undefined,
        setback,
      };
      running.set(operation.volume, (entries ?? new Set()).add(entry));
      // A rejection would be a broken invariant; unhandledRejection is left fatal on purpose.
      void laneQueue(lane).add(() => execute(entry));
      return { kind: 'started' };
    },
    inFlight: () => [...running.values()].flatMap((entries) => [...entries]),
    inFlightOf: (volume) => [...(running.get(volume) ?? [])],
    forgive(volume, extent = 'all') {
      for (const entry of running.get(volume) ?? [])
        if (extent === 'all' || climbs(entry.operation.kind)) entry.forgiven = true;
      for (const [key, { cancel }] of setbacks.get(volume) ?? []) {
        if (extent === 'climbs' && !key.startsWith(UP)) continue;
        cancel?.();
        forget(volume, key);
      }
    },
    blame(operation, failure, blocker) {
      const key = setbackKey(operation);
      const known = setbacks.get(operation.volume)?.get(key);
      if (known === undefined || known.setback.failure !== failure || failure.blocker === blocker)
        return false;
      const setback: Setback = { ...known.setback, failure: { ...failure, blocker } };
      for (const entry of running.get(operation.volume) ?? [])
        if (entry.setback?.failure === failure)
          entry.setback = { ...entry.setback, failure: setback.failure };
      setbacks.get(operation.volume)?.set(key, { ...known, setback });
      return true;
    },
    lendTurns: () => {
      for (const lane of lanes.keys()) lend(lane);
    },
    close() {
      closed = true;
      for (const ofVolume of setbacks.values()) for (const { cancel } of ofVolume.values()) cancel?.();
      setbacks.clear();
    },
  };
}

/** Without a sign from a look or a walk of ours; a path call has its end in half of it, if it has one. */
const STUCK_MS = 60_000;
const UP = 'up/';
const DOWN = 'down/';

/** Per (volume, place, direction): a failing pod delays no other, and a failed climb never delays the way down. */
function setbackKey(operation: Operation): string {
  // A failing expansion delays no rung.
  const place = operation.kind === 'expand' ? operation.kind : (publicationOf(operation) ?? '');
  return `${climbs(operation.kind) ? UP : DOWN}${place}`;
}
