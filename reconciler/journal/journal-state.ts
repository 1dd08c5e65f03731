/** What is known of the journal between two writes: bodies by their sums alone, so that it stays small. Pure. */
import { type AppendPlace, bodySumOf, type JournalEntry } from './journal-format.ts';
import type { JournalReading } from './journal-reading.ts';

interface Known {
  readonly sum: string;
  readonly bytes: number;
  /** What is on the disk is in doubt, and is not what is meant. */
  readonly isDoubtful: boolean;
}

/** What is known of the files; what a write without an answer made of them is read before it is known again. */
export interface JournalState extends Omit<JournalReading, 'records' | 'damages'> {
  readonly known: Map<string, Known>;
}

export function stateOf({ records, damages: _, ...reading }: JournalReading): JournalState {
  const known = [...records].map(([key, { body, isDoubtful }]) => {
    return [key, { sum: bodySumOf(body), bytes: Buffer.byteLength(body), isDoubtful }] as const;
  });
  return { ...reading, known: new Map(known) };
}

export function bodiesOf({ known }: JournalState): Map<string, number> {
  return new Map([...known].map(([key, { bytes }]) => [key, bytes]));
}

export function placeIn({ epoch, sequence }: JournalState, bootId: string): AppendPlace {
  return { epoch, sequence: sequence + 1, bootId };
}

/** Nothing of it is to be written: that is on the disk already. */
export function isRecorded({ known, isClean }: JournalState, { key, body }: JournalEntry): boolean {
  const before = known.get(key);
  if (body === undefined) return isClean && before === undefined;
  return isClean && before?.isDoubtful === false && before.sum === bodySumOf(body);
}
