/**
 * Is a directory the one that it was? Pure. Decided by what the kernel tells apart, within a boot and across one: what
 * may change without anybody's doing is not compared, and a directory of which too little is left to compare is not
 * the same (docs/DECISIONS.md).
 */
import type { AbsolutePath, DirectoryIdentity } from '../../../mount/host.ts';
import type { MountEntry } from '../../../mount/mount-table.ts';
import { sha256Hex } from '../../../plugins/layout/layout.ts';

/** A directory as it was seen, with the mount that it was seen through. */
export interface KnownDirectory extends DirectoryIdentity {
  readonly path: AbsolutePath;
  /** The boot in which mount id and device are true. */
  readonly bootId: string;
  readonly fsType: string;
  /** What is mounted, as the kernel's table has it: a device, an export, a label. */
  readonly source: string;
  /** What of the file system is mounted. */
  readonly mountRoot: string;
  /** Where: `path` itself when something is mounted on the directory. */
  readonly mountPoint: string;
}

export function knownDirectory(
  path: AbsolutePath,
  identity: DirectoryIdentity,
  mount: MountEntry,
  bootId: string,
): KnownDirectory {
  const { fsType, source, root, target } = mount;
  return { ...identity, path, bootId, fsType, source, mountRoot: root, mountPoint: target };
}

/** Their files do not outlive the boot, so that no directory of theirs can be there after it. */
const IN_MEMORY: ReadonlySet<string> = new Set(['tmpfs', 'ramfs', 'devtmpfs']);
/** Gives directories other numbers, and other times of birth, when it copies them up or is mounted again. */
const RENUMBERED = 'overlay';

/** `was` is of the same path. */
export function isSameDirectory(was: KnownDirectory, is: KnownDirectory): boolean {
  if (was.fsType !== is.fsType) return false;
  return was.bootId === is.bootId ? isSameInBoot(was, is) : isSameAfterBoot(was, is);
}

function isSameInBoot(was: KnownDirectory, is: KnownDirectory): boolean {
  // Unmounted, it is lost; its numbers are given to the next one, so it is known by its birth or by its mount.
  if (IN_MEMORY.has(is.fsType) && is.bornNs === undefined && was.mountId !== is.mountId) return false;
  if (IN_MEMORY.has(is.fsType) || !isAnonymous(is)) return was.device === is.device && isSameInode(was, is);
  // The number of its device is made up at each mount, and reused: what is mounted counts, as it is named.
  if (was.source !== is.source || (was.device !== is.device && was.mountRoot !== is.mountRoot)) return false;
  return is.fsType === RENUMBERED ? was.inode === is.inode : isSameInode(was, is);
}

/** Devices are numbered anew and mounts have other ids; disks keep inodes and the time that each was born. */
function isSameAfterBoot(was: KnownDirectory, is: KnownDirectory): boolean {
  const isSamePlace = was.mountPoint === is.mountPoint && was.mountRoot === is.mountRoot;
  if (IN_MEMORY.has(is.fsType) || is.fsType === RENUMBERED) return isSamePlace && was.source === is.source;
  return isSameInode(was, is) && (is.bornNs !== undefined || isSameMounted(was, is));
}

function isSameInode(was: KnownDirectory, is: KnownDirectory): boolean {
  return was.inode === is.inode && was.bornNs === is.bornNs;
}

function isSameMounted(was: KnownDirectory, is: KnownDirectory): boolean {
  return was.source === is.source && was.mountRoot === is.mountRoot;
}

/** A file system without a disk of its own here. */
function isAnonymous({ device }: KnownDirectory): boolean {
  return device.startsWith('0:');
}

/** People are told of it so, and a word about just this directory is made of it: `ext4 on /dev/sda1, inode 12, …`. */
export function describeDirectory(directory: KnownDirectory): string {
  const { path, fsType, source, mountPoint, inode, bornNs } = directory;
  const where = mountPoint === path ? 'mounted on it' : `mounted at ${mountPoint}`;
  const born = bornNs === undefined ? '' : `, made ${bornText(bornNs)}`;
  return `${fsType} ${source}, ${where}, inode ${inode}${born}`;
}

function bornText(bornNs: string): string {
  const date = new Date(Number(BigInt(bornNs) / 1_000_000n));
  return Number.isNaN(date.getTime()) ? `${bornNs} ns` : date.toISOString();
}

const WORD_CHARACTERS = 12;

/** Names one sight of one directory; another directory has another one. */
export function sightOf(directory: KnownDirectory): string {
  const { mountId, device, inode, bornNs, bootId, path } = directory;
  return sha256Hex(JSON.stringify([path, bootId, mountId, device, inode, bornNs])).slice(0, WORD_CHARACTERS);
}

const NOTE_VERSION = 1;

/** As it is kept on disk: a header with a checksum, as records have it, and the body as JSON. */
export function formatKnownDirectory(directory: KnownDirectory): string {
  const body = JSON.stringify(directory);
  return `mooring-source ${NOTE_VERSION} ${sha256Hex(body)}\n${body}\n`;
}

/** Total; undefined for anything that was not once written whole by `formatKnownDirectory` (INV-20). */
export function parseKnownDirectory(text: string): KnownDirectory | undefined {
  const [header, body, end, ...rest] = text.split('\n');
  if (body === undefined || end !== '' || rest.length > 0) return undefined;
  if (header !== `mooring-source ${NOTE_VERSION} ${sha256Hex(body)}`) return undefined;
  try {
    const known = JSON.parse(body) as KnownDirectory;
    return TEXT_FIELDS.every((field) => typeof known[field] === 'string') ? known : undefined;
  } catch {
    return undefined;
  }
}

const TEXT_FIELDS = [
  'path',
  'bootId',
  'device',
  'inode',
  'fsType',
  'source',
  'mountRoot',
  'mountPoint',
] as const;
