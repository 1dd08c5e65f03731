import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AbsolutePath, parentOf } from '../../../mount/host.ts';
import { removeEmptyBlockDirectories } from '../../../plugins/layout/block-directory.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { createMemoryHost } from '../memory-host.ts';
import { value } from '../../value.ts';

const layout = createLayout('/state' as AbsolutePath);
const { directory, data, stage, targets } = layout.blockVolume('pv-data');
const PAPER = `${data}/vol_data.json`;

function disk() {
  const host = createMemoryHost();
  host.plant(PAPER, { kind: 'file', content: '{"driverName":"d","volumeHandle":"h"}' });
  return host;
}

test('the papers of a block volume go with its last directory', async () => {
  const host = disk();
  value(await removeEmptyBlockDirectories(host, layout, 'pv-data'));
  assert.deepEqual(host.names(parentOf(directory)), []);
});

for (const [what, hidden] of [
  ['is staged', stage],
  ['drivers have published', targets],
] as const)
  test(`they stay while somebody’s mount hides what ${what}: it may be there`, async () => {
    const host = disk();
    host.plant(hidden, { kind: 'directory' });
    host.plantMount(parentOf(hidden), 'tmpfs');
    value(await removeEmptyBlockDirectories(host, layout, 'pv-data'));
    assert.ok(host.read(PAPER)?.includes('"h"'));
    value(await host.unmount(parentOf(hidden)));
    assert.deepEqual(host.names(parentOf(hidden)), ['pv-data']);
  });
