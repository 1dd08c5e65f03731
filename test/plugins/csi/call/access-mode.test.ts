import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csiAccessMode } from '../../../../plugins/csi/call/access-mode.ts';
import { VolumeCapability_AccessMode_Mode as Mode } from '../../../../plugins/csi/wire/generated/csi.ts';

test('KV-E3, A-064: access modes map as in the kubelet, 6 and 7 only with the capability', () => {
  const table = [
    ['ReadWriteOnce', Mode.SINGLE_NODE_WRITER, Mode.SINGLE_NODE_MULTI_WRITER],
    ['ReadWriteOncePod', Mode.SINGLE_NODE_WRITER, Mode.SINGLE_NODE_SINGLE_WRITER],
    ['ReadOnlyMany', Mode.MULTI_NODE_READER_ONLY, Mode.MULTI_NODE_READER_ONLY],
    ['ReadWriteMany', Mode.MULTI_NODE_MULTI_WRITER, Mode.MULTI_NODE_MULTI_WRITER],
  ] as const;
  for (const [mode, without, having] of table) {
    assert.equal(csiAccessMode([mode], false), without);
    assert.equal(csiAccessMode([mode], true), having);
  }
});

test('KV-C4: only the first mode is sent, and none is ReadWriteOnce', () => {
  assert.equal(csiAccessMode(['ReadOnlyMany', 'ReadWriteOnce'], true), Mode.MULTI_NODE_READER_ONLY);
  assert.equal(csiAccessMode([], false), Mode.SINGLE_NODE_WRITER);
});
