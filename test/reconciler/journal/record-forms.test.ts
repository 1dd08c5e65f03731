/** Records in both forms, and from one form to the other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Failure } from '../../../mount/failure.ts';
import { parseAbsolutePath } from '../../../mount/host.ts';
import { createLayout, sha256Hex } from '../../../plugins/layout/layout.ts';
import type { Bytes } from '../../../plugins/volume.ts';
import { createRecords, type RecordForm } from '../../../reconciler/journal/record-forms.ts';
import { recordOf } from '../../../reconciler/recovery/record.ts';
import type { RecordStore } from '../../../reconciler/recovery/record-store.ts';
import { eraseIn, recordStoreContract } from '../../contract/record-store.ts';
import { value } from '../../value.ts';
import { type BenchHost, createBenchHost } from '../bench-host.ts';
import { actual } from '../world.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const SICK: Failure = { code: 'input-output', message: 'sick', effect: 'none' };

function records(host: BenchHost, form: RecordForm, told: string[] = []): RecordStore {
  const say = (event: string): void => void told.push(event);
  return createRecords({ form, host, layout, log: { warn: say }, journalBytes: 16_384 });
}

for (const form of ['files', 'journal'] as const)
  recordStoreContract(form === 'files' ? 'files' : 'a journal', (host) => records(host, form));

const OTHER = { files: 'journal', journal: 'files' } as const;

async function life(host: BenchHost, form: RecordForm, told: string[] = []) {
  const store = records(host, form, told);
  const found = value(await store.load());
  return { store, found, taken: await store.takeOver() };
}

/** What is found by a life that changes nothing. */
async function found(host: BenchHost): Promise<readonly string[]> {
  const { records: all } = value(await records(host, 'journal').load());
  return all.map(({ spec, staged }) => `${spec.id} ${staged}`).sort();
}

const names = (host: BenchHost): readonly string[] =>
  [...host.files.keys()].map((path) => path.slice(path.lastIndexOf('/') + 1)).sort();

for (const form of ['files', 'journal'] as const) {
  test(`the records of ${OTHER[form]} are taken over into ${form}, and nothing of the others is left`, async () => {
    const host = createBenchHost();
    const { store } = await life(host, OTHER[form]);
    const volumes = ['a', 'b', 'c'].map((name) =>
      actual(name, { staged: 'present', pods: { web: 'present' } }),
    );
    for (const volume of volumes) assert.ok((await store.saveWithRoom(volume)).ok);
    const before = await found(host);
    const next = await life(host, form);
    assert.deepEqual([next.found.records.length, next.taken.ok, next.found.unreadable.length], [3, true, 0]);
    assert.deepEqual(await found(host), before);
    const isOther = (name: string): boolean => name.startsWith('journal-') === (form === 'files');
    assert.deepEqual(names(host).filter(isOther), []);
    const [first] = volumes;
    assert.ok(first !== undefined);
    await eraseIn(host, next.store, first.spec.id);
    assert.equal((await found(host)).length, 2);
  });

  test(`where ${form} cannot be made, the records stay where they are, and are written there`, async () => {
    const host = createBenchHost();
    const { store } = await life(host, OTHER[form]);
    assert.ok((await store.saveWithRoom(actual('a', { staged: 'present', pods: { web: 'present' } }))).ok);
    const before = names(host);
    host.failWrites = { code: 'disk-full', message: 'full', effect: 'none' };
    const told: string[] = [];
    const next = await life(host, form, told);
    assert.deepEqual([next.taken.ok, told], [true, ['records stay in the form they have']]);
    assert.ok((await next.store.save(actual('a', { staged: 'unsure' }))).ok);
    assert.deepEqual(names(host), before);
    host.failWrites = undefined;
    assert.deepEqual(
      (await life(host, form)).found.records.map(({ staged }) => staged),
      ['unsure'],
    );
  });

  test(`a takeover into ${form} that ends at any effect loses no record, and brings none back`, async () => {
    for (let effects = 0; ; effects += 1) {
      const host = createBenchHost();
      const { store } = await life(host, OTHER[form]);
      for (const name of ['a', 'b']) await store.saveWithRoom(actual(name, { staged: 'present', pods: {} }));
      const before = await found(host);
      const isOver = dyingAfter(host, effects);
      const dead = records(host, form);
      const started = dead.load().then(() => dead.takeOver());
      await Promise.race([started, isOver.died]);
      isOver.restore();
      assert.deepEqual(await found(host), before, `after ${effects} effects`);
      const next = await life(host, form);
      assert.deepEqual([next.taken.ok, next.found.records.length], [true, 2], `after ${effects} effects`);
      const forms = new Set(names(host).map((name) => (name.startsWith('journal-') ? 'journal' : 'files')));
      assert.deepEqual([...forms], [form], `after ${effects} effects: ${names(host).join(' ')}`);
      assert.ok((await next.store.save(actual('a', { staged: 'unsure' }))).ok);
      const other = await life(host, OTHER[form]);
      assert.deepEqual(other.found.records.map(({ staged }) => staged).sort(), ['present', 'unsure']);
      if (!isOver.hasDied()) return;
    }
  });
}

test('what a takeover that came to nothing has left brings back no volume that is gone since', async () => {
  const host = createBenchHost();
  const { store } = await life(host, 'journal');
  const gone = actual('gone', { staged: 'present', pods: {} });
  for (const volume of [gone, actual('stays', { staged: 'present', pods: {} })])
    await store.saveWithRoom(volume);
  const { writeFile, removeFile } = host;
  host.writeFile = async (path, ...rest) =>
    path.includes('journal') ? { ok: false, failure: SICK } : writeFile(path, ...rest);
  host.removeFile = async () => ({ ok: false, failure: SICK });
  const next = await life(host, 'files');
  assert.deepEqual([next.taken.ok, names(host).length], [true, 4]);
  await eraseIn(host, next.store, gone.spec.id);
  Object.assign(host, { writeFile, removeFile });
  await life(host, 'files');
  assert.deepEqual([names(host).length, (await found(host)).length], [1, 1]);
});

test('two hundred volumes that are set up and taken down together share their durable writes', async () => {
  const host = createBenchHost();
  const { store } = await life(host, 'journal');
  let writes = 0;
  const { writeFile, overwriteFile } = host;
  host.writeFile = (...given) => {
    writes += 1;
    return writeFile(...given);
  };
  host.overwriteFile = (...given) => {
    writes += 1;
    return overwriteFile(...given);
  };
  const volumes = Array.from({ length: 200 }, (_, index) => actual(`disk-${index}`, { staged: 'unsure' }));
  assert.ok((await Promise.all(volumes.map((volume) => store.saveWithRoom(volume)))).every(({ ok }) => ok));
  // Room for all of them in both files, and one append.
  assert.ok(writes <= 3, `${writes} writes to set up`);
  writes = 0;
  await Promise.all(volumes.map((one) => store.save({ ...one, sizeBytes: '1' as Bytes })));
  await eraseIn(host, store, ...volumes.map(({ spec }) => spec.id));
  assert.ok(writes <= 4, `${writes} writes to take down`);
  assert.deepEqual(await found(host), []);
});

test('on a full disk one that needs more room than there is keeps nobody else from climbing', async () => {
  const host = createBenchHost();
  const { store } = await life(host, 'journal');
  host.failWrites = { code: 'disk-full', message: 'full', effect: 'none' };
  const pods = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`pod-${n}`, 'present' as const]));
  const large = actual('large', { staged: 'present', pods });
  const small = actual('small', { staged: 'present', pods: { web: 'present' } });
  const climbs = await Promise.all([large, small].map((one) => store.saveWithRoom(one)));
  assert.deepEqual(
    climbs.map(({ ok }) => ok),
    [false, true],
  );
  assert.deepEqual(await found(host), [`${small.spec.id} present`]);
});

test('an erase waits a moment for another one, and goes at once with a record that is written', async () => {
  const host = createBenchHost();
  const { store } = await life(host, 'journal');
  const volumes = ['a', 'b', 'c', 'd'].map((name) => actual(name, { staged: 'present', pods: {} }));
  await Promise.all(volumes.map((one) => store.saveWithRoom(one)));
  let writes = 0;
  const { overwriteFile } = host;
  host.overwriteFile = (...given) => {
    writes += 1;
    return overwriteFile(...given);
  };
  const [a, b, c, d] = volumes.map(({ spec }) => spec.id);
  assert.ok(a && b && c && d);
  const first = store.erase(a);
  await host.advance(30);
  const second = store.erase(b);
  await host.advance(30);
  assert.ok((await first).ok && (await second).ok);
  assert.equal(writes, 1);
  const third = store.erase(c);
  await host.advance(30);
  assert.ok((await store.save(actual('d', { staged: 'unsure' }))).ok && (await third).ok);
  assert.equal(writes, 2);
  assert.deepEqual(await found(host), [`${d} unsure`]);
});

test('records of 0.1 are taken over into the journal', async () => {
  const host = createBenchHost();
  const volume = actual('data', { staged: 'present', pods: { web: 'present' } });
  const body = JSON.stringify(recordOf(volume, 'boot-1'));
  host.files.set(
    `${layout.records}/${sha256Hex(volume.spec.id)}.json`,
    `mooring-record 1 ${sha256Hex(body)}\n${body}\n`,
  );
  assert.equal((await life(host, 'journal')).found.records.length, 1);
  assert.deepEqual(names(host), ['journal-a', 'journal-b']);
  assert.deepEqual((await found(host)).length, 1);
});

test('a damaged file is told until its volume is known, and is never taken for something newer', async () => {
  const host = createBenchHost();
  const { store } = await life(host, 'files');
  const volume = actual('data', { staged: 'present', pods: {} });
  await store.save(volume);
  const [path = ''] = host.files.keys();
  host.files.set(path, 'scribbled');
  assert.equal((await life(host, 'journal')).found.unreadable.length, 1);
  const next = await life(host, 'journal');
  assert.equal(next.found.unreadable.length, 1);
  assert.ok((await next.store.save(volume)).ok);
  assert.equal((await life(host, 'journal')).found.unreadable.length, 0);
});

for (const before of ['files', 'journal'] as const)
  test(`what a power cut left of ${before}, and could not be removed at the start, goes in that life`, async () => {
    const host = createBenchHost();
    const { store } = await life(host, before);
    assert.ok((await store.save(actual('data', { staged: 'present', pods: {} }))).ok);
    host.files.set(`${layout.records}/.${sha256Hex('gone')}.json.tmp`, 'cut short');
    host.failRemovals = SICK;
    const next = records(host, 'journal');
    value(await next.load());
    host.failRemovals = undefined;
    value(await next.takeOver());
    next.sweep();
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(names(host), ['journal-a', 'journal-b']);
  });

test('a file of before that cannot be removed beside the journal keeps no agent from starting', async () => {
  const host = createBenchHost();
  const { store } = await life(host, 'files');
  const volume = actual('data', { staged: 'present', pods: {} });
  assert.ok((await store.save(volume)).ok);
  const told: string[] = [];
  host.failRemovals = SICK;
  for (const _ of ['it is taken over', 'it was taken over']) {
    const { taken, store: now } = await life(host, 'journal', told);
    assert.ok(taken.ok);
    assert.ok((await now.save(actual('data', { staged: 'unsure' }))).ok);
  }
  assert.deepEqual(told, ['records of before not removed', 'records of before not removed']);
  assert.deepEqual(await found(host), [`${volume.spec.id} unsure`], 'what it says is not believed');
  // It must not stand there when the journal goes.
  const back = await life(host, 'files', told);
  assert.deepEqual([back.taken.ok, told.at(-1)], [true, 'records stay in the form they have']);
  host.failRemovals = undefined;
  await life(host, 'journal', told);
  assert.deepEqual(names(host), ['journal-a', 'journal-b']);
});

for (const slot of [0, 1])
  test(`INV-32: files: a quarantine is not lost with slot ${slot} of its record`, async () => {
    const host = createBenchHost();
    const { store } = await life(host, 'files');
    const volume = actual('data', { staged: 'present', pods: { web: 'present' } });
    assert.ok((await store.saveWithRoom(volume)).ok);
    const quarantine = { reason: 'operator', sinceWallMs: 1, devices: [], verified: false } as const;
    assert.ok((await store.save({ ...volume, quarantine })).ok);
    const [path = '', content = ''] = [...host.files].find(([name]) => name.endsWith('.json')) ?? [];
    const half = content.length / 2;
    const slots = [content.slice(0, half), content.slice(half)];
    slots[slot] = 'x'.repeat(half);
    host.files.set(path, slots.join(''));
    const [record] = (await life(host, 'files')).found.records;
    assert.equal(record?.quarantine?.reason, 'operator');
  });

test('a journal that is removed in life is told at each write, until it is back or the agent starts anew', async () => {
  const host = createBenchHost();
  const { store } = await life(host, 'journal');
  const volume = actual('data', { staged: 'present', pods: {} });
  assert.ok((await store.save(volume)).ok);
  const before = new Map(host.files);
  const remove = (): void => {
    for (const path of before.keys()) host.files.delete(path);
  };
  host.files.set(`${layout.records}/other`, '');
  const save = async () => {
    const saved = await store.save(actual('data', { staged: 'unsure' }));
    return saved.ok ? 'saved' : `${saved.failure.code}: ${saved.failure.message}`;
  };
  remove();
  await save();
  assert.equal(await save(), 'record-write: the journal of records is not there');
  for (const [path, content] of before) host.files.set(path, content);
  assert.equal(await save(), 'saved');
  remove();
  const next = await life(host, 'journal');
  assert.deepEqual(
    [next.taken.ok, next.found.records, names(host)],
    [true, [], ['journal-a', 'journal-b', 'other']],
  );
});

test('while a file cannot be read nothing is taken over', async () => {
  const host = createBenchHost();
  await (await life(host, 'files')).store.save(actual('data', { staged: 'present', pods: {} }));
  const before = names(host);
  const { readDirectoryFiles } = host;
  host.readDirectoryFiles = async (path, reading) => {
    const files = value(await readDirectoryFiles(path, reading));
    return { ok: true, value: files.map((file) => ({ ...file, content: { ok: false, failure: SICK } })) };
  };
  const told: string[] = [];
  const { taken } = await life(host, 'journal', told);
  assert.deepEqual([taken.ok, told, names(host)], [true, ['records stay in the form they have'], before]);
});

test('a journal that the disk does not let anybody read stays as it is, and nothing is started', async () => {
  const host = createBenchHost();
  await (await life(host, 'journal')).store.save(actual('data', { staged: 'present', pods: {} }));
  const before = new Map(host.files);
  host.readFile = async () => ({ ok: false, failure: SICK });
  for (const form of ['journal', 'files'] as const)
    assert.equal((await records(host, form).load()).ok, false);
  assert.deepEqual(new Map(host.files), before);
});

/** Each of the effects of a takeover happens, or is the one at which the process ended. */
function dyingAfter(host: BenchHost, effects: number) {
  const { writeFile, overwriteFile, removeFile, synchronise } = host;
  let left = effects;
  let die: () => void = () => {};
  const died = new Promise<void>((resolve) => {
    die = resolve;
  });
  let hasDied = false;
  const guarded = <Given extends readonly unknown[], T>(effect: (...given: Given) => Promise<T>) => {
    return (...given: Given): Promise<T> => {
      left -= 1;
      if (left >= 0) return effect(...given);
      hasDied = true;
      die();
      return new Promise<T>(() => {});
    };
  };
  Object.assign(host, {
    writeFile: guarded(writeFile),
    overwriteFile: guarded(overwriteFile),
    removeFile: guarded(removeFile),
    synchronise: guarded(synchronise),
  });
  const restore = (): void => void Object.assign(host, { writeFile, overwriteFile, removeFile, synchronise });
  return { died, restore, hasDied: () => hasDied };
}
