/**
 * Lives of a journal that end at any effect, by a kill or with the power, and writes whose answer nobody heard: what
 * was answered is there, what was erased and answered is not believed again, and nothing is told without need (INV-20).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done } from '../../../mount/failure.ts';
import { parseAbsolutePath } from '../../../mount/host.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { createRecords } from '../../../reconciler/journal/record-forms.ts';
import type { RecordStore } from '../../../reconciler/recovery/record-store.ts';
import { createRandom } from '../../sim/random.ts';
import { createBenchHost } from '../bench-host.ts';
import { actual } from '../world.ts';
import { type Fate, PowerDisk } from './power-disk.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const NAMES = ['a', 'b', 'c', 'd'];
const LIVES = 12;
const WISHES = 30;
const SEEDS = 300;

/** By name: the version that was answered last, and all that was asked for since. Version 0: erased. */
interface Book {
  readonly answered: Map<string, number>;
  readonly asked: Map<string, number[]>;
}

/** Some records have several pages, so that lines of what is written over end anywhere. */
function volumeOf(name: string, version: number) {
  const more = Array.from({ length: version % 3 === 0 ? version % 23 : 0 }, (_, index) => `more-${index}`);
  const pods = Object.fromEntries([`version-${version}`, ...more].map((pod) => [pod, 'present' as const]));
  return actual(name, { staged: 'present', pods });
}

function versionsIn(records: Awaited<ReturnType<RecordStore['load']>>): Map<string, number> {
  assert.ok(records.ok, JSON.stringify(records));
  return new Map(
    records.value.records.map(({ spec, publications }) => {
      const version = publications[0]?.spec.pod.uid.replace('version-', '');
      return [NAMES.find((name) => spec.id === volumeOf(name, 0).spec.id) ?? spec.id, Number(version)];
    }),
  );
}

function check(book: Book, loaded: Awaited<ReturnType<RecordStore['load']>>, where: string): void {
  const found = versionsIn(loaded);
  for (const name of NAMES) {
    const version = found.get(name) ?? 0;
    const right = [book.answered.get(name) ?? 0, ...(book.asked.get(name) ?? [])];
    assert.ok(right.includes(version), `${where}: ${name} is ${version}, not of ${right.join()}`);
    // What is there now is what the next life goes by.
    book.answered.set(name, version);
    book.asked.set(name, []);
  }
}

async function live(disk: PowerDisk, book: Book, fate: Fate, where: string): Promise<boolean> {
  let die: () => void = () => {};
  const died = new Promise<'died'>((resolve) => {
    die = () => resolve('died');
  });
  const host = disk.host(fate, die);
  const store = createRecords({
    form: 'journal',
    host,
    layout,
    log: { warn: () => {} },
    journalBytes: 16_384,
  });
  const lifeOf = async (): Promise<'lived'> => {
    const loaded = await store.load();
    if (!loaded.ok) return 'lived';
    assert.deepEqual(loaded.value.unreadable, [], where);
    check(book, loaded, where);
    if (!(await store.takeOver()).ok) return 'lived';
    for (let count = 0; count < WISHES; count += 3)
      await Promise.all(
        Array.from({ length: 1 + Math.floor(fate.next() * 3) }, () => wish(store, book, fate)),
      );
    return 'lived';
  };
  const end = await Promise.race([lifeOf(), died]);
  disk.endLife();
  return end === 'died';
}

let version = 0;

async function wish(store: RecordStore, book: Book, { next }: Fate): Promise<void> {
  const name = NAMES[Math.floor(next() * NAMES.length)] ?? 'a';
  const erases = next() < 0.3;
  // Now and then what is there already.
  if (next() > 0.2) version += 1;
  const mine = erases ? 0 : version;
  book.asked.set(name, [...(book.asked.get(name) ?? []), mine]);
  const saved = erases
    ? await store.erase(volumeOf(name, 0).spec.id)
    : await (next() < 0.5 ? store.save(volumeOf(name, mine)) : store.saveWithRoom(volumeOf(name, mine)));
  if (!saved.ok) return;
  const asked = book.asked.get(name) ?? [];
  const at = asked.lastIndexOf(mine);
  if (at === -1) return;
  book.answered.set(name, mine);
  book.asked.set(name, asked.slice(at + 1));
}

for (const { title, unheard, isSick } of [
  { title: 'whatever effect a life ends at', unheard: 0, isSick: false },
  { title: 'whatever effect a life ends at, and answers are lost', unheard: 0.1, isSick: false },
  { title: 'whatever fails to be written, though it is seen', unheard: 0.1, isSick: true },
]) {
  test(`${title}, what was answered is there in the next one`, async () => {
    let deaths = 0;
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const random = createRandom(seed);
      const next = (): number => random.next();
      const disk = new PowerDisk();
      const book: Book = { answered: new Map(), asked: new Map() };
      for (let life = 0; life < LIVES; life += 1) {
        // Where making it may come to nothing the records stay files, whose erase is not durable: it is made first.
        const isMade = unheard === 0 || life > 0;
        // Many die while it is made.
        const dieAt = isMade ? 1 + random.below(life === 0 ? 4 : 40) : 0;
        const fate = { dieAt, next, unheard: isMade ? unheard : 0, isSick };
        const where = `seed ${seed}, life ${life}`;
        const hasDied = await live(disk, book, fate, where);
        if (hasDied) deaths += 1;
        // What a sick disk has not written no later life can know of: its lives end with the power.
        if (isSick || random.chance(0.4)) disk.cutPower(next);
      }
    }
    assert.ok(deaths > 1_000, `${deaths} deaths`);
  });
}

test('a file that was written anew in vain is written again, and never the other one, which has all', async () => {
  const host = createBenchHost();
  const store = createRecords({
    form: 'journal',
    host,
    layout,
    log: { warn: () => {} },
    journalBytes: 16_384,
  });
  assert.ok((await store.load()).ok && (await store.takeOver()).ok);
  const written: string[] = [];
  const { overwriteFile } = host;
  host.overwriteFile = async (path, at, content) => {
    written.push(`${path.slice(-1)} ${at === 0 ? 'anew' : 'append'}`);
    await overwriteFile(path, at, content);
    const isAnew = written.filter((one) => one.endsWith('anew')).length === 1 && at === 0;
    return isAnew
      ? { ok: false, failure: { code: 'input-output', message: 'sick', effect: 'unknown' } }
      : done;
  };
  for (let count = 1; count <= 20; count += 1) await store.save(volumeOf('a', count));
  const anew = written.filter((one) => one.endsWith('anew'));
  assert.ok(anew.length >= 2, written.join());
  assert.equal(anew[1], anew[0], written.join());
});
