/**
 * How the journal of records lies in its two files, as text. Pure.
 *
 * A file begins with `mooring-journal 1 <epoch> <bytes of the file>`. What follows are appends, whole pages each, and
 * each begins with a line feed, which ends the line of whatever an append that was cut short has left before it:
 * `save|doubt|erase|lost <epoch> <sequence> <index> <key> <bytes of the body> <sum of the body>` with the body in the
 * line below, and at its end `end <epoch> <sequence> <entries> <sum of the boot id>`. Every such line ends with a sum
 * of itself, the first one in every version of the format. The rest is line feeds, or what an earlier epoch left.
 *
 * The append of sequence 0 is all that was recorded when the file was begun, the others follow without a gap. So any
 * one place that is damaged leaves a line that tells of it: an entry is missing that its `end` counts, or an `end`
 * before a later append. A page of an append is never written again in its epoch.
 */
import { sha256Hex } from '../../plugins/layout/layout.ts';

export const JOURNAL_VERSION = '1';
export const PAGE_BYTES = 4_096;
/** What the line of one entry takes at most. */
export const ENTRY_OVERHEAD_BYTES = 256;
export const NAME = 'mooring-journal';
const BLANK = 0x0a;
const SUM_DIGITS = 32;

/** `body` undefined: the record of the key is erased. */
export interface JournalEntry {
  /** 64 hexadecimal digits. */
  readonly key: string;
  /** One line of text. */
  readonly body: string | undefined;
  /** A later record of the key was damaged, and may have said something else. */
  readonly isDoubtful: boolean;
  /** No record: the one that there was is damaged, and the body says in which boot that was found, and how. */
  readonly isLoss?: boolean;
}

/** The key of what was lost where nothing tells whose it was. */
export const ANY_KEY = '0'.repeat(64);

/** It is that append of that epoch. */
export interface AppendPlace {
  readonly epoch: number;
  readonly sequence: number;
  readonly bootId: string;
}

export interface FileBeginning extends Omit<AppendPlace, 'sequence'> {
  readonly capacityBytes: number;
}

/** What an entry takes at most. */
export function entryBytes(bodyBytes: number): number {
  return bodyBytes + ENTRY_OVERHEAD_BYTES;
}

/** One append: whole pages. */
export function formatAppend(entries: readonly JournalEntry[], place: AppendPlace): Uint8Array {
  return paged(`\n${linesOf(entries, place)}`);
}

/** A file without its blank end: its first line, and the append of sequence 0. */
export function formatBeginning(
  entries: readonly JournalEntry[],
  { epoch, capacityBytes, bootId }: FileBeginning,
): Uint8Array {
  const start = lineOf(`${NAME} ${JOURNAL_VERSION} ${epoch} ${capacityBytes}`);
  return paged(start + linesOf(entries, { epoch, sequence: 0, bootId }));
}

/** A whole file of its capacity: every byte of it is written, so that what comes needs no room. */
export function formatJournal(entries: readonly JournalEntry[], beginning: FileBeginning): Uint8Array {
  const file = new Uint8Array(beginning.capacityBytes).fill(BLANK);
  file.set(formatBeginning(entries, beginning));
  return file;
}

export function pagesOf(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES;
}

export function bodySumOf(body: string): string {
  return sha256Hex(body).slice(0, SUM_DIGITS);
}

/** The words of a line whose sum is right. */
export function wordsOf(line: string): readonly string[] | undefined {
  const at = line.lastIndexOf(' ');
  const text = line.slice(0, at);
  return at > 0 && bodySumOf(text) === line.slice(at + 1) ? text.split(' ') : undefined;
}

function linesOf(entries: readonly JournalEntry[], { epoch, sequence, bootId }: AppendPlace): string {
  const lines = entries.map((entry, index) => {
    const { key, body = '' } = entry;
    const bytes = Buffer.byteLength(body);
    const head = `${kindOf(entry)} ${epoch} ${sequence} ${index} ${key} ${bytes} ${bodySumOf(body)}`;
    return `${lineOf(head)}${body}\n`;
  });
  return `${lines.join('')}${lineOf(`end ${epoch} ${sequence} ${entries.length} ${bodySumOf(bootId)}`)}`;
}

function kindOf({ body, isDoubtful, isLoss }: JournalEntry): 'save' | 'doubt' | 'erase' | 'lost' {
  if (body === undefined) return 'erase';
  if (isLoss === true) return 'lost';
  return isDoubtful ? 'doubt' : 'save';
}

function lineOf(text: string): string {
  return `${text} ${bodySumOf(text)}\n`;
}

function paged(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  const pages = Buffer.alloc(pagesOf(bytes.length), BLANK);
  bytes.copy(pages);
  return pages;
}
