/**
 * What the two files of the journal say together: which one is in use, the newest record of each key, and what is
 * damaged. Pure, and total: any bytes in.
 *
 * The one with the higher epoch is in use, unless it was never whole: then nothing was appended to it yet, and the
 * other one says the same. The last append, cut short by a kill or a power cut, was never answered; what is not whole
 * of it is dropped, and what it may be about is in doubt, in case it was damaged. All other damage is told.
 */
import { fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import { type FoundAppend, type FoundEntry, type JournalFile, readJournalFile } from './journal-file.ts';
import { ANY_KEY, bodySumOf, JOURNAL_VERSION, PAGE_BYTES } from './journal-format.ts';

export const FILE_NAMES = ['journal-a', 'journal-b'] as const;
export type FileIndex = 0 | 1;

/** What is said of damages of which nobody knows whose they are, in words. */
const TOLD_MAX = 16;
const LOSS_CHARACTERS_MAX = 1_000;

export interface RecordedBody {
  readonly body: string;
  readonly isDoubtful: boolean;
}

export interface JournalDamage {
  /** What the file is called. */
  readonly name: string;
  /** Undefined: nothing tells whose entry it was. */
  readonly key: string | undefined;
  readonly failure: Failure;
}

export interface JournalReading {
  readonly active: FileIndex;
  readonly epoch: number;
  /** The one of the last append. */
  readonly sequence: number;
  readonly endBytes: number;
  /** The highest one in any of the files: none of these is ever used again. */
  readonly epochMax: number;
  /** What each file has of bytes; 0: it is not there. */
  readonly sizesBytes: readonly [number, number];
  readonly records: ReadonlyMap<string, RecordedBody>;
  readonly damages: readonly JournalDamage[];
  /**
   * The same by key, in words: to be written down where the journal is written anew, so that it is told in each life of
   * this boot until the key is written again. A reboot ends it, because nothing that stood then does.
   */
  readonly losses: ReadonlyMap<string, string>;
  /** More can be appended to it. Else it is written anew, into the other file, before anything else is. */
  readonly isClean: boolean;
}

type Contents = readonly [Uint8Array | undefined, Uint8Array | undefined];

/** Undefined: there is no journal. A failure: there is one, and it is not for this build to touch. */
export function readJournal(contents: Contents, bootId: string): Result<JournalReading | undefined> {
  const [a, b] = contents.map((one) => (one === undefined ? undefined : readJournalFile(one)));
  // A file of epoch 0 was never in use: it is made first, and goes last.
  if ((a === undefined || b === undefined) && (a ?? b)?.epoch === 0) return ok(undefined);
  if (a === undefined && b === undefined) return ok(undefined);
  const files: readonly [JournalFile | undefined, JournalFile | undefined] = [a, b];
  for (const [index, file] of files.entries()) {
    const version = file?.start?.version ?? JOURNAL_VERSION;
    if (version !== JOURNAL_VERSION)
      return unreadable(`${FILE_NAMES[index]} is of version ${version}; this build reads ${JOURNAL_VERSION}`);
  }
  const active = activeOf(files);
  return ok(active === undefined ? allLost(files) : new Reading(files, active, bodySumOf(bootId)).read());
}

/** Nothing can be read of what is there: as if each record had a file of its own, and all of them were damaged. */
function allLost(files: readonly (JournalFile | undefined)[]): JournalReading {
  const there = ([0, 1] as const).filter((index) => files[index] !== undefined);
  const message = 'nothing of it can be read';
  return {
    ...{ active: there[0] ?? 0, epoch: 0, sequence: 0, endBytes: 0 },
    epochMax: Math.max(0, ...files.map((file) => file?.epoch ?? 0)),
    sizesBytes: [files[0]?.sizeBytes ?? 0, files[1]?.sizeBytes ?? 0],
    records: new Map(),
    damages: there.map((index) => damageIn(index, undefined, message)),
    losses: new Map([[ANY_KEY, message]]),
    isClean: false,
  };
}

function damageIn(index: FileIndex, key: string | undefined, message: string): JournalDamage {
  return { name: FILE_NAMES[index], key, failure: { code: 'record-unreadable', message, effect: 'none' } };
}

function activeOf([a, b]: readonly [JournalFile | undefined, JournalFile | undefined]):
  | FileIndex
  | undefined {
  const epochs = [a?.epoch ?? -1, b?.epoch ?? -1] as const;
  const newer = epochs[1] > epochs[0] ? 1 : 0;
  if (epochs[newer] < 1) return undefined;
  const [file, other] = newer === 0 ? [a, epochs[1]] : [b, epochs[0]];
  const wasBegun = file !== undefined && (isWhole(file.appends.get(0)) || wasAppendedTo(file));
  // Beside epoch 1 the other one has nothing: the first file is put there whole.
  return wasBegun || other < 1 ? newer : newer === 0 ? 1 : 0;
}

function wasAppendedTo({ appends }: JournalFile): boolean {
  return [...appends.keys()].some((sequence) => sequence > 0);
}

function isWhole(append: FoundAppend | undefined): boolean {
  if (append?.count === undefined) return false;
  for (let index = 0; index < append.count; index += 1)
    if (append.entries.get(index)?.body === undefined) return false;
  return true;
}

/** `at`: its place among all entries that were read. */
interface Found {
  readonly body: string;
  readonly isDoubtful: boolean;
  readonly at: number;
}

class Reading {
  readonly #files: readonly [JournalFile | undefined, JournalFile | undefined];
  readonly #active: FileIndex;
  readonly #found = new Map<string, Found>();
  readonly #lost = new Map<string, string>();
  /** Nothing tells whose they are. */
  readonly #anyLost: JournalDamage[] = [];
  #untold = 0;
  readonly #bootSum: string;
  #isClean = true;
  #entries = 0;
  /** What was found before that one is in doubt. */
  #doubtedBefore = 0;

  constructor(
    files: readonly [JournalFile | undefined, JournalFile | undefined],
    active: FileIndex,
    bootSum: string,
  ) {
    this.#bootSum = bootSum;
    this.#files = files;
    this.#active = active;
  }

  read(): JournalReading {
    const [a, b] = this.#files;
    const file = this.#files[this.#active];
    const epoch = file?.epoch ?? 0;
    const appends = file?.appends ?? new Map<number, FoundAppend>();
    const last = largest(appends.keys());
    for (let sequence = 0; sequence <= last; sequence += 1)
      this.#apply(sequence, appends.get(sequence), sequence === last);
    for (const [index, one] of this.#files.entries()) this.#judgeSize(index as FileIndex, one);
    const epochMax = Math.max(a?.epoch ?? 0, b?.epoch ?? 0);
    return {
      ...{ active: this.#active, epoch, epochMax, sequence: last },
      endBytes: appends.get(last)?.endBytes ?? 0,
      sizesBytes: [a?.sizeBytes ?? 0, b?.sizeBytes ?? 0],
      records: this.#records(),
      ...this.#told(),
      isClean: this.#isClean && epoch === epochMax,
    };
  }

  #records(): ReadonlyMap<string, RecordedBody> {
    const records = new Map<string, RecordedBody>();
    for (const [key, { body, isDoubtful, at }] of this.#found)
      records.set(key, { body, isDoubtful: isDoubtful || at < this.#doubtedBefore });
    return records;
  }

  #told(): Pick<JournalReading, 'damages' | 'losses'> {
    const damages = [...this.#anyLost];
    if (this.#untold > 0) damages.push(this.#damage(undefined, `${this.#untold} more places are damaged`));
    const words = damages.map(({ failure }) => failure.message).join('; ');
    const losses = new Map(this.#lost);
    if (damages.length > 0) losses.set(ANY_KEY, words.slice(0, LOSS_CHARACTERS_MAX));
    for (const [key, message] of this.#lost) damages.push(this.#damage(key, message));
    return { damages, losses };
  }

  #apply(sequence: number, append: FoundAppend | undefined, isLast: boolean): void {
    if (append === undefined) return this.#loseAny(`append ${sequence} is not there`);
    const count = append.count ?? largest(append.entries.keys()) + 1;
    // A process that was killed in the middle of it has written no end, and only a power cut any other part of it.
    const wasAnswered = !isLast || append.bootSum === this.#bootSum;
    for (let index = 0; index < count; index += 1) {
      this.#entries += 1;
      const entry = append.entries.get(index);
      if (entry !== undefined) this.#applyEntry(entry, wasAnswered);
      else if (wasAnswered) this.#loseAny(`entry ${index} of append ${sequence} is damaged`);
      else this.#doubtAll();
    }
    if (append.count !== undefined) return;
    if (wasAnswered) this.#loseAny(`the end of append ${sequence} is not there`);
    else this.#doubtAll();
  }

  #applyEntry({ kind, key, body }: FoundEntry, wasAnswered: boolean): void {
    if (body === undefined) {
      this.#isClean = false;
      this.#doubt(key);
      if (!wasAnswered) return;
      if (key === ANY_KEY) this.#loseAny('what was said of an earlier loss is damaged');
      else this.#lost.set(key, `the record of ${key} is damaged`);
      return;
    }
    if (kind === 'lost') return this.#loseAgain(key, body);
    this.#lost.delete(key);
    if (kind === 'erase') this.#found.delete(key);
    else this.#found.set(key, { body, isDoubtful: kind === 'doubt', at: this.#entries });
  }

  /** What was found earlier in this boot. */
  #loseAgain(key: string, body: string): void {
    const [bootSum, message] = lossIn(body);
    if (bootSum !== this.#bootSum) return;
    if (key === ANY_KEY) this.#anyLost.push(this.#damage(undefined, message));
    else this.#lost.set(key, message);
  }

  /** A file that was cut, or is gone, may have been the one in use. */
  #judgeSize(index: FileIndex, file: JournalFile | undefined): void {
    const { sizeBytes = 0, start } = file ?? {};
    const isRight =
      start === undefined ? sizeBytes > 0 && sizeBytes % PAGE_BYTES === 0 : start.capacityBytes === sizeBytes;
    if (isRight) return;
    this.#doubtAll();
    const message = file === undefined ? 'it is not there' : `it has ${sizeBytes} bytes, and had others`;
    this.#anyLost.push(this.#damage(undefined, message, index));
  }

  #loseAny(message: string): void {
    if (this.#anyLost.length < TOLD_MAX) this.#anyLost.push(this.#damage(undefined, message));
    else this.#untold += 1;
    this.#doubtAll();
  }

  #doubtAll(): void {
    this.#isClean = false;
    this.#doubtedBefore = this.#entries + 1;
  }

  #doubt(key: string): void {
    const found = this.#found.get(key);
    if (found !== undefined) this.#found.set(key, { ...found, isDoubtful: true });
  }

  #damage(key: string | undefined, message: string, index = this.#active): JournalDamage {
    return damageIn(index, key, message);
  }
}

/** What is written down of a loss, and read again. */
export function lossBody(bootId: string, message: string): string {
  return `${bodySumOf(bootId)} ${message}`;
}

function lossIn(body: string): readonly [bootSum: string, message: string] {
  const at = body.indexOf(' ');
  return [body.slice(0, at), body.slice(at + 1)];
}

/** 0 where there is none. There are more than a call may have arguments. */
function largest(numbers: Iterable<number>): number {
  let most = 0;
  for (const one of numbers) most = Math.max(most, one);
  return most;
}

function unreadable(message: string): Result<never> {
  return fail({ code: 'record-unreadable', message: `the journal of records: ${message}`, effect: 'none' });
}
