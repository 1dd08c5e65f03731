import type { Cancel } from '../mount/host.ts';
import type { ActualState } from './actual-state.ts';
import type { DesiredState } from './desired-state.ts';
import type { Obstacle } from './obstacle.ts';
import type { Operation } from './operation.ts';

export interface RunningOperation {
  readonly operation: Operation;
  readonly lane: string;
  readonly phase: 'queued' | 'running';
  readonly sinceMs: number;
}

/** Why waiting operations may be worth trying now: their back-off is forgotten. */
export type WakeCause =
  | { readonly kind: 'driver-registered'; readonly driver: string }
  | { readonly kind: 'operator' };

export interface Reconciler {
  /** Replaces the wish; volumes that changed lose their back-off. */
  setDesired(desired: DesiredState): void;
  wake(cause: WakeCause): void;
  actual(): ActualState;
  desired(): DesiredState;
  running(): readonly RunningOperation[];
  obstacles(): readonly Obstacle[];
  /** Called after every change of actual state, operations or obstacles. */
  onChange(listener: () => void): Cancel;
  /** No operation is queued or running. */
  idle(): boolean;
  /** Starts nothing new; settles when what runs has ended or after `waitMs`. Unmounts nothing. */
  stop(waitMs: number): Promise<void>;
}
