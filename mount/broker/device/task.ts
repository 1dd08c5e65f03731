/** The threads of all processes, and questions about one that may end meanwhile. */
import { performance } from 'node:perf_hooks';
import { type Scan, SCAN_MS_MAX, Unseen } from './device-scan.ts';
import { ENDED, namesIn, readOrNothing } from './kernel-text.ts';
import { nameOf } from '../path/holders.ts';
import { codeOfErrno, errnoOf } from '../../errno.ts';

export interface Task {
  readonly pid: string;
  readonly directory: string;
  readonly isLeader: boolean;
}

export function* tasks(scan: Scan): Generator<Task> {
  for (const pid of namesIn('/proc').filter((name) => /^[1-9][0-9]*$/.test(name))) {
    for (const id of namesIn(`/proc/${pid}/task`)) {
      if (performance.now() > scan.untilMs)
        throw new Unseen('deadline-passed', `more than ${SCAN_MS_MAX} ms for all processes`);
      yield { pid, directory: `/proc/${pid}/task/${id}`, isLeader: id === pid };
    }
  }
}

/** Undefined when the process has ended, or closed that descriptor; otherwise what cannot be read ends the scan. */
export function aboutTask<T>(task: Task, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const errno = errnoOf(error);
    if (ENDED.has(errno) || !isAlive(task.directory)) return undefined;
    const who = `pid ${task.pid} (${nameOf(task.pid)})`;
    throw new Unseen(codeOfErrno(errno), `${who} cannot be looked at: ${errno}`);
  }
}

/** Neither gone nor a zombie, whose descriptors and mounts are gone. */
export function isAlive(directory: string): boolean {
  const state = /\) ([A-Za-z])/.exec(readOrNothing(`${directory}/stat`) ?? '')?.[1];
  return state !== undefined && state !== 'Z' && state !== 'X';
}
