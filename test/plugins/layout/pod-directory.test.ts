import assert from 'node:assert/strict';
import { test } from 'node:test';
import { removeStrangePodDirectories } from '../../../plugins/layout/pod-directory.ts';
import { kinds } from '../../../plugins/kinds/kinds.ts';
import { accept } from '../accept.ts';
import { freshHost, layout, POD, POD_DIRECTORY } from '../local-world.ts';

test('of a pod that nobody knows the empty directory of every kind of volume goes', async () => {
  const host = freshHost();
  const before = host.describe(layout.pods);
  const { volumesOf } = layout.podFolders(POD);
  const own = kinds().filter(({ isInPlace }) => isInPlace !== true);
  const plugins = own.map(({ plugin }) => plugin);
  for (const plugin of plugins) host.plant(volumesOf(plugin), { kind: 'directory', mode: 0o750 });
  assert.equal(host.names(`${POD_DIRECTORY}/volumes`).length, own.length);
  accept(await removeStrangePodDirectories(host, layout, POD, plugins));
  assert.deepEqual(host.describe(layout.pods), before);
});
