/** How a volume may be used: the VolumeCapability of CSI, narrowed to what loop devices of one node can keep. */
import { isDeepStrictEqual } from 'node:util';
import { fail, ok, type Result } from '../../../mount/failure.ts';
import {
  type VolumeCapability,
  VolumeCapability_AccessMode_Mode as Mode,
} from '../../csi/wire/generated/csi.ts';
import { FS_TYPES, type FsType } from './file-system.ts';
import { status } from './status.ts';

/** The access modes of one node; the MULTI_NODE ones would be a lie for a file on a local disk. */
export const ACCESS_MODES = [
  'SINGLE_NODE_WRITER',
  'SINGLE_NODE_READER_ONLY',
  'SINGLE_NODE_SINGLE_WRITER',
  'SINGLE_NODE_MULTI_WRITER',
] as const;

export type AccessMode = (typeof ACCESS_MODES)[number];

export interface Access {
  readonly kind: 'mount' | 'block';
  readonly mode: AccessMode;
  /** Undefined: the file system the volume was created for. Always undefined for block. */
  readonly fsType: FsType | undefined;
  /** Mount options from the allow-list; none for block. */
  readonly options: readonly string[];
}

/** Unsupported is an answer (`spec-invalid`), because ValidateVolumeCapabilities has to give it as one. */
export function parseAccess(capability: VolumeCapability): Result<Access> {
  const mode = ACCESS_MODES.find((name) => Mode[name] === capability.accessMode?.mode);
  if (mode === undefined) return unsupported(`access mode ${wordFor(capability.accessMode?.mode)}`);
  const type = capability.accessType;
  if (type === undefined) return unsupported('access type missing');
  if (type.$case === 'block') return ok({ kind: 'block', mode, fsType: undefined, options: [] });

  const { fsType: wanted, mountFlags, volumeMountGroup } = type.value;
  const fsType = FS_TYPES.find((name) => name === wanted);
  if (wanted !== '' && fsType === undefined) return unsupported(`fs_type: only ${FS_TYPES.join(', ')}`);
  if (volumeMountGroup !== '') return unsupported('volume_mount_group: VOLUME_MOUNT_GROUP is not offered');
  // A mount flag may be a secret (CSI spec, MountVolume.mount_flags), so the message names its place only.
  const refused = mountFlags.findIndex((flag) => !isSafeOption(flag));
  if (refused >= 0) return unsupported(`mount_flags[${refused}] is not an option this driver allows`);
  return ok({ kind: 'mount', mode, fsType, options: mountFlags });
}

/** The access a call asks for. INVALID_ARGUMENT when there is none or it cannot be kept. */
export function requireAccess(capability: VolumeCapability | undefined): Access {
  if (capability === undefined) throw status('INVALID_ARGUMENT', 'volume_capability is missing');
  const access = parseAccess(capability);
  if (!access.ok) throw status('INVALID_ARGUMENT', access.failure.message);
  return access.value;
}

/** Field by field: in a record a file system that is undefined is not there at all. */
export function isSameAccess(one: Access, other: Access): boolean {
  return (
    one.kind === other.kind &&
    one.mode === other.mode &&
    one.fsType === other.fsType &&
    isDeepStrictEqual(one.options, other.options)
  );
}

/** May only be read, by its mode or by a mount option. */
export function isReadOnly(access: Access): boolean {
  return access.mode === 'SINGLE_NODE_READER_ONLY' || access.options.includes('ro');
}

const SAFE_OPTIONS = new Set([
  'ro',
  'rw',
  'noatime',
  'relatime',
  'strictatime',
  'nodiratime',
  'lazytime',
  'nodev',
  'nosuid',
  'noexec',
  'sync',
  'async',
  'dirsync',
  'discard',
  'nodiscard',
  'acl',
  'noacl',
  'user_xattr',
  'autodefrag',
  'ssd',
  'nossd',
]);
const SAFE_OPTION_VALUE =
  /^(commit=[0-9]{1,3}|compress=(zstd(:[0-9]{1,2})?|lzo|zlib|no)|data=(ordered|journal))$/;

/**
 * An allow-list: options such as `loop`, `offset=`, `bind` or `journal_dev=` would reach beyond the volume. It also
 * makes the options fit for the record and for argv: no secret can be spelled with these words.
 */
function isSafeOption(option: string): boolean {
  return SAFE_OPTIONS.has(option) || SAFE_OPTION_VALUE.test(option);
}

/** Names a mode that is not offered, and those that are; a number that CSI 1.13 does not know stays a number. */
function wordFor(mode: Mode | undefined): string {
  if (mode === undefined) return 'missing';
  const name = Object.entries(Mode).find(([, number]) => number === mode)?.[0];
  return `${name ?? mode}: only ${ACCESS_MODES.join(', ')}`;
}

function unsupported(message: string): Result<never> {
  return fail({ code: 'spec-invalid', message, effect: 'none' });
}
