/** One question at a time about one file system, each with an end: no answer is an answer, too. */
import { ok, type Result } from '../failure.ts';
import type { AbsolutePath, Clock, FileSystemProbe, Host } from '../host.ts';

export interface QuestionParts {
  readonly clock: Pick<Clock, 'timer'>;
  /** Settles when the broker has answered or ended, which may be never. `onBegin`: a broker has taken it. */
  readonly ask: (path: AbsolutePath, onBegin: () => void) => Promise<Result<FileSystemProbe>>;
  /** What a file system has for its answer. */
  readonly deadlineMs: number;
  /** So long it waits for a broker: each that hangs has one. */
  readonly turnMs: number;
}

const SILENT: FileSystemProbe = { kind: 'silent' };

/**
 * Who asks while the question is open waits for the same answer, and not longer than for one of its own: a file system
 * that hangs holds one broker, however often it is asked about.
 */
export function createFileSystemQuestion(parts: QuestionParts): Host['probeFileSystem'] {
  const open = new Map<AbsolutePath, Promise<Result<FileSystemProbe>>>();
  return async (path) => {
    const asked = open.get(path) ?? parts.ask(path, () => {});
    open.set(path, asked);
    void asked.finally(() => {
      if (open.get(path) === asked) open.delete(path);
    });
    return new Promise((resolve) => {
      const cancel = parts.clock.timer(parts.deadlineMs, () => resolve(ok(SILENT)));
      void asked.then((answer) => {
        cancel();
        resolve(!answer.ok && answer.failure.code === 'deadline-passed' ? ok(SILENT) : answer);
      });
    });
  };
}
