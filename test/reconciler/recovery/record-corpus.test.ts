/**
 * Records that agents of earlier versions wrote on a real kernel: 0.1 at 740e0af and 0.2 at b98ab12, each the volumes
 * of its demo's pod, taken when the agent was killed. Every later version must read them, and take them into the
 * journal.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseAbsolutePath } from '../../../mount/host.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { createRecords } from '../../../reconciler/journal/record-forms.ts';
import type { VolumeRecord } from '../../../reconciler/recovery/record.ts';
import type { LoadedRecords } from '../../../reconciler/recovery/record-store.ts';
import { value } from '../../value.ts';
import { type BenchHost, createBenchHost } from '../bench-host.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const POD = 'c0ffee00-1f0e-4c5d-9a57-3f1b2d4e6a78';
const DISK = 'kubernetes.io/csi/loopfile.mooring.dev^vol-18c7ca5f753f646128e391d58cacbc4e';

/** The mount ids and devices that mountinfo showed beside the records. */
const MOUNTS = {
  '0.1': {
    staged: { mountId: 63, device: '7:0' },
    'shop-data': { mountId: 67, device: '7:0' },
    fast: { mountId: 64, device: '0:41' },
    login: { mountId: 65, device: '0:42' },
    settings: { mountId: 66, device: '0:43' },
  },
  '0.2': {
    staged: { mountId: 84, device: '7:0' },
    'shop-data': { mountId: 85, device: '7:0' },
    fast: { mountId: 86, device: '0:39' },
    login: { mountId: 87, device: '0:40' },
    settings: { mountId: 88, device: '0:42' },
  },
} as const;

function diskOf(version: keyof typeof MOUNTS): BenchHost {
  const host = createBenchHost();
  const corpus = new URL(`../../corpus/records/${version}/`, import.meta.url);
  for (const name of readdirSync(corpus))
    host.files.set(`${layout.records}/${name}`, readFileSync(new URL(name, corpus), 'utf8'));
  return host;
}

async function life(host: BenchHost): Promise<LoadedRecords> {
  const store = createRecords({
    form: 'journal',
    host,
    layout,
    log: { warn: assert.fail },
    journalBytes: 16_384,
  });
  const loaded = value(await store.load());
  assert.ok((await store.takeOver()).ok);
  return loaded;
}

/** What a later life has to know of each publication: whose it is, that it stands, and as which mount. */
function placesIn(records: readonly VolumeRecord[]) {
  return records
    .flatMap(({ spec, publications }) =>
      publications.map(({ spec: { key, pod, origin }, presence, mount }) => ({
        id: spec.id,
        key,
        pod: pod.name,
        origin,
        presence,
        mount,
      })),
    )
    .sort((a, b) => a.key.localeCompare(b.key));
}

for (const version of ['0.1', '0.2'] as const) {
  test(`the records of a node of ${version} are read as they were meant, and taken into the journal`, async () => {
    const host = diskOf(version);
    const mounts = MOUNTS[version];
    const loaded = await life(host);
    assert.deepEqual([loaded.records.length, loaded.unreadable], [6, []]);
    const place = (id: string, name: keyof typeof mounts | 'site' | 'work') => ({
      id,
      key: `${POD}/${name}`,
      pod: 'web',
      origin: 'web.yaml',
      presence: 'present',
      mount: name === 'site' || name === 'work' ? undefined : mounts[name],
    });
    assert.deepEqual(placesIn(loaded.records), [
      place(`kubernetes.io/empty-dir/${POD}/fast`, 'fast'),
      place(`kubernetes.io/secret/${POD}/login`, 'login'),
      place(`kubernetes.io/configmap/${POD}/settings`, 'settings'),
      place(DISK, 'shop-data'),
      place(`kubernetes.io/host-path/${POD}/site`, 'site'),
      place(`kubernetes.io/empty-dir/${POD}/work`, 'work'),
    ]);
    const disk = loaded.records.find(({ spec }) => spec.id === DISK);
    assert.ok(disk?.spec.kind === 'csi');
    assert.deepEqual(
      [disk.staged, disk.stagedMount, disk.spec.fsType, disk.spec.mode, disk.needs.stage, disk.needs.attach],
      ['present', mounts.staged, 'ext4', 'Filesystem', true, false],
    );
    const names = [...host.files.keys()].map((path) => path.slice(path.lastIndexOf('/') + 1)).sort();
    assert.deepEqual(names, ['journal-a', 'journal-b']);
    assert.deepEqual(placesIn((await life(host)).records), placesIn(loaded.records));
  });
}
