/** Looks out for the effects of calls that were given up: at start, at each resync, and when their time is over. */
import type { Belief } from '../model/belief.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualVolume, VolumeOutcome } from '../model/actual-state.ts';
import type { Log } from '../../mount/process/log.ts';
import type { Operation } from '../model/operation.ts';
import {
  isUntimed,
  nextDueMs,
  titleOf,
  tombstonesOf,
  withArrivedRaised,
  withCallEnded,
  withDueRaised,
  withNobodyListening,
} from '../model/tombstone.ts';

/**
 * The longest CSI call, and ten minutes: mount.nfs tries for two minutes by itself, an iSCSI session is given up after
 * two, and a cloud's disk is waited for six.
 */
export const LATE_EFFECT_MS = 720_000;

export interface LookoutParts {
  readonly host: Clock;
  readonly layout: Layout;
  readonly log: Log;
  readonly belief: Belief;
  readonly isBusy: (volume: VolumeId) => boolean;
  readonly touch: (volume: VolumeId) => void;
  /** How long after it was given up a call may take effect. */
  readonly windowMs: number;
}

export interface Lookout {
  /** Whose time has begun at this start: once that is recorded, the next one does not begin it anew. */
  readonly begun: readonly VolumeId[];
  /** The call of the operation has ended, or was given up: what is to be remembered of it. `begun`: as it was made. */
  ended(begun: ActualVolume, operation: Operation, outcome: VolumeOutcome): ActualVolume;
  /** Before a volume is planned: what is due is given back. */
  visit(volume: VolumeId): void;
  /** What the kernel shows, of volumes of which nothing has changed since the table was asked for. */
  look(table: MountTable, changed: ReadonlySet<VolumeId>): void;
  stop(): void;
}

export function createLookout(parts: LookoutParts): Lookout {
  const { host, belief, log, layout, windowMs } = parts;
  const actual = belief.volumes;
  const timers = new Map<VolumeId, Cancel>();
  const untilMs = (): number => Math.ceil(host.nowMs() + windowMs);
  const begun = [...actual.keys()].filter((id) => actual.get(id)?.tombstones?.some(isUntimed));
  for (const volume of actual.values()) belief.expect(withNobodyListening(volume, untilMs()));

  function schedule(id: VolumeId): void {
    timers.get(id)?.();
    timers.delete(id);
    const volume = actual.get(id);
    const dueMs = volume === undefined ? undefined : nextDueMs(volume);
    // Who is busy is visited when that has ended.
    if (dueMs === undefined || parts.isBusy(id)) return;
    const waitMs = Math.max(0, dueMs - host.nowMs());
    const fire = (): void => {
      timers.delete(id);
      parts.touch(id);
    };
    timers.set(id, host.timer(waitMs, fire));
  }

  return {
    begun,
    ended(begun, operation, outcome) {
      const volume = actual.get(operation.volume) ?? begun;
      const next = withCallEnded(volume, begun, operation, outcome, untilMs());
      const isDoubtful = outcome.kind === 'failed' && outcome.failure.unanswered === true;
      if (isDoubtful && next !== volume) {
        const [tombstone] = tombstonesOf(next).slice(-1);
        const what = tombstone === undefined ? operation.kind : titleOf(tombstone);
        log.debug('call may still take effect', { volume: operation.volume, what, forMs: windowMs });
      }
      return next;
    },
    visit(id) {
      const volume = actual.get(id);
      if (volume?.tombstones !== undefined && !parts.isBusy(id)) {
        const raised = withDueRaised(volume, host.nowMs());
        if (raised !== volume) belief.expect(raised);
      }
      schedule(id);
    },
    look(table, changed) {
      for (const [id, volume] of actual) {
        if (volume.tombstones === undefined || changed.has(id) || parts.isBusy(id)) continue;
        const raised = withArrivedRaised(volume, table, layout);
        if (raised === volume) continue;
        log.warn('late effect found', { volume: id });
        belief.observe(raised);
        parts.touch(id);
      }
    },
    stop() {
      for (const cancel of timers.values()) cancel();
      timers.clear();
    },
  };
}
