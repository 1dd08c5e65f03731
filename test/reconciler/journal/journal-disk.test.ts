/** How the two files of the journal are written: epochs, and room. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FIRM_GROUND } from '../../../mount/ground.ts';
import { type AbsolutePath, below, parseAbsolutePath } from '../../../mount/host.ts';
import { sha256Hex } from '../../../plugins/layout/layout.ts';
import { JournalDisk } from '../../../reconciler/journal/journal-disk.ts';
import {
  formatBeginning,
  formatJournal,
  type JournalEntry,
} from '../../../reconciler/journal/journal-format.ts';
import { FILE_NAMES } from '../../../reconciler/journal/journal-reading.ts';
import { type JournalState, learnt, roomWith, stateOf } from '../../../reconciler/journal/journal-state.ts';
import { value } from '../../value.ts';
import { type BenchHost, createBenchHost } from '../bench-host.ts';

const directory = parseAbsolutePath('/state/records');
assert.ok(directory);
const BOOT = 'boot-1';
const CAPACITY_BYTES = 65_536;
const save = (name: string): JournalEntry => {
  return { key: sha256Hex(name), body: `{"name":"${name}"}`, isDoubtful: false };
};

function diskOf(host: BenchHost, at: AbsolutePath): JournalDisk {
  return new JournalDisk({
    host,
    directory: at,
    ground: FIRM_GROUND,
    capacityBytes: CAPACITY_BYTES,
    onDamage: () => {},
  });
}

async function namesIn(host: BenchHost, at: AbsolutePath): Promise<readonly string[]> {
  const reading = value(await diskOf(host, at).read());
  return [...(reading?.records.values() ?? [])].map(({ body }) => JSON.parse(body).name).sort();
}

/**
 * A disk that lost what it had shown: `b` was begun without `d`, of which nothing is left but its end, and the erase of
 * `d` in `a` is gone, too. What the next life writes over it is cut short where that end begins.
 */
test('an epoch is never used again: two that were cut short never look like one that is whole', async () => {
  const host = createBenchHost();
  const [a, b] = FILE_NAMES.map((name) => below(directory, name)) as [AbsolutePath, AbsolutePath];
  const place = { capacityBytes: CAPACITY_BYTES, bootId: BOOT };
  const [first, second, third, fourth] = ['a', 'b', 'c', 'd'].map(save);
  assert.ok(first && second && third && fourth);
  const all = [first, second, third, fourth];
  host.files.set(a, Buffer.from(formatJournal(all, { ...place, epoch: 1 })).toString());
  const without = Buffer.from(formatBeginning([first, second, third], { ...place, epoch: 2 }));
  const cut = without.indexOf('\nsave 2 0 1 ') + 1;
  const file = Buffer.alloc(CAPACITY_BYTES, '\n');
  without.copy(file, cut, cut);
  host.files.set(b, file.toString());
  assert.deepEqual(await namesIn(host, directory), ['a', 'b', 'c', 'd']);

  const { overwriteFile } = host;
  const dead = new Promise<never>(() => {});
  const died = new Promise<void>((die) => {
    host.overwriteFile = async (path, at, content) => {
      await overwriteFile(path, at, content.subarray(0, cut));
      die();
      return dead;
    };
  });
  void diskOf(host, directory).write([save('e')]);
  await died;
  host.overwriteFile = overwriteFile;
  assert.deepEqual(await namesIn(host, directory), ['a', 'b', 'c', 'd']);
});

/** Asked for one key at a time, and never for all of them. */
class OneByOne<Key, Value> extends Map<Key, Value> {
  override [Symbol.iterator](): never {
    throw new Error('all of them are looked at');
  }
  override values(): never {
    throw new Error('all of them are looked at');
  }
}

test('what records need of room is told without a look at all of them, and is what all of them need', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(5), fc.option(fc.nat(900), { nil: undefined }))), (writes) => {
      const records = new Map<string, { readonly body: string; readonly isDoubtful: boolean }>();
      const sizesBytes = [0, 0] as const;
      const place = {
        active: 0,
        epoch: 1,
        epochMax: 1,
        sequence: 0,
        endBytes: 0,
        sizesBytes,
        isClean: true,
      } as const;
      const fresh = (): JournalState => stateOf({ ...place, records, damages: [], losses: new Map() });
      let state: JournalState = { ...fresh(), known: new OneByOne() };
      for (const [name, bytes] of writes) {
        const body = bytes === undefined ? undefined : 'x'.repeat(bytes);
        const entry = { key: `${name}`, body, isDoubtful: false };
        const room = roomWith(state, [entry]);
        state = learnt(state, [entry], 0);
        if (body === undefined) records.delete(entry.key);
        else records.set(entry.key, { body, isDoubtful: false });
        assert.deepEqual([room, state.roomBytes], [fresh().roomBytes, fresh().roomBytes]);
      }
    }),
  );
});
