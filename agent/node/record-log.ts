/** What the log says of records when an agent starts. */
import type { Failure } from '../../mount/failure.ts';
import type { Log } from '../../mount/process/log.ts';
import type { LoadedRecords } from '../../reconciler/recovery/record-store.ts';

export function tellOfRecords({ unreadable, roomless }: LoadedRecords, log: Log): void {
  for (const { file, failure } of unreadable) log.warn('record unreadable', { file, ...explained(failure) });
  for (const { file, failure } of roomless)
    log.warn('record has no room beside it', { file, ...explained(failure) });
}

function explained(failure: Failure): { readonly code: string; readonly message: string } {
  return { code: failure.code, message: failure.message };
}
