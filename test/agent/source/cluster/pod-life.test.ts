import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PodLife, podLife } from '../../../../agent/source/cluster/pod-life.ts';

const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const RUNS = { state: { running: {} } };
const WAITS = { state: { waiting: {} } };
const ENDED = { state: { terminated: { exitCode: 0 } } };
const TWO = { containers: [{}, {}] };

const CASES: readonly { readonly title: string; readonly pod: object; readonly is: PodLife }[] = [
  { title: 'bound and not started', pod: { spec: TWO }, is: 'wanted' },
  { title: 'ended by itself', pod: { spec: TWO, status: { phase: 'Succeeded' } }, is: 'over' },
  { title: 'failed', pod: { spec: TWO, status: { phase: 'Failed' } }, is: 'over' },
  {
    title: 'deleted, with a container that runs',
    pod: { metadata: DELETED, spec: TWO, status: { containerStatuses: [ENDED, RUNS] } },
    is: 'ending',
  },
  {
    title: 'deleted, with one that waits, and may have been started',
    pod: { metadata: DELETED, spec: TWO, status: { containerStatuses: [ENDED, WAITS] } },
    is: 'ending',
  },
  {
    title: 'deleted, with one of which nothing is said',
    pod: { metadata: DELETED, spec: TWO, status: { containerStatuses: [ENDED] } },
    is: 'ending',
  },
  { title: 'deleted, and nothing is said', pod: { metadata: DELETED, spec: TWO }, is: 'ending' },
  {
    title: 'deleted, with a sidecar that runs',
    pod: {
      metadata: DELETED,
      spec: TWO,
      status: { containerStatuses: [ENDED, ENDED], initContainerStatuses: [RUNS] },
    },
    is: 'ending',
  },
  {
    title: 'deleted, and all have ended',
    pod: {
      metadata: DELETED,
      spec: TWO,
      status: { containerStatuses: [ENDED, ENDED], initContainerStatuses: [ENDED] },
    },
    is: 'over',
  },
  {
    title: 'not deleted, and all have ended, to be started again',
    pod: { spec: TWO, status: { containerStatuses: [ENDED, ENDED] } },
    is: 'wanted',
  },
  {
    title: 'the shadow of a manifest',
    pod: { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } }, spec: TWO },
    is: 'mirror',
  },
];

for (const { title, pod, is } of CASES) {
  test(`${title}: ${is}`, () => assert.equal(podLife(pod), is));
}
