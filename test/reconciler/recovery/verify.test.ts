import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIRM_GROUND } from '../../../mount/ground.ts';
import { parseAbsolutePath } from '../../../mount/host.ts';
import { createMountTable, type MountEntry } from '../../../mount/mount-table.ts';
import { deathFailure } from '../../../plugins/guard/dead-file-system.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import type { ActualVolume } from '../../../reconciler/model/actual-state.ts';
import { verifyMounts } from '../../../reconciler/recovery/verify.ts';
import { actual, csi, place } from '../world.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const spec = csi('data');
const web = place('web', 'data');
const mount = { mountId: 41, device: '7:1' };
const path = layout.mountPoint(spec, web);
const entry: MountEntry = {
  mountId: 41,
  parentId: 1,
  device: '7:1',
  root: '/',
  target: path,
  options: ['rw'],
  propagation: [],
  fsType: 'ext4',
  source: '/dev/loop1',
  superOptions: ['rw'],
};

/** In doubt, with its mount noted. */
function doubted(isDead: boolean): ActualVolume {
  const volume = actual('data', { staged: 'present', pods: { web: 'unsure' } });
  const known = volume.publications.get(web.key);
  assert.ok(known);
  const publications = new Map([[web.key, { ...known, mount }]]);
  const failure = deathFailure(layout.stagingPath(spec), 'input-output');
  return { ...volume, publications, ...(isDead ? { sickness: { failure, of: 'stage' } } : {}) };
}

function verify(volume: ActualVolume, entries: readonly MountEntry[]) {
  const { volume: now, losses } = verifyMounts(
    volume,
    createMountTable(entries),
    new Map(),
    layout,
    FIRM_GROUND,
  );
  return { presence: now.publications.get(web.key)?.presence, losses, isSame: now === volume };
}

test('of a dead volume, who is in doubt has it as long as its mount is there', () => {
  assert.ok(verify(doubted(true), [entry]).isSame, 'being there proves nothing');
  const { presence, losses } = verify(doubted(true), []);
  assert.ok(presence?.kind === 'unsure' && typeof presence.because === 'object');
  assert.deepEqual([presence.because.code, presence.because.blocker], ['mount-lost', path]);
  assert.deepEqual(
    losses.map(({ publication }) => publication),
    [web.key],
  );
  const lost = doubted(true);
  const known = lost.publications.get(web.key);
  assert.ok(known);
  const again = verify({ ...lost, publications: new Map([[web.key, { ...known, presence }]]) }, []);
  assert.ok(again.isSame, 'it is told once');
});

test('of one that is alive nothing follows from it: it is published again', () => {
  assert.ok(verify(doubted(false), []).isSame);
});
