/** What is known of the journal between two writes: bodies by their sums alone, so that it stays small. Pure. */
import { type AppendPlace, bodySumOf, type JournalEntry } from './journal-format.ts';
import { type JournalReading, lossBody } from './journal-reading.ts';
import { needOf, roomOf } from './journal-room.ts';

interface Known {
  readonly sum: string;
  readonly bytes: number;
  /** What is on the disk is in doubt, and is not what is meant. */
  readonly isDoubtful: boolean;
}

/** What is known of the files; what a write without an answer made of them is read before it is known again. */
export interface JournalState extends Omit<JournalReading, 'records' | 'damages' | 'losses'> {
  readonly known: Map<string, Known>;
  /** Keys whose record is damaged, and was not written since: each costs a line where the journal is written anew. */
  readonly lost: Set<string>;
  /** What all of this needs, kept as a sum: it is asked for with each write. */
  readonly roomBytes: number;
}

export function stateOf({ records, damages: _, losses, ...reading }: JournalReading): JournalState {
  const known = new Map<string, Known>();
  let roomBytes = 0;
  for (const [key, { body, isDoubtful }] of records) {
    const bytes = Buffer.byteLength(body);
    known.set(key, { sum: bodySumOf(body), bytes, isDoubtful });
    roomBytes += roomOf(bytes);
  }
  for (const message of losses.values()) roomBytes += roomOf(Buffer.byteLength(message));
  return { ...reading, known, lost: new Set(losses.keys()), roomBytes };
}

/** What all records need once these entries are written. What was said of losses may count longer than it is there. */
export function roomWith({ known, roomBytes }: JournalState, entries: readonly JournalEntry[]): number {
  return entries.reduce((sum, { key, body }) => {
    const before = known.get(key);
    const now = body === undefined ? 0 : roomOf(Buffer.byteLength(body));
    return sum + now - (before === undefined ? 0 : roomOf(before.bytes));
  }, roomBytes);
}

/** One that is written only where there is room for what undoing it needs, or that is an undo itself. */
export interface RoomyEntry extends JournalEntry {
  readonly needsRoom: boolean;
}

/** Those that have room in the files as they are, each with all that come before it, beside what undoes something. */
export function fitting<Entry extends RoomyEntry>(
  state: JournalState,
  entries: readonly Entry[],
): readonly Entry[] {
  const sizeBytes = Math.min(...state.sizesBytes);
  const undoing = entries.filter(({ needsRoom }) => !needsRoom);
  let roomBytes = roomWith(state, undoing);
  return entries.filter((entry) => {
    if (!entry.needsRoom) return true;
    const moreBytes = roomWith(state, [entry]) - state.roomBytes;
    const fits = needOf(roomBytes + moreBytes) <= sizeBytes;
    if (fits) roomBytes += moreBytes;
    return fits;
  });
}

/** All that is written where the journal is written anew. */
export function entriesOf({ records, losses }: JournalReading, bootId: string): readonly JournalEntry[] {
  const lost = [...losses].map(([key, message]) => {
    return { key, body: lossBody(bootId, message), isDoubtful: false, isLoss: true };
  });
  return [...[...records].map(([key, record]) => ({ key, ...record })), ...lost];
}

/** Once these entries are on the disk, in an append that ends there. */
export function learnt(
  state: JournalState,
  entries: readonly JournalEntry[],
  endBytes: number,
): JournalState {
  const { known, lost } = state;
  const roomBytes = roomWith(state, entries);
  for (const { key, body } of entries) {
    lost.delete(key);
    if (body === undefined) known.delete(key);
    else known.set(key, { sum: bodySumOf(body), bytes: Buffer.byteLength(body), isDoubtful: false });
  }
  return { ...state, sequence: state.sequence + 1, endBytes, roomBytes };
}

export function placeIn({ epoch, sequence }: JournalState, bootId: string): AppendPlace {
  return { epoch, sequence: sequence + 1, bootId };
}

/** Nothing of it is to be written: that is on the disk already. */
export function isRecorded({ known, lost, isClean }: JournalState, { key, body }: JournalEntry): boolean {
  const before = known.get(key);
  if (body === undefined) return isClean && before === undefined && !lost.has(key);
  return isClean && before?.isDoubtful === false && before.sum === bodySumOf(body);
}
