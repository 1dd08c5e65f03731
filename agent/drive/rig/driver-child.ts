/** The driver as a child of ours: started, killed in the middle of things, started again. */
import { type ChildProcess, spawn } from 'node:child_process';

/** The last bytes of what it printed are kept, to be shown when it does not come up. */
const OUTPUT_BYTES_MAX = 65_536;
const STOP_MS_MAX = 5_000;

export interface DriverProcess {
  /** Undefined while it is not running. */
  pid(): number | undefined;
  /** How it ended, as a sentence; undefined while it is running, and before it was started. */
  ending(): string | undefined;
  /** Settles when the process was started; not when it serves. */
  start(): Promise<void>;
  /** SIGKILL to the driver and all it started; settles when it is gone. */
  kill(): Promise<void>;
  /** SIGTERM, and SIGKILL when that does not help. */
  stop(): Promise<void>;
  /** The end of its standard output and error. */
  output(): string;
}

/**
 * Inherits the environment, with CSI_ENDPOINT (CSI specification, "Supervised Lifecycle Management"). Leads its own
 * process group, so that a kill takes its mkfs and mount along, as the end of its container would.
 */
export function createDriverProcess(command: readonly string[], endpoint: string): DriverProcess {
  const [file = '', ...argv] = command;
  let child: ChildProcess | undefined;
  let ended: Promise<unknown> = Promise.resolve();
  let ending: string | undefined;
  let output = '';

  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString('utf8')).slice(-OUTPUT_BYTES_MAX);
  };

  function signal(name: NodeJS.Signals): void {
    if (child?.pid === undefined) return;
    try {
      process.kill(-child.pid, name);
    } catch {
      // Gone already: its exit event is on the way.
    }
  }

  /** No end of this process may leave the driver behind. */
  const lastWill = (): void => signal('SIGKILL');

  async function kill(): Promise<void> {
    signal('SIGKILL');
    await ended;
  }

  return {
    pid: () => child?.pid,
    ending: () => ending,
    async start() {
      process.off('exit', lastWill).once('exit', lastWill);
      const environment = { ...process.env, CSI_ENDPOINT: `unix://${endpoint}` };
      const started = spawn(file, argv, {
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
        env: environment,
      });
      child = started;
      ending = undefined;
      started.stdout.on('data', keep);
      started.stderr.on('data', keep);
      started.on('error', (error) => keep(Buffer.from(`${error.message}\n`)));
      ended = new Promise((resolve) => {
        const end = (how: string): void => {
          if (child === started) [child, ending] = [undefined, how];
          resolve(undefined);
        };
        started.once('error', () => end('the driver cannot be started'));
        started.once('exit', (code, name) => {
          end(`the driver's process ended ${code === null ? `by ${name}` : `with ${code}`}`);
        });
      });
    },
    kill,
    async stop() {
      signal('SIGTERM');
      const late = setTimeout(() => signal('SIGKILL'), STOP_MS_MAX);
      await ended;
      clearTimeout(late);
      process.off('exit', lastWill);
    },
    output: () => output,
  };
}
