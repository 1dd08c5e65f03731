/** Words of others as the status has them: printable, and bounded. Pure. */
import type { Failure } from '../../mount/failure.ts';
import { printable } from '../../mount/text/printable.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { PastFailure } from './volume-status.ts';

const MESSAGE_BYTES_MAX = 1_024;
/** Never cut: a handle has at most 2 KiB, and each byte of it may become an escape. */
const ID_BYTES_MAX = 16_384;

/** A volume id as the document has it: volumes are named by it, so two of them are never shown alike. */
export function shownVolumeId(id: VolumeId): string {
  return printable(id, ID_BYTES_MAX);
}

export function shown(text: string): string {
  return printable(text, MESSAGE_BYTES_MAX);
}

export function shownOrNull(text: string | undefined): string | null {
  return text === undefined ? null : shown(text);
}

export function pastFailure(failure: Failure | undefined): PastFailure | null {
  if (failure === undefined) return null;
  return { code: failure.code, message: shown(failure.message), blocker: shownOrNull(failure.blocker) };
}
