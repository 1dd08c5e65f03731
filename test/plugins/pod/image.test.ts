import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AbsolutePath } from '../../../mount/host.ts';
import { createImagePlugin } from '../../../plugins/pod/image.ts';
import { podVolumeId, type VolumeSpec } from '../../../plugins/volume.ts';
import { pluginContract } from '../../contract/plugin.ts';
import { accept } from '../accept.ts';
import { callOf, freshHost, POD, worldOf } from '../local-world.ts';

const IMAGE: VolumeSpec = {
  kind: 'image',
  id: podVolumeId('kubernetes.io/image', POD, 'files'),
  pod: POD,
  name: 'files',
  image: { reference: 'quay.io/example/data:1', pullPolicy: '' },
};

const world = () =>
  worldOf(callOf(IMAGE), createImagePlugin, (host) => host.describe('/' as AbsolutePath), freshHost());

pluginContract('image', world);

test('nothing is asked and nothing done for an image, and there is nothing of it on disk', async () => {
  const { host, call, plugin, describe } = world();
  const before = describe();
  accept(await plugin().publish(call));
  accept(await plugin().unpublish(call));
  assert.deepEqual([host.calls(), describe()], [0, before]);
});
