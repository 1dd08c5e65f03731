/** What the file of a record says, read once for the same bytes: who changes a file puts others in their place. */
import type { Result } from '../../mount/failure.ts';
import { parseRecord, type VolumeRecord } from '../../reconciler/recovery/record.ts';
import type { Inode } from './file-tree.ts';

const known = new WeakMap<Uint8Array, Result<VolumeRecord>>();

export function recordIn({ content }: Inode): Result<VolumeRecord> {
  const record = known.get(content) ?? parseRecord(content);
  known.set(content, record);
  return record;
}
