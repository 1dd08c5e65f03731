/** Which process a tool is, so that the agent can end one whose broker is gone, and never another one instead. */
import { statFieldsOf } from './process-file.ts';

/** A number goes to another process when its own has ended; with the time of the start it is of this one only. */
export interface ToolProcess {
  readonly pid: number;
  /** In ticks since the boot (proc(5), stat). */
  readonly started: string;
}

const ZOMBIE: ReadonlySet<string> = new Set(['Z', 'X']);

/** Undefined: there is no such process. Of a child that was not waited for it is the child. */
export function toolProcessOf(pid: number): ToolProcess | undefined {
  const started = statFieldsOf(pid)?.[19];
  return started === undefined ? undefined : { pid, started };
}

/** Neither gone nor a zombie without threads, which whoever has become its parent has not waited for. */
export function isRunning({ pid, started }: ToolProcess): boolean {
  const fields = statFieldsOf(pid);
  if (fields?.[19] !== started) return false;
  return !ZOMBIE.has(fields[0] ?? '') || Number(fields[17]) > 1;
}

/** SIGKILL to it and to its process group, which it leads; nothing, where it has ended. */
export function killTool({ pid, started }: ToolProcess): void {
  if (toolProcessOf(pid)?.started !== started) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended in this moment.
  }
}
