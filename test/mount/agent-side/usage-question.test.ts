/** How long a file system has that is asked for its numbers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallCompany } from '../../../mount/agent-side/broker-pool-members.ts';
import { createUsageQuestion } from '../../../mount/agent-side/usage-question.ts';
import { fail, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath } from '../../../mount/host.ts';
import type { Usage } from '../../../mount/usage.ts';
import { handClock } from '../../kubernetes/api/hand-clock.ts';

const SILENT_MS = 10_000;
const REQUEST = { path: '/place' as AbsolutePath, scope: 'file-system' } as const;

test('a file system is given up when it is silent, not when the question for its numbers waits', async () => {
  const clock = handClock();
  let company: CallCompany = {};
  const measure = createUsageQuestion({
    ...{ clock, silentMs: SILENT_MS },
    ask: (_, given = {}) =>
      new Promise<Result<Usage>>((resolve) => {
        company = given;
        company.signal?.addEventListener('abort', () =>
          resolve(fail({ code: 'no-longer-wanted', message: 'killed', effect: 'none' })),
        );
      }),
  });
  const answers: Result<Usage>[] = [];
  void measure(REQUEST).then((answer) => answers.push(answer));
  await clock.go(3 * SILENT_MS);
  assert.equal(answers.length, 0, 'it waits for a broker');
  company.onBegin?.();
  await clock.go(SILENT_MS + 1);
  const [told] = answers;
  assert.ok(told?.ok === false);
  assert.equal(told.failure.code, 'deadline-passed');
  assert.match(told.failure.message, /the file system at \/place does not answer/);
});
