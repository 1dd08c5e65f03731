/** The port of whoever attaches for this node and wants to know what stands here. */
import type { Cancel } from '../../mount/host.ts';
import type { DriverRegistry } from '../../plugins/csi/driver/driver.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import type { StandingWord } from '../resolve/standing-word.ts';

/** `places`: all that can be read was read, after several looks at most. `all`: that was every directory and record. */
export type DiskReading = 'places' | 'all';

export interface StandingWatch {
  /** What stands was rebuilt from records and mount table; both are asked again and again from now on. */
  begin(actual: () => ActualState, drivers: Pick<DriverRegistry, 'list' | 'onChange'>): void;
  /** Something of it may be another. */
  look(): void;
  /** What was found on the disk is in what stands. */
  diskRead(read: DiskReading): void;
  /** What is said of a volume that stands; undefined of any other, and where it is none of his. */
  wordOf(volume: VolumeId): StandingWord | undefined;
  /** Called when a word may be another. */
  onWord(listener: () => void): Cancel;
}
