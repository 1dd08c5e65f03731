import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evictionMs } from '../../../../agent/source/cluster/pod-eviction.ts';
import { FieldReader } from '../../../../kubernetes/fields/field-reader.ts';

const UNREACHABLE = 'node.kubernetes.io/unreachable';
const ADDED = '2026-01-01T00:00:00Z';
const taint = (more: object = {}): object => ({
  key: UNREACHABLE,
  effect: 'NoExecute',
  timeAdded: ADDED,
  ...more,
});
const tolerates = (more: object = {}): object => ({
  key: UNREACHABLE,
  operator: 'Exists',
  effect: 'NoExecute',
  ...more,
});

interface Case {
  readonly title: string;
  readonly taints: readonly object[];
  readonly tolerations?: readonly object[];
  /** Seconds after the taint came. */
  readonly is: number | 'never' | undefined;
}

const CASES: readonly Case[] = [
  { title: 'no taint', taints: [], is: undefined },
  { title: 'a taint that evicts nobody', taints: [taint({ effect: 'NoSchedule' })], is: undefined },
  { title: 'a taint that is not tolerated', taints: [taint()], is: 0 },
  { title: 'five minutes', taints: [taint()], tolerations: [tolerates({ tolerationSeconds: 300 })], is: 300 },
  {
    title: 'less than no time',
    taints: [taint()],
    tolerations: [tolerates({ tolerationSeconds: -1 })],
    is: 0,
  },
  { title: 'for good', taints: [taint()], tolerations: [tolerates()], is: 'never' },
  {
    title: 'every key and every effect',
    taints: [taint()],
    tolerations: [{ operator: 'Exists' }],
    is: 'never',
  },
  {
    title: 'the sooner of two tolerations',
    taints: [taint()],
    tolerations: [tolerates(), tolerates({ tolerationSeconds: 60 }), tolerates({ tolerationSeconds: 30 })],
    is: 30,
  },
  {
    title: 'the sooner of two taints',
    taints: [taint(), taint({ key: 'node.kubernetes.io/out-of-service', timeAdded: '2026-01-01T00:00:10Z' })],
    tolerations: [tolerates({ tolerationSeconds: 300 })],
    is: 10,
  },
  { title: 'another key', taints: [taint()], tolerations: [tolerates({ key: 'other' })], is: 0 },
  { title: 'another effect', taints: [taint()], tolerations: [tolerates({ effect: 'NoSchedule' })], is: 0 },
  {
    title: 'the same value',
    taints: [taint({ value: 'off' })],
    tolerations: [{ key: UNREACHABLE, value: 'off' }],
    is: 'never',
  },
  {
    title: 'another value',
    taints: [taint({ value: 'off' })],
    tolerations: [{ key: UNREACHABLE, value: 'on' }],
    is: 0,
  },
  { title: 'a taint that does not say since when', taints: [taint({ timeAdded: null })], is: undefined },
  { title: 'a time that is none', taints: [taint({ timeAdded: 'soon' })], is: undefined },
];

for (const { title, taints, tolerations = [], is } of CASES)
  test(`a pod is marked for deletion as its tolerations say: ${title}`, () => {
    const pod = new FieldReader({ spec: { tolerations } }, '', []);
    const found = evictionMs(pod, new FieldReader(taints, '', []).list());
    assert.equal(found, typeof is === 'number' ? Date.parse(ADDED) + is * 1_000 : is);
  });
