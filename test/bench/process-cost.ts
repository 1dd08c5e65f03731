/** What a process costs, as the kernel counts it. */
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { descendantsOf, readOrNothing } from '../demo/machine.ts';

/** Resident memory in MB (1,000,000 bytes), of the process alone. */
export function residentMb(pid: number): number {
  return (
    (Number(/^VmRSS:\s+(\d+) kB$/m.exec(readOrNothing(`/proc/${pid}/status`) ?? '')?.[1] ?? Number.NaN) *
      1_024) /
    1e6
  );
}

/** The memory of its helper processes, in MB: each page is divided by the number of processes that share it (PSS). */
export function helpersMb(pid: number): number {
  return proportionalMb(descendantsOf(pid).map((helper) => helper.pid));
}

/** The memory of the process and its helpers together, in MB, divided in the same way. */
export function treeMb(pid: number): number {
  return proportionalMb([pid, ...descendantsOf(pid).map((helper) => helper.pid)]);
}

function proportionalMb(pids: readonly number[]): number {
  const shares = pids.map((pid) => readOrNothing(`/proc/${pid}/smaps_rollup`) ?? '');
  return (
    (shares.reduce((sum, text) => sum + Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0), 0) * 1_024) / 1e6
  );
}

/** Time on a CPU of all threads, in ms; to the nanosecond where the kernel counts so, else by ticks of 10 ms. */
export function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) =>
    readOrNothing(`/proc/${pid}/task/${thread}/schedstat`),
  );
  if (threads.every((one) => one !== undefined)) {
    return threads.reduce((sum, one) => sum + Number(one?.split(' ')[0]) / 1e6, 0);
  }
  const fields = (readOrNothing(`/proc/${pid}/stat`) ?? '').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

const TICK_MS = 10;

/** Time on a CPU of the process, its helpers, and all helpers that have ended, in ms, by ticks of 10 ms. */
export function treeCpuMs(pid: number): number {
  const all = [pid, ...descendantsOf(pid).map((helper) => helper.pid)];
  return all.reduce((sum, one) => {
    const fields = (readOrNothing(`/proc/${one}/stat`) ?? '').split(') ')[1]?.split(' ') ?? [];
    return sum + fields.slice(11, 15).reduce((ticks, field) => ticks + Number(field), 0) * TICK_MS;
  }, 0);
}

/** How often the main thread, which runs the event loop, has gone to sleep: once per wake-up. */
export function wakeUps(pid: number): number {
  const status = readOrNothing(`/proc/${pid}/task/${pid}/status`) ?? '';
  return Number(/^voluntary_ctxt_switches:\s+(\d+)$/m.exec(status)?.[1] ?? Number.NaN);
}

const QUIET_MS = 500;
const LOOKS_MAX = 60;

/** Until the process has used no CPU for half a second: garbage collection and late writes are over. */
export async function untilQuiet(pid: number, interrupted: AbortSignal): Promise<void> {
  let before = cpuMs(pid);
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    await sleep(QUIET_MS, undefined, { signal: interrupted });
    const now = cpuMs(pid);
    if (now - before < 1) return;
    before = now;
  }
}
