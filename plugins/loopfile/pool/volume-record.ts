/** volume.json: what the kernel cannot remember about a volume. */
import { fail, ok, type Result } from '../../../mount/failure.ts';
import type { Brand } from '../../../mount/absolute-path.ts';
import { ACCESS_MODES, type Access, type AccessMode } from '../device/capability.ts';
import { FS_TYPES, type FsType } from '../device/file-system.ts';

/** A name that is safe as a path component (`../` in a volume handle must never reach the file system). */
export type VolumeId = Brand<string, 'VolumeId'>;

const VOLUME_ID = /^[a-z0-9-]{1,64}$/;

export function parseVolumeId(text: string): VolumeId | undefined {
  return VOLUME_ID.test(text) ? (text as VolumeId) : undefined;
}

/**
 * What is in the data file. It only ever moves forward:
 *
 * `blank`: nobody was given the volume yet, so a file system may be made, if the bytes agree.
 * `formatting`: mkfs was about to run on this very file (inode) and nobody has used it: whatever a crash left behind
 *   is our own half-made file system and may be thrown away.
 * `used`: it was mounted or handed out as a block device once. Never formatted again, whatever it looks like.
 */
export type Content =
  | { readonly state: 'blank' }
  | { readonly state: 'formatting'; readonly inode: number; readonly sizeBytes: number }
  | { readonly state: 'used' };

export interface Publication {
  readonly target: string;
  readonly mode: AccessMode;
  readonly readOnly: boolean;
}

/** Written before the first mount and erased after the last unmount; believed only as far as mountinfo agrees. */
export interface Staged {
  /** Mounts do not outlive a boot, so neither does this. */
  readonly bootId: string;
  readonly path: string;
  readonly access: Access;
  readonly publications: readonly Publication[];
}

export interface VolumeRecord {
  readonly id: VolumeId;
  /** The name it was created by (CreateVolume is idempotent by name). */
  readonly name: string;
  readonly fsType: FsType;
  readonly content: Content;
  /** The node ControllerPublishVolume chose; null without `--attach`. */
  readonly attachedTo: string | null;
  readonly staged: Staged | null;
}

export function formatVolumeRecord(record: VolumeRecord): string {
  return `${JSON.stringify(record, undefined, 2)}\n`;
}

/** Pure and total. A record with a field of the wrong shape is refused whole: doubt must not become "blank". */
export function parseVolumeRecord(text: string): Result<VolumeRecord> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return unreadable('not JSON');
  }
  if (!isObject(value)) return unreadable('not an object');
  const { id, name, fsType, content, attachedTo, staged } = value;
  if (typeof id !== 'string' || parseVolumeId(id) === undefined) return unreadable('id');
  if (typeof name !== 'string') return unreadable('name');
  if (!FS_TYPES.some((one) => one === fsType)) return unreadable('fsType');
  if (!isContent(content)) return unreadable('content');
  if (attachedTo !== null && typeof attachedTo !== 'string') return unreadable('attachedTo');
  if (staged !== null && !isStaged(staged)) return unreadable('staged');
  return ok({ id: id as VolumeId, name, fsType: fsType as FsType, content, attachedTo, staged });
}

function isContent(value: unknown): value is Content {
  if (!isObject(value)) return false;
  if (value['state'] === 'blank' || value['state'] === 'used') return true;
  return (
    value['state'] === 'formatting' &&
    Number.isSafeInteger(value['inode']) &&
    Number.isSafeInteger(value['sizeBytes'])
  );
}

function isStaged(value: unknown): value is Staged {
  return (
    isObject(value) &&
    typeof value['bootId'] === 'string' &&
    typeof value['path'] === 'string' &&
    isAccess(value['access']) &&
    Array.isArray(value['publications']) &&
    value['publications'].every(isPublication)
  );
}

function isAccess(value: unknown): value is Access {
  return (
    isObject(value) &&
    (value['kind'] === 'mount' || value['kind'] === 'block') &&
    isMode(value['mode']) &&
    (value['fsType'] === undefined || FS_TYPES.some((one) => one === value['fsType'])) &&
    Array.isArray(value['options']) &&
    value['options'].every((one) => typeof one === 'string')
  );
}

function isPublication(value: unknown): value is Publication {
  return (
    isObject(value) &&
    typeof value['target'] === 'string' &&
    isMode(value['mode']) &&
    typeof value['readOnly'] === 'boolean'
  );
}

function isMode(value: unknown): value is AccessMode {
  return ACCESS_MODES.some((one) => one === value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function unreadable(field: string): Result<never> {
  return fail({ code: 'record-unreadable', message: `volume.json: ${field}`, effect: 'none' });
}
