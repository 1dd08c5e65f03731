/** One file operation of a record at a time; of several that wait, the last text wins and all share its result. */
import type { Result } from '../../mount/failure.ts';
import type { Written } from './record-disk.ts';

/** Text, or undefined where the record is to be erased. */
type WantedText = string | undefined;

/** Those who came while another operation was running. */
interface Waiting {
  text: WantedText;
  readonly promise: Promise<Result<Written>>;
  readonly resolve: (result: Result<Written>) => void;
}

interface Turn {
  waiting: Waiting | undefined;
}

export class RecordTurns {
  readonly #write: (name: string, text: WantedText) => Promise<Result<Written>>;
  /** Each file has its turn by its name. */
  readonly #turns = new Map<string, Turn>();

  constructor(write: (name: string, text: WantedText) => Promise<Result<Written>>) {
    this.#write = write;
  }

  /** Settles when this text, or one that came after it, has been written. */
  take(name: string, text: WantedText): Promise<Result<Written>> {
    const turn = this.#turns.get(name);
    if (turn === undefined) {
      const running = this.#write(name, text);
      const first: Turn = { waiting: undefined };
      this.#turns.set(name, first);
      void running.then(() => this.#advance(name, first));
      return running;
    }
    if (turn.waiting === undefined) turn.waiting = waiting(text);
    else turn.waiting.text = text;
    return turn.waiting.promise;
  }

  isTaken(name: string): boolean {
    return this.#turns.has(name);
  }

  #advance(name: string, turn: Turn): void {
    const next = turn.waiting;
    if (next === undefined) {
      this.#turns.delete(name);
      return;
    }
    turn.waiting = undefined;
    void this.#write(name, next.text).then((result) => {
      next.resolve(result);
      this.#advance(name, turn);
    });
  }
}

function waiting(text: WantedText): Waiting {
  let resolve: (result: Result<Written>) => void = () => {};
  const promise = new Promise<Result<Written>>((settle) => {
    resolve = settle;
  });
  return { text, promise, resolve };
}
