/** The QEMU guest agent's protocol: commands run inside a machine, over a socket of the machine's own process. */
import { createConnection, type Socket } from 'node:net';
import { once } from 'node:events';

export interface Finished {
  /** The exit code of the command; 128 and more: the signal that ended it. */
  readonly code: number;
  /** Both outputs, the standard one first. */
  readonly out: string;
}

export interface GuestAgent {
  /** Settles when the agent inside answers; rejects after `waitMs`. */
  answers(waitMs: number): Promise<void>;
  /** Rejects when the machine does not say within `waitMs` that the command has ended. */
  run(command: string, waitMs: number): Promise<Finished>;
  /** Tells the command and does not wait for it: the machine may go down under it. */
  tell(command: string): Promise<void>;
  close(): void;
}

const ANSWER_MS_MAX = 300_000;
const PROBE_MS = 2_000;
const POLL_MS = 25;
/** Clears what the agent's parser has got of a request that was cut off. */
const FLUSH = Buffer.from([0xff]);

interface ExecStatus {
  readonly exited: boolean;
  readonly exitcode?: number;
  readonly signal?: number;
  readonly 'out-data'?: string;
  readonly 'err-data'?: string;
}

/** `path`: the socket of the virtual serial port; it must be there already. */
export async function connectGuestAgent(path: string): Promise<GuestAgent> {
  const socket = createConnection(path);
  await once(socket, 'connect');
  const ask = questionsOver(socket);
  const execute = async (command: string, capture: boolean, waitMs: number): Promise<number> => {
    const words = { path: '/bin/sh', arg: ['-c', command], 'capture-output': capture };
    return ((await ask('guest-exec', words, waitMs)) as { readonly pid: number }).pid;
  };
  return {
    async answers(waitMs) {
      const endMs = performance.now() + waitMs;
      for (let id = 1; ; id += 1) {
        socket.write(FLUSH);
        const answer = ask('guest-sync', { id }, PROBE_MS);
        if (
          await answer.then(
            () => true,
            () => false,
          )
        )
          return;
        if (performance.now() > endMs) throw new Error(`the guest agent did not answer within ${waitMs} ms`);
      }
    },
    async run(command, waitMs) {
      const endMs = performance.now() + waitMs;
      const answerMs = Math.min(waitMs, ANSWER_MS_MAX);
      const pid = await execute(command, true, answerMs);
      for (;;) {
        const status = (await ask('guest-exec-status', { pid }, answerMs)) as ExecStatus;
        if (status.exited) return finished(status);
        if (performance.now() > endMs) throw new Error(`not ended within ${waitMs} ms: ${command}`);
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
    async tell(command) {
      await execute(command, false, ANSWER_MS_MAX);
    },
    close: () => void socket.destroy(),
  };
}

function finished(status: ExecStatus): Finished {
  const out = [status['out-data'], status['err-data']].map((data) =>
    Buffer.from(data ?? '', 'base64').toString(),
  );
  return { code: status.exitcode ?? 128 + (status.signal ?? 0), out: out.join('') };
}

type Ask = (execute: string, words: object, waitMs: number) => Promise<unknown>;

/** Answers find their question by its number: one that came too late, or before a reboot, is nobody's. */
function questionsOver(socket: Socket): Ask {
  const waiting = new Map<
    number,
    (answer: { readonly return?: unknown; readonly error?: unknown }) => void
  >();
  let asked = 0;
  let text = '';
  socket.setEncoding('utf8');
  // Its end is told by the questions that get no answer.
  socket.on('error', () => undefined);
  socket.on('data', (chunk: string) => {
    const lines = (text + chunk).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      const answer = parsed(line);
      if (answer?.id !== undefined) waiting.get(answer.id)?.(answer);
    }
  });
  return (execute, words, waitMs) => {
    asked += 1;
    const id = asked;
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        waiting.delete(id);
        act();
      };
      const late = new Error(`no answer to ${execute} within ${waitMs} ms: ${JSON.stringify(words)}`);
      const timer = setTimeout(() => settle(() => reject(late)), waitMs);
      waiting.set(id, ({ return: value, error }) => {
        settle(() => (error === undefined ? resolve(value) : reject(new Error(JSON.stringify(error)))));
      });
      socket.write(`${JSON.stringify({ execute, arguments: words, id })}\n`);
    });
  };
}

function parsed(
  line: string,
): { readonly id?: number; readonly return?: unknown; readonly error?: unknown } | undefined {
  try {
    return JSON.parse(line.replaceAll('\u{fffd}', '')) as { readonly id?: number };
  } catch {
    // The rest of a line that a reboot cut off.
    return undefined;
  }
}
