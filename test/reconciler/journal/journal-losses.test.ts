/**
 * What a damaged place of the journal took is told in every life of its boot, as a damaged file of its own is: nobody
 * may take a node for known because the journal was written anew since (INV-20).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAbsolutePath } from '../../../mount/host.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { keyOf } from '../../../reconciler/journal/journal-store.ts';
import { createRecords, type RecordForm } from '../../../reconciler/journal/record-forms.ts';
import type { RecordStore } from '../../../reconciler/recovery/record-store.ts';
import { eraseIn } from '../../contract/record-store.ts';
import { value } from '../../value.ts';
import { type BenchHost, createBenchHost } from '../bench-host.ts';
import { actual } from '../world.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const lost = actual('lost', { staged: 'present', pods: { web: 'present' } });
const other = actual('other', { staged: 'present', pods: {} });
const LOST_FILE = `${keyOf(lost.spec.id)}.json`;

interface LifeOfRecords {
  readonly store: RecordStore;
  /** What is told as unreadable at its start, and what is found. */
  readonly told: readonly string[];
  readonly found: readonly string[];
}

async function life(host: BenchHost, form: RecordForm = 'journal'): Promise<LifeOfRecords> {
  const store = createRecords({
    form,
    host,
    layout,
    log: { warn: () => {} },
    journalBytes: 16_384,
  });
  const { unreadable, records } = value(await store.load());
  assert.ok((await store.takeOver()).ok);
  return { store, told: unreadable.map(({ file }) => file), found: records.map(({ spec }) => spec.id) };
}

/** A node on which one record is damaged: its line, or what is in it. */
async function damaged(what: RegExp): Promise<BenchHost> {
  const host = createBenchHost();
  const { store } = await life(host);
  for (const volume of [other, lost]) assert.ok((await store.saveWithRoom(volume)).ok);
  const [path, text] = [...host.files].find(([, content]) => what.test(content)) ?? ['', ''];
  host.files.set(
    path,
    text.replace(what, (found) => `${found.slice(0, -1)}#`),
  );
  return host;
}

const BODY = new RegExp(`save [^\\n]* ${keyOf(lost.spec.id)} [^\\n]*\\n.*`);
const LINE = new RegExp(`save [^\\n]* ${keyOf(lost.spec.id)} [^\\n]*`);

for (const { what, where, file } of [
  { what: 'the record itself', where: BODY, file: LOST_FILE },
  { what: 'the line that says whose it is', where: LINE, file: /^journal-/ },
]) {
  const isTold = ({ told }: LifeOfRecords): boolean =>
    told.length === 1 && (typeof file === 'string' ? told[0] === file : file.test(told[0] ?? ''));

  test(`where ${what} is damaged, each life of the boot is told of it, and the next boot is not`, async () => {
    const host = await damaged(where);
    for (let count = 0; count < 4; count += 1) {
      const now = await life(host);
      assert.ok(isTold(now), `life ${count}: ${JSON.stringify(now.told)}`);
      assert.deepEqual(now.found, [other.spec.id]);
      // The journal is written anew without the damage, and goes on.
      const pods = { [`pod-${count}`]: 'present' } as const;
      assert.ok((await now.store.saveWithRoom({ ...other, ...actual('other', { pods }) })).ok);
    }
    Object.assign(host, { bootId: 'boot-2' });
    assert.deepEqual((await life(host)).told, []);
  });

  test(`where ${what} is damaged, going to files keeps it told to the end of the boot, and then goes on`, async () => {
    const host = await damaged(where);
    for (let count = 0; count < 3; count += 1) {
      const now = await life(host, 'files');
      assert.ok(isTold(now), `life ${count}: ${JSON.stringify(now.told)}`);
      const pods = { [`pod-${count}`]: 'present' } as const;
      assert.ok((await now.store.saveWithRoom({ ...other, ...actual('other', { pods }) })).ok);
    }
    Object.assign(host, { bootId: 'boot-2' });
    for (const _ of ['taken over', 'found']) {
      const { told, found } = await life(host, 'files');
      assert.deepEqual([told, found], [[], [other.spec.id]]);
    }
    assert.ok([...host.files.keys()].every((path) => path.endsWith('.json')));
  });
}

for (const end of ['saved', 'erased'] as const) {
  test(`a damaged record is told no more once its volume was ${end}`, async () => {
    const host = await damaged(BODY);
    const first = await life(host);
    assert.ok((await first.store.save(actual('other', { staged: 'unsure' }))).ok);
    const { store, told } = await life(host);
    assert.deepEqual(told, [LOST_FILE]);
    if (end === 'saved') assert.ok((await store.save(lost)).ok);
    else await eraseIn(host, store, lost.spec.id);
    const next = await life(host);
    assert.deepEqual([next.told, next.found.length], [[], end === 'saved' ? 2 : 1]);
  });
}

/** As a file system leaves files whose blocks were never written, or somebody who wrote over all that there is. */
for (const [what, spoilt] of [
  ['cut to nothing', ''],
  ['written over', 'x'.repeat(16_384)],
] as const) {
  test(`a journal whose files are both ${what} is told as lost for its boot, and kept anew`, async () => {
    const host = createBenchHost();
    const first = await life(host);
    for (const volume of [other, lost]) assert.ok((await first.store.saveWithRoom(volume)).ok);
    for (const path of host.files.keys()) host.files.set(path, spoilt);
    const second = await life(host);
    assert.deepEqual([second.told, second.found], [['journal-a', 'journal-b'], []]);
    assert.ok((await second.store.saveWithRoom(other)).ok);
    const third = await life(host);
    assert.ok(third.told.length > 0, 'it is not forgotten');
    assert.deepEqual(third.found, [other.spec.id]);
    assert.ok((await third.store.saveWithRoom(lost)).ok);
    Object.assign(host, { bootId: 'boot-2' });
    const rebooted = await life(host);
    assert.deepEqual([rebooted.told, rebooted.found.length], [[], 2]);
  });
}
