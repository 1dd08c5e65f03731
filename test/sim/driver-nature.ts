/** What a simulated driver can do, as its capabilities tell, and some of how it does it, as they do not. */

/**
 * What a driver that attaches has of its controller service in this life. `left-out`: nothing, in a deployment that
 * lacks the container; its volumes are to be attached all the same. `attaches-nothing`: all but
 * PUBLISH_UNPUBLISH_VOLUME, in a version that needs no attachment; what one before has attached it does not keep.
 */
export type ControllerPart = 'whole' | 'left-out' | 'attaches-nothing';

export interface DriverNature {
  readonly stages: boolean;
  /** A volume of it is to be attached to the node before it is set up there. */
  readonly attaches: boolean;
  readonly controller: ControllerPart;
  /** What NodeGetInfo calls this machine, and the storage has an attachment under. */
  readonly nodeId: string;
  /** Stage mounts (or, of a device, makes a node); otherwise it only takes note. */
  readonly stageMounts: boolean;
  /** Publications of one volume in different places may overlap. */
  readonly parallel: boolean;
  /** `offline`: a volume that is published anywhere is in use and cannot be grown. */
  readonly expands: 'no' | 'online' | 'offline';
  /** Node capability SINGLE_NODE_MULTI_WRITER, and the controller's own. */
  readonly multiWriter: boolean;
  readonly controllerMultiWriter: boolean;
  /** Node capability VOLUME_MOUNT_GROUP. */
  readonly mountGroup: boolean;
  readonly statistics: boolean;
  readonly health: boolean;
  /** Publishes a device as a bind of its node on a file, not as a node of its own. */
  readonly bindsDevices: boolean;
}

/** The driver of version 0.1: stages and publishes file systems, and nothing else. */
export const PLAIN_NATURE: DriverNature = {
  stages: true,
  attaches: false,
  controller: 'whole',
  nodeId: 'node-sim',
  stageMounts: true,
  parallel: false,
  expands: 'no',
  multiWriter: false,
  controllerMultiWriter: false,
  mountGroup: false,
  statistics: false,
  health: false,
  bindsDevices: false,
};

export function hasController({ attaches, controller }: DriverNature): boolean {
  return attaches && controller !== 'left-out';
}

/** By its capabilities: what it is asked to attach. */
export function attachesNow({ attaches, controller }: DriverNature): boolean {
  return attaches && controller === 'whole';
}

/** By the storage, whatever its capabilities say. */
export function needsAttachment({ attaches, controller }: DriverNature): boolean {
  return attaches && controller !== 'attaches-nothing';
}
