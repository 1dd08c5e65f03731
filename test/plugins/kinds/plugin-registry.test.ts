import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createContentPlugin } from '../../../plugins/pod/content.ts';
import { createEmptyDirPlugin } from '../../../plugins/pod/empty-dir.ts';
import { createHostPathPlugin } from '../../../plugins/pod/host-path.ts';
import { createImagePlugin } from '../../../plugins/pod/image.ts';
import { createLocalPlugin } from '../../../plugins/local/local-plugin.ts';
import { createIscsiPlugin } from '../../../plugins/iscsi/iscsi-plugin.ts';
import { createNfsPlugin } from '../../../plugins/nfs/nfs-plugin.ts';
import { createOrphanPlugin } from '../../../plugins/orphan/orphan.ts';
import type { VolumePlugin } from '../../../plugins/plugin.ts';
import { createPodPlugin } from '../../../plugins/pod/pod-plugin.ts';
import { kinds } from '../../../plugins/kinds/kinds.ts';
import { createRegistry } from '../../../plugins/kinds/plugin-registry.ts';
import { CSI_PLUGIN, type VolumeSpec } from '../../../plugins/volume.ts';
import { done, ok } from '../../../mount/failure.ts';
import { content, emptyDir, freshHost, layout, mounterOf } from '../local-world.ts';

const host = freshHost();
const mounter = mounterOf(host);
const csi: VolumePlugin = createPodPlugin({
  name: CSI_PLUGIN,
  publish: async () => ok({ mount: undefined }),
  unpublish: async () => done,
});
const ALL: readonly VolumePlugin[] = [
  csi,
  createEmptyDirPlugin(host, layout, mounter),
  createHostPathPlugin(host),
  createContentPlugin('secret', host, layout, mounter),
  createContentPlugin('config-map', host, layout, mounter),
  createContentPlugin('downward-api', host, layout, mounter),
  createContentPlugin('projected', host, layout, mounter),
  createImagePlugin(),
  createNfsPlugin(host, layout, mounter),
  createIscsiPlugin({ host, layout, mounter }),
  createLocalPlugin({ host, layout, mounter, denied: [] }),
  createOrphanPlugin(host, layout, mounter),
];

test('every kind of volume finds the plugin of its name', () => {
  const registry = createRegistry(ALL);
  for (const { kind, plugin } of kinds()) assert.equal(registry.of({ kind } as VolumeSpec).name, plugin);
  assert.equal(registry.of(content('secret')), ALL[3]);
});

test('a kind without a plugin, and one with two, is found at start', () => {
  for (const missing of ALL) {
    assert.throws(() => createRegistry(ALL.filter((plugin) => plugin !== missing)), /broken invariant/);
  }
  assert.throws(() => createRegistry([...ALL, csi]), /broken invariant/);
});

test('the local kinds need neither attach nor stage, and each kind has its own lane', () => {
  const registry = createRegistry(ALL);
  const specs = [emptyDir('disk'), content('secret'), content('config-map'), content('downward-api')];
  for (const spec of specs)
    assert.deepEqual(registry.of(spec).needs(spec), { attach: false, stage: false, expand: false });
  assert.equal(new Set(specs.map((spec) => registry.of(spec).lane(spec))).size, specs.length);
});
