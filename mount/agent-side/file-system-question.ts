/** One question at a time about one file system, each with an end: no answer is an answer, too. */
import { fail, ok, type Result } from '../failure.ts';
import type { AbsolutePath, Cancel, Clock, FileSystemProbe, Host } from '../host.ts';

export interface QuestionParts {
  readonly clock: Pick<Clock, 'timer'>;
  /** Settles when the broker has answered or ended, which may be never. `onBegin`: a broker has taken it. */
  readonly ask: (path: AbsolutePath, onBegin: () => void) => Promise<Result<FileSystemProbe>>;
  /** As `Host.mountIdOf`. Below a file system that hangs it may never settle either. */
  readonly mountIdOf: Host['mountIdOf'];
  /** What a file system has for its answer. */
  readonly deadlineMs: number;
  /** So long it waits for a broker: each that hangs has one. */
  readonly turnMs: number;
}

type Answer = Result<FileSystemProbe>;

const SILENT: Answer = ok({ kind: 'silent' });
/** Who answers has done so by then: only of others it has to be known which mount they are of. */
const NOTE_MS = 1_000;

/**
 * Who asks while the question is open waits for the same answer, and not longer than for one of its own: a file system
 * that hangs holds one broker, however often it is asked about. Who waits for a broker behind others that hang is not
 * silent: its time begins with its turn. A broker that hangs may do so for ever: what has been mounted in the place
 * since then has a question of its own.
 */
export function createFileSystemQuestion(parts: QuestionParts): Host['probeFileSystem'] {
  const open = new Map<AbsolutePath, OpenQuestion>();

  function begin(path: AbsolutePath): OpenQuestion {
    const question = new OpenQuestion(parts, path);
    open.set(path, question);
    void parts
      .ask(path, () => question.begun())
      .then((answer) => {
        if (open.get(path) === question) open.delete(path);
        question.answered(answer);
      });
    return question;
  }

  async function lookWhetherPast(question: OpenQuestion, path: AbsolutePath): Promise<void> {
    if ((await question.isPast()) && open.get(path) === question) question.handOver(begin(path));
  }

  return (path) => {
    const question = open.get(path) ?? begin(path);
    const answer = question.answer();
    void lookWhetherPast(question, path);
    return answer;
  };
}

class OpenQuestion {
  readonly #parts: QuestionParts;
  readonly #path: AbsolutePath;
  /** Nobody who has gone is kept: the question may be open for ever. */
  readonly #waiting = new Map<(answer: Answer) => void, Cancel>();
  #isBegun = false;
  #isSilent = false;
  /** Undefined: it is not known, or just looked at. */
  #mount: { readonly id: number | undefined } | undefined;
  #cancelNote: Cancel = () => {};

  constructor(parts: QuestionParts, path: AbsolutePath) {
    this.#parts = parts;
    this.#path = path;
  }

  answer(): Promise<Answer> {
    return new Promise((resolve) => this.#wait(resolve));
  }

  begun(): void {
    this.#isBegun = true;
    this.#cancelNote = this.#parts.clock.timer(NOTE_MS, () => void this.#note());
    for (const [resolve, cancel] of [...this.#waiting]) {
      cancel();
      this.#wait(resolve);
    }
  }

  /** Is something else mounted there by now? One look at a time, and none after one that has failed. */
  async isPast(): Promise<boolean> {
    const before = this.#mount;
    if (!this.#isSilent || before === undefined) return false;
    await this.#note();
    return this.#mount !== undefined && this.#mount.id !== before.id;
  }

  /** Who waits is answered by the other one. */
  handOver(other: OpenQuestion): void {
    for (const [resolve, cancel] of this.#waiting) {
      cancel();
      void other.answer().then(resolve);
    }
    this.#waiting.clear();
  }

  async #note(): Promise<void> {
    this.#mount = undefined;
    const seen = await this.#parts.mountIdOf(this.#path);
    if (seen.ok) this.#mount = { id: seen.value };
  }

  answered(answer: Answer): void {
    this.#cancelNote();
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
      this.#isSilent ||= this.#isBegun;
      resolve(atEnd);
    });
    this.#waiting.set(resolve, cancel);
  }
}

function noTurn(path: AbsolutePath): Answer {
  const message = `nobody could look at ${path}: too many file systems do not answer`;
  return fail({ code: 'deadline-passed', message, effect: 'none', blocker: path, isUnasked: true });
}
