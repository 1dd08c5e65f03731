/** The port of whoever attaches for this node and wants to know what stands here. */
import type { Failure } from '../../mount/failure.ts';
import type { Cancel } from '../../mount/host.ts';
import type { DriverRegistry } from '../../plugins/csi/driver/driver.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import type { StandingWords } from '../resolve/standing-word.ts';

/** `places`: all that can be read was read, after several looks at most. `all`: that was every directory and record. */
export type DiskReading = 'places' | 'all';

/** What a cluster is told of. */
export type AnnouncingDrivers = Pick<DriverRegistry, 'list' | 'onChange' | 'askVolumesMax'>;

export interface StandingWatch extends StandingWords {
  /** What stands was rebuilt from records and mount table; both are asked again and again from now on. */
  begin(actual: () => ActualState, drivers: AnnouncingDrivers): void;
  /** Something of it may be another. */
  look(): void;
  /** What was found on the disk is in what stands; a failure: what is yet to be read, and why it is not. */
  diskRead(read: DiskReading | Failure): void;
  /** Called when a word may be another. */
  onWord(listener: () => void): Cancel;
}
