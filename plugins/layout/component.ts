/**
 * The components of the layout that name no pod, volume or driver. They are the kubelet's, except for those of
 * `mooring`. Only this folder spells them (test/tidy.test.ts).
 */

import { CSI_PLUGIN } from '../volume.ts';

/** The directories that the root itself has. */
export const PODS = 'pods';
export const PLUGINS = 'plugins';
export const REGISTRY = 'plugins_registry';
export const OWN = 'mooring';

/** The directories and files of `mooring`. */
export const RECORDS = 'records';
export const FORMATS = 'formats';
export const SESSIONS = 'sessions';
export const OWN_FILES = {
  source: 'source.json',
  agentLock: 'agent.lock',
  helpersLock: 'helpers.lock',
} as const;

/** The directories of a pod, beside its `plugins`. */
export const VOLUMES = 'volumes';
export const DEVICES = 'volumeDevices';
export const SUBPATHS = 'volume-subpaths';

/** The way from `plugins` to what CSI drivers stage. */
export const STAGES = ['kubernetes.io', 'csi'] as const;

/** The way from `plugins` to the file systems of devices of the machine, mounted for all of their pods. */
export const LOCAL_STAGES = ['kubernetes.io', 'local-volume', 'mounts'] as const;

/** The way from `plugins` to the devices of the machine that pods have: the kubelet escapes the plugin here, too. */
export const LOCAL_DEVICES = ['kubernetes.io~local-volume', 'volumeDevices'] as const;
/** The way from `plugins` to the file systems of iSCSI, and how the directories there begin: one for each interface. */
export const ISCSI_STAGES = ['kubernetes.io', 'iscsi'] as const;
export const INTERFACE = 'iface-';

/** In the directory of a staged volume, and in the directory of a published one: where the driver mounts. */
export const GLOBAL_MOUNT = 'globalmount';
export const MOUNT = 'mount';

/** The directories that block volumes share, in the `volumeDevices` beside those of the drivers. */
export const BLOCK_STAGES = 'staging';
export const BLOCK_TARGETS = 'publish';
/** The directories that each block volume has there. */
export const BLOCK_DATA = 'data';
export const BLOCK_HOLDS = 'dev';

/** Where kubelets before v1.24 staged volumes: it lies where the directory of a driver of that name would. */
export const OLD_STAGES = 'pv';

export const VOLUME_DATA = 'vol_data.json';

/** The name of a readiness marker begins with it when the marker is of a volume that has files of the wish. */
export const WRAPPED = 'wrapped_';

/** The kubelet escapes `/` in plugin names as `~`. */
export function escapePlugin(plugin: string): string {
  return plugin.replaceAll('/', '~');
}

/** Undoes `escapePlugin` for the names that plugins have: none has a `~`. */
export function unescapePlugin(directory: string): string {
  return directory.replaceAll('~', '/');
}

/** What a pod's directory has: mounts of CSI drivers, devices of the machine, and the kubelet's readiness markers. */
export const DRIVER_VOLUMES = escapePlugin(CSI_PLUGIN);
export const LOCAL_VOLUMES = LOCAL_DEVICES[0];
export const MARKERS = escapePlugin('kubernetes.io/empty-dir');

/** A name of more characters has no room for `.json` behind it: a file system gives 255, and object names have 253. */
const NAMED_MAX = 250;

/** The file of a format intent, by the name of the volume. */
export function intentFile(specName: string): string {
  return specName.length > NAMED_MAX ? `${specName}.j` : `${specName}.json`;
}

/** Undoes `intentFile`; undefined for any other name. */
export function intentOf(file: string): string | undefined {
  const specName = file.replace(/\.(?:json|j)$/, '');
  return intentFile(specName) === file ? specName : undefined;
}
