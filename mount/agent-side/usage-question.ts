/** The question how much room something takes: whoever is silent is given up early, whoever counts goes on. */
import type { CallCompany } from './broker-pool-members.ts';
import { fail, type Result } from '../failure.ts';
import type { Clock } from '../host.ts';
import type { Usage, UsageQuestions, UsageRequest } from '../usage.ts';

export interface UsageQuestionParts {
  readonly clock: Pick<Clock, 'timer'>;
  readonly ask: (request: UsageRequest, company?: CallCompany) => Promise<Result<Usage>>;
  /** What a file system has that is asked for its numbers, from its turn on: it answers at once, or hangs. */
  readonly silentMs: number;
}

/** The broker of who is given up is killed: while it waits it keeps the mount, which could not be taken down. */
export function createUsageQuestion(parts: UsageQuestionParts): UsageQuestions['measureUsage'] {
  const { clock, ask, silentMs } = parts;
  return async (request) => {
    if (request.scope === 'tree') return ask(request);
    const abort = new AbortController();
    let cancel = (): void => {};
    const onBegin = (): void => {
      cancel = clock.timer(silentMs, () => abort.abort());
    };
    const answer = await ask(request, { onBegin, signal: abort.signal });
    cancel();
    if (answer.ok || answer.failure.code !== 'no-longer-wanted') return answer;
    const message = `the file system at ${request.path} does not answer`;
    return fail({ code: 'deadline-passed', message, effect: 'none', blocker: request.path });
  };
}
