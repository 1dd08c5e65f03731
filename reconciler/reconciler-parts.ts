/** What a reconciler is made of. */
import type { Ground } from '../mount/ground.ts';
import type { Host } from '../mount/host.ts';
import type { Layout } from '../plugins/layout/layout.ts';
import type { PluginRegistry, VolumeSecrets } from '../plugins/plugin.ts';
import type { VolumeId, VolumeSpec } from '../plugins/volume.ts';
import type { ActualState } from './model/actual-state.ts';
import { begin, learn } from './model/belief-change.ts';
import type { BackOffLimits } from '../mount/process/back-off.ts';
import { tellInFlight } from './run/in-flight-text.ts';
import type { Log } from '../mount/process/log.ts';
import { planVolume } from './model/plan.ts';
import type { RecordStore } from './recovery/record-store.ts';
import { mayBegin } from './recovery/record-duty.ts';
import { verifyMounts } from './recovery/verify.ts';

/** The pure parts, replaceable so that a test can plant a bug and see it caught. */
export interface Policy {
  readonly planVolume: typeof planVolume;
  readonly begin: typeof begin;
  readonly learn: typeof learn;
  readonly tellInFlight: typeof tellInFlight;
  readonly mayBegin: typeof mayBegin;
  readonly verifyMounts: typeof verifyMounts;
}

export const POLICY: Policy = { planVolume, begin, learn, tellInFlight, mayBegin, verifyMounts };

export interface ReconcilerParts {
  readonly host: Host;
  readonly layout: Layout;
  /** Left out, it is one over which nobody mounts anything. */
  readonly ground?: Pick<Ground, 'strangerOver'>;
  readonly plugins: PluginRegistry;
  readonly records: RecordStore;
  readonly recovered: ActualState;
  readonly log: Log;
  readonly backOff: BackOffLimits;
  readonly laneWidth: (lane: string) => number;
  /** The safety net: how often everything is planned again and belief is compared with the mount table. */
  readonly resyncMs: number;
  /** What one effect of our own may take; by default what the host gives a path call. */
  readonly effectDeadlineMs?: number;
  /** How long after it was given up a call may still take effect; by default `LATE_EFFECT_MS`. */
  readonly lateEffectMs?: number;
  /** The secrets of a volume that nobody wants any more; by default none. */
  readonly unwantedSecrets?: (spec: VolumeSpec) => VolumeSecrets;
  readonly policy?: Partial<Policy>;
  /** All is planned and nothing is begun: what would be done is asked for with `planOf`. */
  readonly plansOnly?: boolean;
}

/** Why waiting operations may be worth trying now: their back-off is forgotten. */
export type WakeCause =
  | { readonly kind: 'driver'; readonly driver: string }
  /** It was given or withdrawn by somebody else. */
  | { readonly kind: 'attachment'; readonly volume: VolumeId }
  | { readonly kind: 'operator' };
