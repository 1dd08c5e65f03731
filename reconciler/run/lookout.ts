/** Looks out for the effects of calls that were given up: at start, at each resync, and when their time is over. */
import type { Belief } from '../model/belief.ts';
import type { Cancel, Clock } from '../../mount/host.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualVolume, VolumeOutcome } from '../model/actual-state.ts';
import type { RecordStore } from '../recovery/record-store.ts';
import type { Log } from '../../mount/process/log.ts';
import type { Operation } from '../model/operation.ts';
import {
  nextDueWallMs,
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

/** More than a clock that is only slewed is off between two looks. */
const CLOCK_SET_MS = 1_000;

export interface LookoutParts {
  readonly host: Clock;
  readonly layout: Layout;
  readonly log: Log;
  readonly belief: Belief;
  readonly records: Pick<RecordStore, 'save'>;
  readonly isBusy: (volume: VolumeId) => boolean;
  readonly touch: (volume: VolumeId) => void;
  /** How long after it was given up a call may take effect. */
  readonly windowMs: number;
}

export interface Lookout {
  /** The call of the operation has ended, or was given up: what is to be remembered of it. */
  ended(volume: ActualVolume, operation: Operation, outcome: VolumeOutcome): ActualVolume;
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
  const { wallMs, follow } = createWallTime(host);
  const followClock = (): void => moveTimes(parts, follow());
  for (const volume of actual.values()) belief.expect(withNobodyListening(volume, wallMs() + windowMs));

  function schedule(id: VolumeId): void {
    timers.get(id)?.();
    timers.delete(id);
    const volume = actual.get(id);
    const dueMs = volume === undefined ? undefined : nextDueWallMs(volume);
    // Who is busy is visited when that has ended.
    if (dueMs === undefined || parts.isBusy(id)) return;
    const waitMs = Math.max(0, dueMs - wallMs());
    const fire = (): void => {
      timers.delete(id);
      parts.touch(id);
    };
    timers.set(id, host.timer(waitMs, fire));
  }

  return {
    ended(before, operation, outcome) {
      followClock();
      const volume = actual.get(operation.volume) ?? before;
      const next = withCallEnded(volume, operation, outcome, wallMs() + windowMs);
      const isDoubtful = outcome.kind === 'failed' && outcome.failure.unanswered === true;
      if (isDoubtful && next !== volume) {
        const [tombstone] = tombstonesOf(next).slice(-1);
        const what = tombstone === undefined ? operation.kind : titleOf(tombstone);
        log.debug('call may still take effect', { volume: operation.volume, what, forMs: windowMs });
      }
      return next;
    },
    visit(id) {
      followClock();
      const volume = actual.get(id);
      if (volume?.tombstones !== undefined && !parts.isBusy(id)) {
        const raised = withDueRaised(volume, wallMs());
        if (raised !== volume) belief.expect(raised);
      }
      schedule(id);
    },
    look(table, changed) {
      followClock();
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

interface WallTime {
  /** It goes on as it went, whatever the clock on the wall shows: one that is set makes nothing due (INV-29). */
  wallMs(): number;
  /** Goes by what the clock on the wall shows now, and says by how much that was set. */
  follow(): number;
}

function createWallTime(host: Clock): WallTime {
  let aheadMs = host.wallMs() - host.nowMs();
  return {
    wallMs: () => host.nowMs() + aheadMs,
    follow() {
      const byMs = host.wallMs() - host.nowMs() - aheadMs;
      if (Math.abs(byMs) < CLOCK_SET_MS) return 0;
      aheadMs += byMs;
      return byMs;
    },
  };
}

/** Records have wall time, and the next life reads it by the clock of then: what is waited for is moved with that. */
function moveTimes({ belief, records, log }: LookoutParts, byMs: number): void {
  if (byMs === 0) return;
  for (const volume of belief.volumes.values()) {
    if (volume.tombstones === undefined) continue;
    const tombstones = volume.tombstones.map((one) =>
      one.untilWallMs === undefined ? one : { ...one, untilWallMs: one.untilWallMs + byMs },
    );
    const moved = { ...volume, tombstones };
    belief.expect(moved);
    void records.save(moved).then((saved) => {
      if (!saved.ok) log.warn('record not updated', { volume: volume.spec.id, code: saved.failure.code });
    });
  }
}
