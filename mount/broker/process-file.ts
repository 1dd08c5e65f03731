/** What proc(5) says of a process, which never waits for a disk. */
import { readFileSync } from 'node:fs';

/** Undefined: there is no such process. */
export function readProcessFile(pid: number, file: 'stat' | 'statm'): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return undefined;
  }
}

/** The fields of its `stat` from the third on, the state: the name before, in parentheses, may hold anything. */
export function statFieldsOf(pid: number): readonly string[] | undefined {
  return readProcessFile(pid, 'stat')
    ?.replace(/^.*\) /s, '')
    .split(' ');
}
