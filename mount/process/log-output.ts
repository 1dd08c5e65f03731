/** The log on standard error, whoever reads it. */
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';

const STANDARD_ERROR = 2;
const QUEUE_BYTES_MAX = 1_048_576;
/** How often a reader that takes no more is tried again when nothing is logged. */
const RETRY_MS = 50;
/** How long the end of the process waits for its reader: the whole exit takes less than 5 s. */
const LAST_WORDS_MS_MAX = 400;
const LAST_WORDS_RETRY_MS = 5;

/**
 * Takes whole lines. Guarantees: no reader holds up the process, and of what one has not taken at most 1 MiB is kept.
 * Lines that find no room are dropped and counted, until all that is kept was taken; then `tellDropped` is called,
 * which may log. The end of the process, a crash too, writes what is left, as far as the reader takes it at once.
 */
export function createLogOutput(tellDropped: (lines: number) => void): (line: string) => void {
  // What others write, as Node.js its warnings, ends nothing when nobody reads it.
  process.stderr.on('error', () => {});
  const descriptor = openWithoutBlocking();
  if (descriptor !== undefined) return createQueue(descriptor, tellDropped);
  // A file or a terminal, which Node.js writes to at once.
  return (line) => void process.stderr.write(line);
}

/** Undefined for what is neither a pipe nor a stream socket. */
function openWithoutBlocking(): number | undefined {
  const given = fstatSync(STANDARD_ERROR);
  if (given.isFIFO()) {
    try {
      // Opened anew, it stays as it is, whatever those who share the given one, as children of a shell, make of that.
      return openSync(`/proc/self/fd/${STANDARD_ERROR}`, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      // The pipe of another user, or one that nobody reads any more.
    }
  }
  // A socket cannot be opened anew. Node.js makes it non-blocking when it is first asked for, and back at its end.
  const isStream = (given.isFIFO() || given.isSocket()) && process.stderr instanceof Socket;
  return isStream ? STANDARD_ERROR : undefined;
}

function createQueue(descriptor: number, tellDropped: (lines: number) => void): (line: string) => void {
  let queue: Buffer[] = [];
  let queuedBytes = 0;
  let dropped = 0;
  let isWaiting = false;

  function writeOut(): void {
    try {
      for (let next = queue[0]; next !== undefined; next = queue[0]) {
        const written = writeSync(descriptor, next);
        queuedBytes -= written;
        if (written === next.length) queue.shift();
        else queue[0] = next.subarray(written);
      }
    } catch (error) {
      if (isFull(error)) return tryLater();
      // Nobody reads any more, as when the journal was restarted; lines are lost, volumes are not.
      queue = [];
      queuedBytes = 0;
      dropped = 0;
    }
    if (dropped === 0) return;
    const lines = dropped;
    dropped = 0;
    tellDropped(lines);
  }

  function tryLater(): void {
    if (isWaiting) return;
    isWaiting = true;
    setTimeout(() => {
      isWaiting = false;
      writeOut();
    }, RETRY_MS).unref();
  }

  process.on('exit', () => {
    const turn = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const endMs = performance.now() + LAST_WORDS_MS_MAX;
    for (writeOut(); queue.length > 0 && performance.now() < endMs; writeOut())
      Atomics.wait(turn, 0, 0, LAST_WORDS_RETRY_MS);
  });

  return (line) => {
    const bytes = Buffer.from(line);
    const isFullNow = (): boolean => dropped > 0 || queuedBytes + bytes.length > QUEUE_BYTES_MAX;
    if (isFullNow()) writeOut();
    if (isFullNow()) {
      dropped += 1;
      return;
    }
    queue.push(bytes);
    queuedBytes += bytes.length;
    writeOut();
  };
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}
