/** The no-op driver as a process, and what it says of its calls. */
import { fileURLToPath } from 'node:url';
import { type ChildProcess, startProcess } from '../demo/child-process.ts';

/** One mount or unmount call as the driver saw it; times of `clock.ts`. */
export interface DriverCall {
  readonly method: string;
  readonly volume: string;
  readonly startMs: number;
  readonly endMs: number;
}

export interface NoopDriverOptions {
  readonly name: string;
  readonly endpoint: string;
  readonly registration: string;
  /** The directory that it binds everywhere. */
  readonly source: string;
  readonly stage: boolean;
  readonly log: string;
}

export interface NoopDriver extends ChildProcess {
  /** The calls that ended since this was asked last. */
  calls(): Promise<readonly DriverCall[]>;
}

export function startNoopDriver(options: NoopDriverOptions): NoopDriver {
  const { name, endpoint, registration, source, stage, log } = options;
  const flags = ['--name', name, '--endpoint', endpoint, '--registration', registration, '--source', source];
  const program = fileURLToPath(new URL('noop-driver.ts', import.meta.url));
  const waiting: ((calls: readonly DriverCall[]) => void)[] = [];
  const child = startProcess({
    name: 'no-op driver',
    // The same loader as ours: this program is not part of a bundle.
    argv: [...process.execArgv, program, ...flags, ...(stage ? [] : ['--no-stage'])],
    log,
    ipc: (calls) => waiting.shift()?.(calls as readonly DriverCall[]),
  });
  return {
    ...child,
    calls: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        child.send({});
      }),
  };
}

/** Time the driver spent in these calls together, one after the other or not. */
export function ownMs(calls: readonly DriverCall[]): number {
  return calls.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
}

/** Time during which at least one of these calls was under way. */
export function busyMs(calls: readonly DriverCall[]): number {
  let busy = 0;
  let untilMs = Number.NEGATIVE_INFINITY;
  for (const { startMs, endMs } of calls.toSorted((a, b) => a.startMs - b.startMs)) {
    busy += Math.max(0, endMs - Math.max(startMs, untilMs));
    untilMs = Math.max(untilMs, endMs);
  }
  return busy;
}
