/** The journal's files, cut at every byte and with every byte changed: what is lost is told or in doubt (INV-20). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sha256Hex } from '../../../plugins/layout/layout.ts';
import {
  formatAppend,
  formatBeginning,
  formatJournal,
  type JournalEntry,
} from '../../../reconciler/journal/journal-format.ts';
import { FILE_NAMES, type JournalReading, readJournal } from '../../../reconciler/journal/journal-reading.ts';

const BOOT = 'boot-1';
const CAPACITY_BYTES = 24_576;
/** One blank byte in so many is looked at: they are all alike. */
const BLANKS = 61;
const keyOf = (name: string): string => sha256Hex(name);
const save = (name: string, body: string): JournalEntry => ({ key: keyOf(name), body, isDoubtful: false });
const erase = (name: string): JournalEntry => ({ key: keyOf(name), body: undefined, isDoubtful: false });

function written(
  epoch: number,
  live: readonly JournalEntry[],
  appends: readonly (readonly JournalEntry[])[],
): Uint8Array {
  const file = formatJournal(live, { epoch, capacityBytes: CAPACITY_BYTES, bootId: BOOT });
  let at = formatBeginning(live, { epoch, capacityBytes: CAPACITY_BYTES, bootId: BOOT }).length;
  for (const [index, entries] of appends.entries()) {
    const content = formatAppend(entries, { epoch, sequence: index + 1, bootId: BOOT });
    file.set(content, at);
    at += content.length;
  }
  return file;
}

const LIVE = [save('a', '{"a":1}'), save('b', '{"b":1}'), save('c', '{"c":1}')];
const APPENDS = [
  [save('b', '{"b":2}')],
  [save('d', '{"d":1}'), save('a', '{"a":2}'), erase('c')],
  [save('b', '{"b":3}')],
];
const NEWER = written(7, LIVE, APPENDS);
/** Longer ago, and what it says now would be wrong. */
const OLDER = written(6, [save('a', '{"a":0}'), save('z', '{"z":0}')], [[save('c', '{"c":1}'), erase('z')]]);
const TRUTH = new Map([
  [keyOf('a'), '{"a":2}'],
  [keyOf('b'), '{"b":3}'],
  [keyOf('d'), '{"d":1}'],
]);

function read(a: Uint8Array | undefined, b: Uint8Array | undefined): JournalReading {
  const reading = readJournal([a, b], BOOT);
  assert.ok(reading.ok && reading.value !== undefined, JSON.stringify(reading));
  return reading.value;
}

function bodies({ records }: JournalReading): Record<string, string> {
  return Object.fromEntries([...records].map(([key, { body }]) => [key, body]));
}

/** What is believed of a damaged journal: only what is true, or what is in doubt; what is missing is told. */
function judge(reading: JournalReading, where: string): void {
  const isTold = reading.damages.length > 0;
  for (const [key, { body, isDoubtful }] of reading.records)
    assert.ok(isDoubtful || TRUTH.get(key) === body, `${where}: ${body} is believed`);
  for (const [key, body] of TRUTH)
    assert.ok(isTold || reading.records.has(key), `${where}: ${body} is missing, and nobody is told`);
}

/** Every byte that is not blank, and some that are. */
function positions(file: Uint8Array): readonly number[] {
  return [...file.keys()].filter(
    (at) => at % BLANKS === 0 || [at - 1, at, at + 1].some((near) => file[near] !== 0x0a),
  );
}

test('the newer file is read, and of each key the newest entry', () => {
  for (const files of [
    [NEWER, OLDER],
    [OLDER, NEWER],
  ] as const) {
    const [first, second] = files;
    const reading = read(first, second);
    assert.deepEqual(bodies(reading), Object.fromEntries(TRUTH));
    assert.deepEqual([reading.isClean, reading.damages.length, reading.sequence], [true, 0, 3]);
  }
});

test('any byte of the file in use changed loses one entry at most, and that is told or in doubt', () => {
  for (const position of positions(NEWER)) {
    for (const bit of [0x01, 0x20, 0x80]) {
      const damaged = Uint8Array.from(NEWER);
      damaged[position] = (damaged[position] ?? 0) ^ bit;
      const where = `byte ${position} xor ${bit}`;
      const reading = read(damaged, OLDER);
      judge(reading, where);
      const newest = [...TRUTH].filter(([key, body]) => reading.records.get(key)?.body === body);
      assert.ok(newest.length >= TRUTH.size - 1, `${where}: ${JSON.stringify(bodies(reading))}`);
    }
  }
});

test('any byte of the other file changed changes nothing', () => {
  for (let position = 0; position < OLDER.length; position += 7) {
    const damaged = Uint8Array.from(OLDER);
    damaged[position] = (damaged[position] ?? 0) ^ 0x01;
    const reading = read(NEWER, damaged);
    assert.deepEqual(bodies(reading), Object.fromEntries(TRUTH), `byte ${position}`);
    assert.equal(reading.damages.length, 0, `byte ${position}`);
  }
});

test('a file that was cut at any byte is told, and all that it may have had is in doubt', () => {
  for (const length of positions(NEWER)) {
    const reading = read(NEWER.subarray(0, length), OLDER);
    judge(reading, `cut at ${length}`);
    assert.ok(reading.damages.length > 0, `cut at ${length}`);
    assert.ok(
      [...reading.records.values()].every(({ isDoubtful }) => isDoubtful),
      `cut at ${length}`,
    );
  }
});

test('a file that is gone is told, and what the other one says is in doubt', () => {
  const reading = read(undefined, OLDER);
  judge(reading, 'gone');
  assert.equal(reading.damages[0]?.failure.message, 'it is not there');
  judge(read(NEWER, undefined), 'gone, the other one');
});

test('an append that was cut short at any byte is dropped without a word', () => {
  const entries = [save('a', '{"a":3}'), save('e', '{"e":1}'), erase('d')];
  const content = formatAppend(entries, { epoch: 7, sequence: 4, bootId: BOOT });
  const { endBytes } = read(NEWER, OLDER);
  for (let length = 0; length < content.length; length += 1) {
    const file = Uint8Array.from(NEWER);
    file.set(content.subarray(0, length), endBytes);
    const reading = read(file, OLDER);
    assert.equal(reading.damages.length, 0, `cut at ${length}`);
    assert.equal(reading.records.get(keyOf('b'))?.body, '{"b":3}');
    const first = reading.records.get(keyOf('a'));
    assert.ok(first?.body === '{"a":3}' || first?.body === '{"a":2}', `cut at ${length}`);
    if (length === 0 || reading.sequence === 3) continue;
    const isWhole = reading.records.get(keyOf('d')) === undefined && reading.isClean;
    assert.ok(isWhole || !reading.isClean, `cut at ${length}: nothing is appended behind it`);
  }
});

/** What a longer entry left there: no line ends where the page does. */
test('what is appended behind one that was cut short is read, whatever was there before', () => {
  const { endBytes } = read(NEWER, OLDER);
  const remains = Uint8Array.from(NEWER).fill(0x78, endBytes);
  const content = formatAppend([save('e', '{"e":1}')], { epoch: 7, sequence: 4, bootId: BOOT });
  const behind = formatAppend([erase('b')], { epoch: 7, sequence: 5, bootId: BOOT });
  let clean = 0;
  for (let length = 0; length < content.length; length += 1) {
    const file = Uint8Array.from(remains);
    file.set(content.subarray(0, length), endBytes);
    const cut = read(file, OLDER);
    if (!cut.isClean || cut.sequence === 3) continue;
    clean += 1;
    file.set(behind, cut.endBytes);
    const reading = read(file, OLDER);
    assert.deepEqual([reading.damages, reading.sequence], [[], 5], `cut at ${length}`);
    assert.equal(reading.records.has(keyOf('b')), false, `cut at ${length}: what was erased is back`);
  }
  assert.ok(clean > 0);
});

test('a file that was never whole is not in use, and nobody is told', () => {
  const beginning = formatBeginning([...LIVE, save('y', '{}')], {
    epoch: 8,
    capacityBytes: CAPACITY_BYTES,
    bootId: BOOT,
  });
  for (let length = 1; length < beginning.length - 1; length += 1) {
    const file = Uint8Array.from(OLDER);
    file.set(beginning.subarray(0, length));
    const reading = read(NEWER, file);
    if (reading.epoch === 8) continue;
    assert.deepEqual([bodies(reading), reading.damages], [Object.fromEntries(TRUTH), []], `cut at ${length}`);
  }
});

test('a damaged entry is told no more once its key was written again', () => {
  const again = [...APPENDS, [save('a', '{"a":3}')]];
  const file = written(7, LIVE, again);
  const at = Buffer.from(file).indexOf('{"a":2}');
  file[at + 2] = 0x78;
  const reading = read(file, OLDER);
  assert.deepEqual([reading.damages, reading.records.get(keyOf('a'))?.isDoubtful], [[], false]);
  assert.equal(reading.isClean, false, 'it is written anew, without the damage');
});

test('a journal of a newer version is refused', () => {
  const newer = Buffer.from(NEWER);
  const start = 'mooring-journal 2 whatever there may be';
  newer.write(`${start} ${sha256Hex(start).slice(0, 32)}\n`);
  const refused = readJournal([newer, OLDER], BOOT);
  assert.match(refused.ok ? '' : refused.failure.message, /version 2/);
});

const PAGE_BYTES = 4_096;
const SCRIBBLED = new Uint8Array(PAGE_BYTES).fill(0x78);
for (const { what, files } of [
  { what: 'zeros in both files', files: [new Uint8Array(PAGE_BYTES), new Uint8Array(PAGE_BYTES)] },
  { what: 'two empty files', files: [new Uint8Array(0), new Uint8Array(0)] },
  { what: 'a scribbled file alone', files: [undefined, SCRIBBLED] },
] as const) {
  test(`a journal of ${what} has lost all records, and says so`, () => {
    const [first, second] = files;
    const reading = read(first, second);
    assert.equal(reading.records.size, 0);
    const there = FILE_NAMES.filter((_, index) => files[index] !== undefined);
    assert.deepEqual(
      reading.damages.map(({ name, key }) => ({ name, key })),
      there.map((name) => ({ name, key: undefined })),
    );
    assert.deepEqual([reading.losses.size, reading.isClean], [1, false]);
  });
}

test('without files there is no journal, nor where making it was cut short', () => {
  const second = formatJournal([], { epoch: 0, capacityBytes: CAPACITY_BYTES, bootId: BOOT });
  assert.deepEqual(readJournal([undefined, undefined], BOOT), { ok: true, value: undefined });
  assert.deepEqual(readJournal([undefined, second], BOOT), { ok: true, value: undefined });
});

/** With the square of what is damaged it would take longer than any test may. */
test('a large append of which each second line is damaged is read', () => {
  const entries = Array.from({ length: 150_000 }, (_, index) => save(`volume-${index}`, '{}'));
  const capacityBytes = 64 * 1_048_576;
  const file = Buffer.from(formatJournal(entries, { epoch: 7, capacityBytes, bootId: BOOT }));
  // Each second one: what is missing casts doubt on all that is there.
  for (let at = file.indexOf('save 7 0 1 '), index = 1; at !== -1 && index < entries.length; index += 2) {
    file[at] = 0x78;
    at = file.indexOf(`save 7 0 ${index + 2} `, at);
  }
  const unused = formatJournal([], { epoch: 0, capacityBytes: CAPACITY_BYTES, bootId: BOOT });
  const reading = read(file, unused);
  assert.equal(reading.records.size, entries.length / 2);
  assert.ok([...reading.records.values()].slice(0, -1).every(({ isDoubtful }) => isDoubtful));
  assert.ok(reading.damages.length > 0 && reading.damages.length < 100, `${reading.damages.length} damages`);
  // A power cut took its end: what it counts is told by its entries.
  const end = file.indexOf('end 7 0 ');
  file[end] = 0x78;
  assert.equal(read(file, unused).records.size, entries.length / 2);
});

test('any bytes are read or refused', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 300 }),
      fc.uint8Array({ maxLength: 300 }),
      fc.nat(),
      (a, b, at) => {
        readJournal([a, b], BOOT);
        const file = Uint8Array.from(NEWER);
        file.set(a, at % (file.length - a.length));
        const reading = readJournal([file, OLDER], BOOT);
        if (reading.ok && reading.value !== undefined) return;
        assert.fail('one damaged place makes the journal unreadable');
      },
    ),
    { numRuns: 2_000 },
  );
});

test('what is written is read back, whatever is in it', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
  const entry = fc.tuple(name, fc.option(fc.string({ unit: 'binary' }), { nil: undefined }));
  fc.assert(
    fc.property(
      fc.array(fc.uniqueArray(entry, { selector: ([key]) => key, maxLength: 4 }), { maxLength: 3 }),
      (all) => {
        const appends = all.map((entries) =>
          entries.map(([key, text]) => (text === undefined ? erase(key) : save(key, JSON.stringify(text)))),
        );
        const truth = new Map<string, string>();
        for (const { key, body } of appends.flat()) {
          if (body === undefined) truth.delete(key);
          else truth.set(key, body);
        }
        const reading = read(written(2, [], appends), written(1, [], []));
        assert.deepEqual(bodies(reading), Object.fromEntries(truth));
        assert.ok(reading.isClean);
      },
    ),
    { numRuns: 500 },
  );
});
