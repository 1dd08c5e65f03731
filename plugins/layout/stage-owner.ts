/** Path to identity below `plugins`: what drivers stage, and what block volumes have outside the pods. Pure. */
import { isDriverName, isObjectName, parsePodUid } from '../volume.ts';
import {
  BLOCK_DATA,
  BLOCK_HOLDS,
  BLOCK_STAGES,
  BLOCK_TARGETS,
  DEVICES,
  GLOBAL_MOUNT,
  LOCAL_DEVICES,
  INTERFACE,
  ISCSI_STAGES,
  LOCAL_STAGES,
  OLD_STAGES,
  STAGES,
  VOLUME_DATA,
} from './component.ts';
import type { PathOwner, SharedOwner, StageOwner } from './path-owner.ts';

/** The components of a path below a directory that the caller knows. */
export type Components = readonly string[];

/** Directories beside those of block volumes: a volume of that name would lie in the directories of all of them. */
const RESERVED_VOLUMES: ReadonlySet<string> = new Set([BLOCK_STAGES, BLOCK_TARGETS]);
/** Directories beside those of drivers. */
const RESERVED_DRIVERS: ReadonlySet<string> = new Set([DEVICES, OLD_STAGES]);

/** Would the directories of a block volume of this name be those of all block volumes? */
export function isReservedVolumeName(specName: string): boolean {
  return RESERVED_VOLUMES.has(specName);
}

/** Can a block volume have this name? */
export function isBlockVolumeName(specName: string): boolean {
  return isObjectName(specName) && !isReservedVolumeName(specName);
}

/** Is the directory of this name in `Layout.stages` that of a driver? */
export function isStagingDriver(driver: string): boolean {
  return isDriverName(driver) && !RESERVED_DRIVERS.has(driver);
}

export function shared(directory: SharedOwner['directory']): SharedOwner {
  return { kind: 'shared', directory };
}

/** What is in a directory that has a mount point and vol_data.json. */
export function partOf([name, ...more]: Components, mount: string): StageOwner['part'] {
  if (name === undefined) return 'directory';
  if (more.length > 0) return 'content';
  if (name === mount) return 'mount';
  return name === VOLUME_DATA ? 'data' : 'content';
}

export function ownerInPlugins(components: Components): PathOwner | undefined {
  const [domain, stages, driver, ...rest] = components;
  if (domain === undefined) return shared('plugins');
  if (domain === LOCAL_DEVICES[0]) return ownerInLocalDevices(components.slice(1));
  if (domain !== STAGES[0]) return undefined;
  if (stages === LOCAL_STAGES[1]) return ownerInLocalStages(components.slice(2));
  if (stages === ISCSI_STAGES[1]) return ownerInIscsiStages(components.slice(2));
  if (stages !== STAGES[1]) return undefined;
  if (driver === undefined) return shared('stages');
  if (driver === DEVICES) return ownerInBlockDevices(rest);
  if (driver === OLD_STAGES) return ownerInOldStages(rest);
  if (!isStagingDriver(driver)) return undefined;
  const [handleHash, ...inside] = rest;
  if (handleHash === undefined) return { kind: 'driver', driver };
  if (!HASH.test(handleHash)) return undefined;
  return { kind: 'stage', driver, handleHash, part: partOf(inside, GLOBAL_MOUNT) };
}

function ownerInOldStages([specName, ...inside]: Components): PathOwner | undefined {
  if (specName === undefined || !isObjectName(specName)) return undefined;
  return { kind: 'old-stage', specName, part: partOf(inside, GLOBAL_MOUNT) };
}

function ownerInLocalStages([mounts, specName, ...inside]: Components): PathOwner | undefined {
  if (mounts === undefined || specName === undefined)
    return mounts === undefined || mounts === LOCAL_STAGES[2] ? shared('local-stages') : undefined;
  if (mounts !== LOCAL_STAGES[2] || !isObjectName(specName)) return undefined;
  return { kind: 'local-stage', specName, part: inside.length === 0 ? 'directory' : 'content' };
}

function ownerInLocalDevices([devices, specName, uid, ...more]: Components): PathOwner | undefined {
  if (devices === undefined) return shared('local-devices');
  if (devices !== LOCAL_DEVICES[1]) return undefined;
  if (specName === undefined) return shared('local-devices');
  if (!isObjectName(specName)) return undefined;
  if (uid === undefined) return { kind: 'local-device', specName };
  const pod = more.length === 0 ? parsePodUid(uid) : undefined;
  return pod === undefined ? undefined : { kind: 'local-device-publication', pod, specName, part: 'held' };
}

/** The directory of an interface is nobody's alone. */
function ownerInIscsiStages([folder, name, ...inside]: Components): PathOwner | undefined {
  if (folder === undefined) return shared('iscsi-stages');
  if (!folder.startsWith(INTERFACE)) return undefined;
  if (name === undefined) return shared('iscsi-stages');
  const iface = folder.slice(INTERFACE.length);
  return { kind: 'iscsi-stage', iface, name, part: inside.length === 0 ? 'directory' : 'content' };
}

const HASH = /^[0-9a-f]{64}$/;

function ownerInBlockDevices([name, ...rest]: Components): PathOwner | undefined {
  if (name === undefined) return shared('block-devices');
  if (name === BLOCK_STAGES) return ownerInBlockStages(rest);
  if (name === BLOCK_TARGETS) return ownerInBlockTargets(rest);
  return isBlockVolumeName(name) ? ownerInBlockVolume(name, rest) : undefined;
}

function ownerInBlockStages([specName, ...inside]: Components): PathOwner | undefined {
  if (specName === undefined) return shared('block-stages');
  if (!isBlockVolumeName(specName)) return undefined;
  return { kind: 'block-stage', specName, part: inside.length === 0 ? 'directory' : 'content' };
}

function ownerInBlockTargets([specName, uid, ...inside]: Components): PathOwner | undefined {
  if (specName === undefined) return shared('block-targets');
  if (!isBlockVolumeName(specName)) return undefined;
  if (uid === undefined) return { kind: 'block-volume', specName, part: 'targets' };
  const pod = parsePodUid(uid);
  if (pod === undefined) return undefined;
  return { kind: 'block-publication', pod, specName, part: inside.length === 0 ? 'published' : 'content' };
}

function ownerInBlockVolume(specName: string, components: Components): PathOwner | undefined {
  const [directory, name, ...more] = components;
  if (directory === undefined) return { kind: 'block-volume', specName, part: 'directory' };
  if (directory === BLOCK_DATA) {
    if (name === undefined) return { kind: 'block-volume', specName, part: 'data-directory' };
    const isData = name === VOLUME_DATA && more.length === 0;
    return { kind: 'block-volume', specName, part: isData ? 'data' : 'content' };
  }
  if (directory !== BLOCK_HOLDS) return undefined;
  if (name === undefined) return { kind: 'block-volume', specName, part: 'holds' };
  const pod = more.length === 0 ? parsePodUid(name) : undefined;
  return pod === undefined ? undefined : { kind: 'block-publication', pod, specName, part: 'held' };
}
