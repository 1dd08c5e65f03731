/**
 * A process that talks to the log as the agent's does. For each line `N` on standard input it logs N errors, each in a
 * turn of its own, and says `said` on standard output; for `last N` it logs them in one turn and exits then, as one
 * that dies. The lines bear numbers, beginning with 0. The clock of a `patient` one stands still: its reader has all
 * the time that a busy machine takes.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createProcessLog } from '../../../agent/process/process-facts.ts';

const PADDING = 'x'.repeat(900);
const DIED = 1;

if (process.argv.includes('patient')) Object.defineProperty(performance, 'now', { value: () => 0 });

const log = await createProcessLog({ format: 'json', level: 'error' });
let number = 0;
const say = (): void => log.error('said', { number: number++, padding: PADDING });

for await (const line of createInterface(process.stdin)) {
  const isLast = line.startsWith('last ');
  const lines = Number(line.replace('last ', ''));
  for (let said = 0; said < lines; said++) {
    say();
    if (!isLast) await nextTurn();
  }
  writeSync(1, 'said\n');
  if (isLast) process.exit(DIED);
}
