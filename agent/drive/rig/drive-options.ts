/** What a user asked `mooring drive` for, checked. */
import type { VolumeCapability_AccessMode_Mode as Mode } from '../../../plugins/csi/wire/generated/csi.ts';
import type { AbsolutePath } from '../../../mount/host.ts';

export type StringMap = Readonly<Record<string, string>>;

/** Secrets by the call that carries them; empty where none are given. */
export interface DriveSecrets {
  readonly create: StringMap;
  readonly controllerPublish: StringMap;
  readonly controllerExpand: StringMap;
  readonly stage: StringMap;
  readonly publish: StringMap;
  readonly expand: StringMap;
}

export const NO_DRIVE_SECRETS: DriveSecrets = {
  create: {},
  controllerPublish: {},
  controllerExpand: {},
  stage: {},
  publish: {},
  expand: {},
};

export interface DriveOptions {
  /** The CSI socket; undefined: as the registration socket says. */
  readonly endpoint: AbsolutePath | undefined;
  /** A registration socket, or the directory it appears in. */
  readonly registration: AbsolutePath | undefined;
  /** Starts the driver; empty: it runs already. */
  readonly command: readonly string[];
  /** Volumes that are there already; empty: they are created. */
  readonly volumeHandles: readonly string[];
  readonly sizeBytes: bigint;
  /** Empty: the driver chooses. */
  readonly fsType: string;
  /** Undefined: the modes the driver's capabilities allow. */
  readonly accessMode: Mode | undefined;
  /** volume_context of the given handles. */
  readonly attributes: StringMap;
  /** Parameters of CreateVolume. */
  readonly parameters: StringMap;
  readonly secrets: DriveSecrets;
  /** Block volumes must work; of several given handles the last one may be overwritten as a block device. */
  readonly block: boolean;
  /** Empty: all. */
  readonly only: readonly string[];
  readonly faults: boolean;
  readonly seed: number;
  /** How long one call may take. */
  readonly deadlineMs: number;
  /** Where the scratch directory is made; undefined: where temporary files go. */
  readonly directory: AbsolutePath | undefined;
  /** Remarks count as failures. */
  readonly strict: boolean;
}
