/** The log lines of operations that ended: one constant event per verb that worked, one for those that did not. */
import type { Failure } from '../../mount/failure.ts';
import type { Log } from '../../mount/process/log.ts';
import { type Operation, publicationOf } from '../model/operation.ts';

const DONE_EVENT = {
  attach: 'volume attached',
  stage: 'volume staged',
  expand: 'volume expanded',
  publish: 'volume published',
  unpublish: 'volume unpublished',
  unstage: 'volume unstaged',
  detach: 'volume detached',
  clean: 'volume proven clean',
} as const satisfies Record<Operation['kind'], string>;

export function logDone(log: Log, operation: Operation): void {
  log.info(DONE_EVENT[operation.kind], { volume: operation.volume, publication: publicationOf(operation) });
}

/** Found after the failure was told. */
export function logHeld(log: Log, operation: Operation, blocker: string): void {
  const { kind, volume } = operation;
  log.info('volume held', { operation: kind, volume, publication: publicationOf(operation), blocker });
}

export function logFailure(log: Log, operation: Operation, failure: Failure): void {
  log.warn('operation failed', {
    operation: operation.kind,
    volume: operation.volume,
    publication: publicationOf(operation),
    code: failure.code,
    effect: failure.effect,
    message: failure.message,
    blocker: failure.blocker,
  });
}
