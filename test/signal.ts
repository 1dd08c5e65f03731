/** The only sender of signals in the tests: to one process or to one group that is known. */
import assert from 'node:assert/strict';

/**
 * Throws where there is no such process, and for whatever kill(2) takes for more than one: 0 is the group of the tests
 * themselves and of the gate around them, -1 is the machine. An id that was not found must never become one of these.
 */
export function signalProcess(pid: number | undefined, signal: NodeJS.Signals | number): void {
  assert.ok(pid !== undefined && Number.isInteger(pid) && pid > 1, `${pid} is no process to signal`);
  process.kill(pid, signal);
}

/** The process group that the process leads. */
export function signalGroup(leader: number | undefined, signal: NodeJS.Signals): void {
  assert.ok(leader !== undefined && Number.isInteger(leader) && leader > 1, `${leader} leads no group`);
  process.kill(-leader, signal);
}
