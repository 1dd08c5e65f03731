/** What records promise in whatever form they lie on the disk. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fail, type Failure, type Result } from '../../mount/failure.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { LoadedRecords, RecordStore } from '../../reconciler/recovery/record-store.ts';
import { type BenchHost, createBenchHost } from '../reconciler/bench-host.ts';
import { actual, csi } from '../reconciler/world.ts';

const volume = actual('data', { staged: 'present', pods: { web: 'unsure' } });
const FULL: Failure = { code: 'disk-full', message: 'no space left on device', effect: 'none' };
const LOST: Failure = { code: 'broker-lost', message: '', effect: 'unknown' };

/** Longer than an erase waits for others to be written with. */
const ERASE_MS = 50;

/** Once nothing else is to be written with it. */
export async function eraseIn(
  host: BenchHost,
  records: RecordStore,
  ...volumes: readonly VolumeId[]
): Promise<readonly Result<void>[]> {
  const erased = volumes.map((volume) => records.erase(volume));
  await host.advance(ERASE_MS);
  return Promise.all(erased);
}

/** `make`: the records of the next life on this host, and the ones before it have ended. */
export function recordStoreContract(form: string, make: (host: BenchHost) => RecordStore): void {
  const life = async (host: BenchHost): Promise<{ records: RecordStore; found: LoadedRecords }> => {
    const records = make(host);
    const found = await records.load();
    assert.ok(found.ok, JSON.stringify(found));
    const taken = await records.takeOver();
    assert.ok(taken.ok, JSON.stringify(taken));
    return { records, found: found.value };
  };
  const sentence = (title: string, body: (host: BenchHost, records: RecordStore) => Promise<void>): void => {
    test(`records in ${form}: ${title}`, async () => {
      const host = createBenchHost();
      const { records } = await life(host);
      await body(host, records);
    });
  };
  const found = async (host: BenchHost): Promise<LoadedRecords> => (await life(host)).found;

  sentence('what was saved is there in the next life, and what was erased is not', async (host, records) => {
    assert.ok((await records.save(volume)).ok);
    assert.ok((await records.saveWithRoom(actual('other', { staged: 'unsure' }))).ok);
    assert.ok((await eraseIn(host, records, volume.spec.id)).every(({ ok }) => ok));
    const { records: left, unreadable } = await found(host);
    assert.deepEqual(
      left.map(({ spec, staged }) => [spec.id, staged]),
      [[csi('other').id, 'unsure']],
    );
    assert.deepEqual(unreadable, []);
  });
  sentence('the last of several saves wins, and all of them are answered', async (host, records) => {
    const saves = ['a', 'b', 'c', 'd'].map((pod) =>
      records.save(actual('data', { staged: 'present', pods: { [pod]: 'unsure' } })),
    );
    assert.ok((await Promise.all(saves)).every(({ ok }) => ok));
    assert.equal((await found(host)).records[0]?.publications[0]?.spec.pod.uid, 'd');
  });
  sentence(
    'an erase behind a save leaves nothing, a save behind an erase leaves the record',
    async (host, records) => {
      await Promise.all([records.save(volume), eraseIn(host, records, volume.spec.id)]);
      assert.equal((await found(host)).records.length, 0);
      const { records: next } = await life(host);
      await Promise.all([next.erase(volume.spec.id), next.save(volume)]);
      assert.equal((await found(host)).records.length, 1);
    },
  );
  sentence('saving what is there already writes nothing', async (host, records) => {
    await records.save(volume);
    const { records: next } = await life(host);
    host.failWrites = { code: 'input-output', message: 'sick', effect: 'unknown' };
    assert.ok((await next.save(volume)).ok);
  });
  sentence('on a full disk all that stands comes down, and nothing climbs (MT-08)', async (host, records) => {
    const pods = ['a', 'b', 'c'];
    const all = pods.map((pod) => [pod, 'present'] as const);
    const stands = actual('data', { staged: 'present', pods: Object.fromEntries(all) });
    assert.ok((await records.saveWithRoom(stands)).ok);
    host.failWrites = FULL;
    const climbed = await records.saveWithRoom(larger('other'));
    assert.equal(climbed.ok || climbed.failure.code, 'record-write');
    for (let left = pods.length; left >= 0; left -= 1) {
      const staged = left === 0 ? 'unsure' : 'present';
      const kinds = pods.slice(0, left).map((pod) => [pod, 'unsure'] as const);
      assert.ok(
        (await records.save(actual('data', { staged, pods: Object.fromEntries(kinds) }))).ok,
        `${left}`,
      );
      const [record] = (await found(host)).records;
      assert.deepEqual([record?.staged, record?.publications.length], [staged, left]);
    }
    assert.ok((await eraseIn(host, records, volume.spec.id)).every(({ ok }) => ok));
    assert.deepEqual((await found(host)).records, []);
  });
  sentence(
    'on a full disk what comes down is written though something climbs beside it',
    async (host, records) => {
      const stands = actual('data', { staged: 'present', pods: { a: 'present', b: 'present' } });
      assert.ok((await records.saveWithRoom(stands)).ok);
      host.failWrites = FULL;
      const undone = actual('data', { staged: 'present', pods: { a: 'unsure' } });
      // An operation of another pod of the same volume begins in the same moment.
      const [undo, climb] = await Promise.all([records.save(undone), records.saveWithRoom(larger('data'))]);
      assert.deepEqual([undo.ok, climb.ok || climb.failure.code], [true, 'record-write']);
      const [record] = (await found(host)).records;
      assert.deepEqual([record?.publications.length, record?.publications[0]?.presence], [1, 'unsure']);
    },
  );
  sentence('a write that was refused leaves what was there', async (host, records) => {
    await records.save(volume);
    host.failWrites = { code: 'input-output', message: 'sick', effect: 'none' };
    assert.equal((await records.save(actual('data', { staged: 'unsure' }))).ok, false);
    host.failWrites = undefined;
    const [record] = (await found(host)).records;
    assert.deepEqual([record?.staged, record?.publications.length], ['present', 1]);
  });
  sentence('after a write without an answer the same record is saved once more', async (host, records) => {
    await records.save(volume);
    const restore = withoutAnswers(host);
    assert.equal((await records.save(actual('data', { staged: 'unsure' }))).ok, false);
    restore();
    assert.ok((await records.save(volume)).ok);
    assert.equal((await found(host)).records[0]?.staged, 'present');
  });
  sentence('an erase without an answer loses no record that is saved behind it', async (host, records) => {
    await records.save(volume);
    const restore = withoutAnswers(host);
    await eraseIn(host, records, volume.spec.id);
    restore();
    assert.ok((await records.save(volume)).ok);
    assert.equal((await found(host)).records.length, 1);
  });
  sentence('an erase that failed is tried again', async (host, records) => {
    await records.save(volume);
    const sick: Failure = { code: 'input-output', message: '', effect: 'none' };
    host.failRemovals = sick;
    host.failWrites = sick;
    assert.deepEqual(
      (await eraseIn(host, records, volume.spec.id)).map(({ ok }) => ok),
      [false],
    );
    host.failRemovals = undefined;
    host.failWrites = undefined;
    records.sweep();
    await host.advance(ERASE_MS);
    assert.deepEqual((await found(host)).records, []);
  });
}

/** More than any file has room for that is not made larger. */
function larger(handle: string): ActualVolume {
  const pods = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`pod-${n}`, 'present' as const]));
  return actual(handle, { staged: 'present', pods });
}

/** What changes files does so, and says that nobody knows. */
function withoutAnswers(host: BenchHost): () => void {
  const { writeFile, overwriteFile, removeFile } = host;
  host.writeFile = async (...given) => {
    await writeFile(...given);
    return fail(LOST);
  };
  host.overwriteFile = async (...given) => {
    await overwriteFile(...given);
    return fail(LOST);
  };
  host.removeFile = async (path) => {
    await removeFile(path);
    return fail(LOST);
  };
  return () => Object.assign(host, { writeFile, overwriteFile, removeFile });
}
