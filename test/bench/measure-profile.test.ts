import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expensiveOf } from './measure-profile.ts';

const node = (id: number, functionName: string, url = '') => ({
  id,
  callFrame: { functionName, url, lineNumber: 0 },
});

test('the time between two samples is that of the function that was seen first; idle time is nobody’s', () => {
  const profile = {
    nodes: [
      node(1, '(idle)'),
      node(2, 'walk', 'node:fs'),
      node(3, 'walk', 'node:fs'),
      node(4, '', 'node:net'),
    ],
    samples: [1, 2, 3, 4, 1],
    timeDeltas: [0, 9_000, 1_000, 2_000, 1_000],
  };
  assert.deepEqual(expensiveOf(profile), {
    busyMs: 4,
    top: [
      { name: 'walk node:fs', ms: 3, share: 0.75 },
      { name: '(anonymous) node:net', ms: 1, share: 0.25 },
    ],
  });
});
