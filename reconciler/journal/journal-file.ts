/** What one file of the journal holds, piece by piece. Pure, and total: any bytes in. */
import { bodySumOf, JOURNAL_VERSION, NAME, PAGE_BYTES, pagesOf, wordsOf } from './journal-format.ts';

const LINE_FEED = 0x0a;
/** Most of a journal is room: it is passed by the page. */
const BLANK_PAGE = Buffer.alloc(PAGE_BYTES, LINE_FEED);
/** The longest line that is ours; a body is not read as one. */
const LINE_BYTES_MAX = 256;
const BEGINS_OURS = /^(?:save|doubt|erase|lost|end) /;
const KEY = /^[0-9a-f]{64}$/;

export interface FoundEntry {
  readonly kind: 'save' | 'doubt' | 'erase' | 'lost';
  readonly key: string;
  /** Undefined: it is damaged. Empty where the record is erased. */
  readonly body: string | undefined;
}

export interface FoundAppend {
  /** Each entry is found by its index in the append. */
  readonly entries: Map<number, FoundEntry>;
  /** As its end has it; undefined: that is not there. */
  count: number | undefined;
  /** The sum of the id of the boot that it was made in, where its end is there. */
  bootSum: string | undefined;
  /** The next append begins here. */
  endBytes: number;
}

export interface JournalFile {
  /** Its first line, where that is whole. */
  readonly start: { readonly version: string; readonly capacityBytes: number } | undefined;
  /** The highest one that anything of the file is of; undefined: nothing of it can be read. */
  readonly epoch: number | undefined;
  /** Those of that epoch are found by their sequence. */
  readonly appends: ReadonlyMap<number, FoundAppend>;
  readonly sizeBytes: number;
}

export function readJournalFile(content: Uint8Array): JournalFile {
  return new FileReading(content).read();
}

class FileReading {
  readonly #content: Buffer;
  #start: JournalFile['start'];
  #epoch: number | undefined;
  #appends = new Map<number, FoundAppend>();

  constructor(content: Uint8Array) {
    this.#content = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  }

  read(): JournalFile {
    const content = this.#content;
    this.#begin(content.toString('latin1', 0, LINE_BYTES_MAX).split('\n', 1)[0] ?? '');
    for (let at = this.#behindBlanks(0); at < content.length; ) {
      const end = content.indexOf(LINE_FEED, at);
      if (end === -1) break;
      const isShort = end - at <= LINE_BYTES_MAX;
      const line = isShort ? content.toString('latin1', at, end) : '';
      const words = BEGINS_OURS.test(line) ? wordsOf(line) : undefined;
      const taken = words === undefined ? 0 : this.#take(words, end + 1);
      at = this.#behindBlanks(end + 1 + taken);
    }
    const { length: sizeBytes } = content;
    return { start: this.#start, epoch: this.#epoch, appends: this.#appends, sizeBytes };
  }

  /** Most of a file is line feeds: what fills pages up, and whole pages in which nothing was written yet. */
  #behindBlanks(from: number): number {
    const content = this.#content;
    let at = from;
    while (content[at] === LINE_FEED) at += at % PAGE_BYTES === 0 && this.#isBlankPage(at) ? PAGE_BYTES : 1;
    return at;
  }

  #isBlankPage(at: number): boolean {
    const end = at + PAGE_BYTES;
    return end <= this.#content.length && this.#content.compare(BLANK_PAGE, 0, PAGE_BYTES, at, end) === 0;
  }

  /** How many bytes behind the line belong to it. */
  #take(words: readonly string[], behind: number): number {
    const [kind = ''] = words;
    const [epoch, sequence, position, , bytes] = words.slice(1).map(Number);
    if (epoch === undefined || sequence === undefined || position === undefined) return 0;
    // No file has more appends, nor an append more entries, than bytes.
    const isSane = [sequence, position].every(
      (one) => Number.isSafeInteger(one) && one <= this.#content.length,
    );
    if (!isSane || !Number.isSafeInteger(epoch) || !this.#isOf(epoch)) return 0;
    const append = this.#append(sequence);
    if (kind === 'end') {
      append.count ??= position;
      append.bootSum ??= words[4];
      append.endBytes = pagesOf(behind);
      return 0;
    }
    const key = words[4] ?? '';
    if (bytes === undefined || !Number.isSafeInteger(bytes) || !KEY.test(key)) return 0;
    const body = this.#bodyAt(behind, bytes, words[6]);
    const found = { kind: kind as FoundEntry['kind'], key, body };
    if (!append.entries.has(position)) append.entries.set(position, found);
    return body === undefined ? 0 : bytes + 1;
  }

  #begin(line: string): void {
    const [name, version, epoch, capacity] = wordsOf(line) ?? [];
    if (name !== NAME || version === undefined) return;
    this.#start = { version, capacityBytes: Number(capacity) };
    if (version === JOURNAL_VERSION && Number.isSafeInteger(Number(epoch))) this.#isOf(Number(epoch));
  }

  /** What is of an earlier epoch is what was written over. */
  #isOf(epoch: number): boolean {
    if (this.#epoch === undefined || epoch > this.#epoch) {
      this.#epoch = epoch;
      this.#appends = new Map();
    }
    return epoch === this.#epoch;
  }

  #append(sequence: number): FoundAppend {
    const known = this.#appends.get(sequence);
    if (known !== undefined) return known;
    const append: FoundAppend = { entries: new Map(), count: undefined, bootSum: undefined, endBytes: 0 };
    this.#appends.set(sequence, append);
    return append;
  }

  #bodyAt(from: number, bytes: number, sum: string | undefined): string | undefined {
    const body = this.#content.toString('utf8', from, from + bytes);
    return bodySumOf(body) === sum ? body : undefined;
  }
}
