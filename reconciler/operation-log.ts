/** The log line of an operation that worked: one constant event per verb. */
import type { Log } from './log.ts';
import { type Operation, publicationOf } from './operation.ts';

const DONE_EVENT = {
  attach: 'volume attached',
  stage: 'volume staged',
  publish: 'volume published',
  unpublish: 'volume unpublished',
  unstage: 'volume unstaged',
  detach: 'volume detached',
} as const satisfies Record<Operation['kind'], string>;

export function logDone(log: Log, operation: Operation): void {
  log.info(DONE_EVENT[operation.kind], { volume: operation.volume, publication: publicationOf(operation) });
}
