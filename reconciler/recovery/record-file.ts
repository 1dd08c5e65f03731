/**
 * How records lie on the disk: two slots of equal size in one file, written in turn, so that one is always whole. Pure.
 *
 * Both slots are written bytes from the beginning, so the next record needs no room that is not there already: what
 * must be written down before something is undone can be written on a full disk. The larger slot size is bought with
 * a file in its place, while there is room.
 *
 * A slot is `mooring-record 2 <sequence> <slot bytes> <sha256 of all three>`, the body in one line, and line feeds.
 * Version 1, of 0.1, is a file of `mooring-record 1 <sha256 of the body>` and the body.
 */
import { fail, ok, type Result } from '../../mount/failure.ts';
import { sha256Hex } from '../../plugins/layout/layout.ts';

const SLOT_UNIT_BYTES = 4_096;
const NAME = 'mooring-record';
const BLANK = 0x0a;

/** What has to be known of a file to write its next record. */
export interface Slots {
  readonly slotBytes: number;
  readonly newest: 0 | 1;
  readonly sequence: number;
}

export interface FoundRecord {
  readonly body: string;
  /** Undefined: a file of version 1, which has one place only. */
  readonly slots: Slots | undefined;
  /** The other slot is neither blank nor whole: a write was cut short, or a later record was damaged. */
  readonly isDoubtful: boolean;
}

/**
 * For a body of so many bytes and for what it grows by while its volume is taken down: words of drivers, a quarantine,
 * places found on the disk.
 */
export function slotBytesFor(bodyBytes: number): number {
  return unitsOf(bodyBytes + HEADER_BYTES_MAX + 1_024 + Math.ceil(bodyBytes / 2));
}

export function fits(bodyBytes: number, slotBytes: number): boolean {
  return bodyBytes + HEADER_BYTES_MAX <= slotBytes;
}

/** The name, a version, two numbers of at most 16 digits, the hash and the ends of two lines. */
const HEADER_BYTES_MAX = 128;

function unitsOf(bytes: number): number {
  return Math.ceil(bytes / SLOT_UNIT_BYTES) * SLOT_UNIT_BYTES;
}

/** A whole file: the body in its first slot, the second blank. */
export function formatFile(body: string, { slotBytes, sequence }: Omit<Slots, 'newest'>): Uint8Array {
  const file = new Uint8Array(2 * slotBytes).fill(BLANK);
  file.set(formatSlot(body, { slotBytes, sequence }));
  return file;
}

/** All bytes of one slot. The body must fit. */
export function formatSlot(body: string, { slotBytes, sequence }: Omit<Slots, 'newest'>): Uint8Array {
  const slot = new Uint8Array(slotBytes).fill(BLANK);
  slot.set(Buffer.from(`${NAME} 2 ${sequence} ${slotBytes} ${sumOf(sequence, slotBytes, body)}\n${body}\n`));
  return slot;
}

function sumOf(sequence: number, slotBytes: number, body: string): string {
  return sha256Hex(`${sequence} ${slotBytes}\n${body}`);
}

/** Total: any bytes in; the newest record that was written whole, or the reason why there is none (INV-20). */
export function readRecordFile(content: Uint8Array): Result<FoundRecord> {
  const beginning = Buffer.from(content.subarray(0, 64)).toString('latin1');
  const version = new RegExp(`^${NAME} (\\S{1,16}) `).exec(beginning)?.[1];
  if (version === '1') return readFirstVersion(Buffer.from(content).toString('utf8'));
  if (version !== undefined && version !== '2')
    return unreadable(`record version ${version}; this build reads 1 and 2`);
  const slotBytes = content.length / 2;
  const found = [content.subarray(0, slotBytes), content.subarray(slotBytes)].map((slot) =>
    readSlot(slot, slotBytes),
  );
  const [first, second] = found;
  if (first?.kind !== 'whole' && second?.kind !== 'whole') return unreadable('not a record, or cut short');
  const newest =
    second?.kind !== 'whole' || (first?.kind === 'whole' && first.sequence > second.sequence) ? 0 : 1;
  const record = found[newest];
  const other = found[1 - newest];
  if (record?.kind !== 'whole') return unreadable('not a record, or cut short');
  const slots = { slotBytes, newest, sequence: record.sequence } as const;
  return ok({ body: record.body, slots, isDoubtful: other?.kind === 'torn' });
}

type Slot = { readonly kind: 'blank' | 'torn' } | { readonly kind: 'whole'; body: string; sequence: number };

function readSlot(bytes: Uint8Array, slotBytes: number): Slot {
  if (bytes.every((byte) => byte === BLANK)) return { kind: 'blank' };
  const [header, body] = Buffer.from(bytes).toString('utf8').split('\n', 2);
  const [name, version, ...rest] = header?.split(' ') ?? [];
  const [sequence, size] = rest.map(Number);
  const isWhole =
    name === NAME &&
    version === '2' &&
    rest.length === 3 &&
    body !== undefined &&
    Number.isSafeInteger(sequence) &&
    size === slotBytes &&
    rest[2] === sumOf(sequence ?? 0, slotBytes, body);
  return isWhole ? { kind: 'whole', body, sequence: sequence ?? 0 } : { kind: 'torn' };
}

function readFirstVersion(text: string): Result<FoundRecord> {
  const [header, body, end, ...rest] = text.split('\n');
  const [, , checksum, ...more] = header?.split(' ') ?? [];
  if (body === undefined || end !== '' || rest.length > 0 || more.length > 0)
    return unreadable('not a record, or cut short');
  if (checksum !== sha256Hex(body)) return unreadable('checksum does not match');
  return ok({ body, slots: undefined, isDoubtful: false });
}

function unreadable(message: string): Result<never> {
  return fail({ code: 'record-unreadable', message, effect: 'none' });
}
