/** What a simulated driver can do, as its capabilities tell, and some of how it does it, as they do not. */

export interface DriverNature {
  readonly stages: boolean;
  readonly attaches: boolean;
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
