import assert from 'node:assert/strict';
import { test } from 'node:test';
import { registerKind, volumeKinds } from '../../../plugins/kinds/kinds.ts';
import { SHARE } from '../share/share-kind.ts';

test('no two kinds of volume are called the same, nor have plugins of one name', () => {
  registerKind(SHARE);
  registerKind({ ...SHARE, traits: { ...SHARE.traits, kind: 'test-twin' as 'test-share' } });
  assert.throws(() => volumeKinds(), /plugins of one name/);
  registerKind(SHARE);
  assert.throws(() => volumeKinds(), /called the same/);
});
