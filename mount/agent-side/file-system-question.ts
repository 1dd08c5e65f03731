/** One question at a time about one file system, each with an end: no answer is an answer, too. */
import { fail, ok, type Result } from '../failure.ts';
import type { AbsolutePath, Cancel, Clock, FileSystemProbe, Host } from '../host.ts';

export interface QuestionParts {
  readonly clock: Pick<Clock, 'timer'>;
  /** Settles when the broker has answered or ended, which may be never. `onBegin`: a broker has taken it. */
  readonly ask: (path: AbsolutePath, onBegin: () => void) => Promise<Result<FileSystemProbe>>;
  /** What a file system has for its answer. */
  readonly deadlineMs: number;
  /** So long it waits for a broker: each that hangs has one. */
  readonly turnMs: number;
}

type Answer = Result<FileSystemProbe>;

const SILENT: Answer = ok({ kind: 'silent' });

/**
 * Who asks while the question is open waits for the same answer, and not longer than for one of its own: a file system
 * that hangs holds one broker, however often it is asked about. Who waits for a broker behind others that hang is not
 * silent: its time begins with its turn.
 */
export function createFileSystemQuestion(parts: QuestionParts): Host['probeFileSystem'] {
  const open = new Map<AbsolutePath, OpenQuestion>();

  function begin(path: AbsolutePath): OpenQuestion {
    const question = new OpenQuestion(parts, path);
    open.set(path, question);
    void parts
      .ask(path, () => question.begun())
      .then((answer) => {
        open.delete(path);
        question.answered(answer);
      });
    return question;
  }

  return (path) => (open.get(path) ?? begin(path)).answer();
}

class OpenQuestion {
  readonly #parts: QuestionParts;
  readonly #path: AbsolutePath;
  /** Nobody who has gone is kept: the question may be open for ever. */
  readonly #waiting = new Map<(answer: Answer) => void, Cancel>();
  #isBegun = false;

  constructor(parts: QuestionParts, path: AbsolutePath) {
    this.#parts = parts;
    this.#path = path;
  }

  answer(): Promise<Answer> {
    return new Promise((resolve) => this.#wait(resolve));
  }

  begun(): void {
    this.#isBegun = true;
    for (const [resolve, cancel] of [...this.#waiting]) {
      cancel();
      this.#wait(resolve);
    }
  }

  answered(answer: Answer): void {
    const isKilled = !answer.ok && answer.failure.code === 'deadline-passed' && this.#isBegun;
    for (const [resolve, cancel] of this.#waiting) {
      cancel();
      resolve(isKilled ? SILENT : answer);
    }
  }

  #wait(resolve: (answer: Answer) => void): void {
    const { clock, deadlineMs, turnMs } = this.#parts;
    const [endMs, atEnd] = this.#isBegun ? [deadlineMs, SILENT] : [turnMs, noTurn(this.#path)];
    const cancel = clock.timer(endMs, () => {
      this.#waiting.delete(resolve);
      resolve(atEnd);
    });
    this.#waiting.set(resolve, cancel);
  }
}

function noTurn(path: AbsolutePath): Answer {
  const message = `nobody could look at ${path}: too many file systems do not answer`;
  return fail({ code: 'deadline-passed', message, effect: 'none', blocker: path, isUnasked: true });
}
