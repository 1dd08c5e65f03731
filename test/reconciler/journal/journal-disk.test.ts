/** How the two files of the journal are written: epochs, and room. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AbsolutePath, below, parseAbsolutePath } from '../../../mount/host.ts';
import { sha256Hex } from '../../../plugins/layout/layout.ts';
import { JournalDisk } from '../../../reconciler/journal/journal-disk.ts';
import {
  formatBeginning,
  formatJournal,
  type JournalEntry,
} from '../../../reconciler/journal/journal-format.ts';
import { FILE_NAMES } from '../../../reconciler/journal/journal-reading.ts';
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
  return new JournalDisk({ host, directory: at, capacityBytes: CAPACITY_BYTES, onDamage: () => {} });
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
