/** What failed last of each key of operations, and when it is tried again. */
import { FAILURE_RETRY, type Failure } from '../../mount/failure.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import { type BackOffLimits, backOffMs } from '../../mount/process/back-off.ts';
import type { EndedSetback, OperationTraits } from './operation-traits.ts';

/** The last failure of a key and when it will be tried again (undefined: only when its cause changes). */
export interface Setback {
  readonly failure: Failure;
  readonly attempts: number;
  readonly sinceMs: number;
  readonly retryAtMs: number | undefined;
}

export interface SetbacksParts<Operation, Subject extends string> {
  readonly traits: Pick<OperationTraits<Operation, Subject>, 'subject' | 'setbackKey' | 'climbs' | 'ends'>;
  readonly clock: Clock & { random(): number };
  readonly backOff: BackOffLimits;
  /** A back-off has run out. */
  readonly onRetry: (subject: Subject) => void;
}

/** `changed`: those that climb, and of the others those that wait for a change, not for a time. */
export type ResetExtent = 'all' | 'climbs' | 'changed';

export interface Setbacks<Operation, Subject extends string> {
  of(operation: Operation): Setback | undefined;
  /** It failed; `wasReset`: the cause may have changed while it ran. */
  failed(operation: Operation, failure: Failure, wasReset: boolean): void;
  succeeded(operation: Operation): void;
  reset(subject: Subject, extent: ResetExtent): void;
  /** The failure as the last one of its key, with who stands in the way; undefined when that is no news of it. */
  blame(operation: Operation, failure: Failure, blocker: string): Failure | undefined;
  /** Nothing is tried again. */
  close(): void;
}

interface Known {
  readonly setback: Setback;
  readonly climbs: boolean;
  readonly cancel: Cancel | undefined;
}

export function createSetbacks<Operation, Subject extends string>({
  traits,
  clock,
  backOff,
  onRetry,
}: SetbacksParts<Operation, Subject>): Setbacks<Operation, Subject> {
  const setbacks = new Map<Subject, Map<string, Known>>();

  function knownOf(operation: Operation): Known | undefined {
    return setbacks.get(traits.subject(operation))?.get(traits.setbackKey(operation));
  }

  function forget(subject: Subject, key: string): void {
    const ofSubject = setbacks.get(subject);
    ofSubject?.delete(key);
    if (ofSubject?.size === 0) setbacks.delete(subject);
  }

  function end(subject: Subject, { key, extent }: EndedSetback): void {
    const known = setbacks.get(subject)?.get(key);
    if (known === undefined || (extent === 'timed' && known.setback.retryAtMs === undefined)) return;
    known.cancel?.();
    forget(subject, key);
  }

  return {
    of: (operation) => knownOf(operation)?.setback,
    failed(operation, failure, wasReset) {
      const subject = traits.subject(operation);
      const key = traits.setbackKey(operation);
      const known = knownOf(operation);
      known?.cancel?.();
      if (failure.code === 'no-longer-wanted') return;
      const attempts = (known?.setback.attempts ?? 0) + 1;
      const isOnChange = FAILURE_RETRY[failure.code] === 'on-change' && !wasReset;
      const waitMs = isOnChange ? undefined : backOffMs(attempts, backOff, clock.random());
      const nowMs = clock.nowMs();
      const setback: Setback = {
        failure,
        attempts,
        sinceMs: known?.setback.failure.code === failure.code ? known.setback.sinceMs : nowMs,
        retryAtMs: waitMs === undefined ? undefined : nowMs + waitMs,
      };
      // The timer decides, not the clock: Node.js fires timers up to a tenth of a millisecond early.
      const due = (): void => {
        const blamed = setbacks.get(subject)?.get(key)?.setback ?? setback;
        setbacks.get(subject)?.set(key, { ...one, setback: { ...blamed, retryAtMs: 0 }, cancel: undefined });
        onRetry(subject);
      };
      const cancel = waitMs === undefined ? undefined : clock.timer(waitMs, due);
      const one: Known = { setback, climbs: traits.climbs(operation), cancel };
      setbacks.set(subject, (setbacks.get(subject) ?? new Map()).set(key, one));
    },
    succeeded(operation) {
      const subject = traits.subject(operation);
      end(subject, { key: traits.setbackKey(operation), extent: 'all' });
      for (const ended of traits.ends(operation)) end(subject, ended);
    },
    reset(subject, extent) {
      for (const [key, { climbs, setback }] of setbacks.get(subject) ?? []) {
        const isKept = extent === 'climbs' || (extent === 'changed' && setback.retryAtMs !== undefined);
        if (!isKept || climbs) end(subject, { key, extent: 'all' });
      }
    },
    blame(operation, failure, blocker) {
      const known = knownOf(operation);
      if (known === undefined || known.setback.failure !== failure || failure.blocker === blocker) return;
      const blamed: Failure = { ...failure, blocker };
      const setback: Setback = { ...known.setback, failure: blamed };
      setbacks.get(traits.subject(operation))?.set(traits.setbackKey(operation), { ...known, setback });
      return blamed;
    },
    close() {
      for (const ofSubject of setbacks.values()) for (const { cancel } of ofSubject.values()) cancel?.();
      setbacks.clear();
    },
  };
}
