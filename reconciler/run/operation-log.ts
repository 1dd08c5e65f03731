/** The log lines of operations that ended: one constant event per verb that worked, one for those that did not. */
import type { Failure } from '../../mount/failure.ts';
import type { Log } from '../../mount/process/log.ts';
import { type Operation, publicationOf } from '../model/operation.ts';
import type { VolumeFinished } from './volume-operation.ts';

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

/** `isNews`: a failure that was not told before. What found nothing to do, or was not wanted any more, is no line. */
export function logOutcome(
  log: Log,
  operation: Operation,
  outcome: VolumeFinished['outcome'],
  isNews: (failure: Failure) => boolean,
): void {
  if (outcome.kind === 'failed') {
    const { failure } = outcome;
    if (failure.code !== 'no-longer-wanted' && isNews(failure)) logFailure(log, operation, failure);
  } else if (outcome.kind === 'done' && outcome.learnt.isUnchanged !== true) {
    const { kind, volume } = operation;
    log.info(DONE_EVENT[kind], { volume, publication: publicationOf(operation) });
    if (outcome.learnt.ungrown !== undefined) logUngrown(log, operation, outcome.learnt.ungrown);
  }
}

/** Found after the failure was told. */
export function logHeld(log: Log, operation: Operation, blocker: string): void {
  const { kind, volume } = operation;
  log.info('volume held', { operation: kind, volume, publication: publicationOf(operation), blocker });
}

function logUngrown(log: Log, { volume }: Operation, { code, message, blocker }: Failure): void {
  log.warn('file system not grown', { volume, code, message, blocker });
}

function logFailure(log: Log, operation: Operation, failure: Failure): void {
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
