/** A volume that a driver is tried with, and a place that it is published at. */
import type { VolumeCapability } from '../../../plugins/csi/wire/generated/csi.ts';
import type { StringMap } from './drive-options.ts';
import type { AccessKind } from './rig.ts';

export interface TestVolume {
  readonly id: string;
  /** The name it was created under; undefined for a given handle. */
  readonly name: string | undefined;
  readonly context: StringMap;
  /** 0 when it is not known. */
  readonly capacityBytes: bigint;
  readonly kind: AccessKind;
  readonly capability: VolumeCapability;
  publishContext: StringMap;
  /** Empty when the driver does not stage. */
  readonly staging: string;
}

export interface Publication {
  readonly target: string;
  readonly readOnly?: boolean;
  readonly capability?: VolumeCapability;
  readonly staging?: string;
  readonly secrets?: StringMap;
}
