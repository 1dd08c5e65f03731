import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNodeIds } from '../../../../plugins/csi/driver/node-ids.ts';

test('another node id than before is told, of each driver for itself', () => {
  const ids = createNodeIds();
  assert.equal(ids.learn('a.example', 'node-1'), undefined);
  assert.equal(ids.learn('b.example', 'node-2'), undefined);
  assert.equal(ids.learn('a.example', 'node-1'), undefined);
  assert.equal(ids.learn('a.example', 'node-3'), 'node id changed from "node-1" to "node-3"');
});

test('names that nobody uses any more are forgotten before there are too many', () => {
  const ids = createNodeIds();
  ids.learn('first.example', 'node-1');
  ids.learn('used.example', 'node-1');
  for (let number = 0; number < 1_023; number += 1) {
    ids.learn(`d${number}.example`, 'node-1');
    ids.learn('used.example', 'node-1');
  }
  assert.equal(ids.learn('first.example', 'node-2'), undefined);
  assert.equal(ids.learn('used.example', 'node-2'), 'node id changed from "node-1" to "node-2"');
});
