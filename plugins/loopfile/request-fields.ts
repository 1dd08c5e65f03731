/** Fields that many CSI requests share, checked at the door. */
import { type AbsolutePath, parseAbsolutePath } from '../../mount/host.ts';
import { status } from './device/status.ts';
import { parseVolumeId, type VolumeId } from './pool/volume-record.ts';

/** INVALID_ARGUMENT when it is missing, NOT_FOUND when no volume can have that id. */
export function requireVolumeId(text: string): VolumeId {
  if (text === '') throw status('INVALID_ARGUMENT', 'volume_id is missing');
  const id = parseVolumeId(text);
  if (id === undefined) throw status('NOT_FOUND', 'volume_id is not one of this driver');
  return id;
}

/** INVALID_ARGUMENT when it is missing or not a plain absolute path. */
export function requirePath(field: string, text: string): AbsolutePath {
  const path = parseAbsolutePath(text);
  if (path === undefined) throw status('INVALID_ARGUMENT', `${field} must be a plain absolute path`);
  return path;
}
