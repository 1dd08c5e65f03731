import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type GrowthFacts, growthChange, isGrowthOpen } from '../../../agent/claim/growth-report.ts';
import { parseExactBytes } from '../../../kubernetes/fields/quantity.ts';
import type { FailureCode } from '../../../mount/failure.ts';
import { type Bytes, isMoreThan } from '../../../plugins/volume.ts';
import { type Json, mergePatch } from '../../sim/cluster/json-object.ts';

const GIB = 1024 ** 3;
const bytes = (gib: number): Bytes => `${gib * GIB}` as Bytes;
const WALL = '2026-01-01T00:00:00Z';
const OTHER = { type: 'ModifyVolumeError', status: 'True' };
const PENDING = { type: 'FileSystemResizePending', status: 'True' };

interface ClaimParts {
  readonly status?: string | undefined;
  readonly has?: number;
  readonly asked?: number;
  readonly conditions?: readonly Json[];
}

/** Asked for 2Gi, has 1Gi, unless said otherwise. */
function claim({ status, has = 1, asked = 2, conditions = [OTHER, PENDING] }: ClaimParts = {}): Json {
  return {
    spec: { resources: { requests: { storage: `${asked}Gi` } } },
    status: {
      capacity: { storage: `${has}Gi` },
      conditions,
      ...(status === undefined
        ? {}
        : {
            allocatedResources: { storage: `${asked}Gi` },
            allocatedResourceStatuses: { storage: status },
          }),
    },
  };
}

const facts = (more: Partial<GrowthFacts> = {}): GrowthFacts => ({
  wantedBytes: bytes(2),
  hasBytes: bytes(1),
  held: undefined,
  hasBegun: false,
  refused: undefined,
  failure: undefined,
  ...more,
});

function change(of: Json, told: GrowthFacts): Json | undefined {
  const { conditions } = of['status'] as { readonly conditions: readonly Json[] };
  return growthChange(of, conditions, told, WALL);
}

const failed = (code: FailureCode): Partial<GrowthFacts> => ({
  hasBegun: true,
  failure: { code, message: 'said the driver' },
});
const refused = (because: 'in-use' | 'infeasible', gib = 2): Partial<GrowthFacts> => ({
  hasBegun: true,
  refused: { toBytes: bytes(gib), because, message: 'said the driver' },
});
const error = {
  type: 'NodeResizeError',
  status: 'True',
  lastTransitionTime: WALL,
  message: 'said the driver',
};
const inProgress = { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } };
const infeasible = { allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' } };

const TABLE: readonly [string, Json, Partial<GrowthFacts>, Json | undefined][] = [
  ['pending, not begun', claim({ status: 'NodeResizePending' }), {}, undefined],
  ['pending, begun', claim({ status: 'NodeResizePending' }), { hasBegun: true }, inProgress],
  ['in progress, begun', claim({ status: 'NodeResizeInProgress' }), { hasBegun: true }, undefined],
  [
    'pending, done',
    claim({ status: 'NodeResizePending' }),
    { hasBytes: bytes(2) },
    { capacity: { storage: '2Gi' }, allocatedResourceStatuses: { storage: null }, conditions: [OTHER] },
  ],
  [
    'in progress, done, with an error from before',
    claim({ status: 'NodeResizeInProgress', conditions: [error, OTHER, { type: 'Resizing' }] }),
    { hasBytes: bytes(2) },
    { capacity: { storage: '2Gi' }, allocatedResourceStatuses: { storage: null }, conditions: [OTHER] },
  ],
  [
    'a resizer without statuses, done',
    claim(),
    { hasBytes: bytes(2) },
    { capacity: { storage: '2Gi' }, conditions: [OTHER] },
  ],
  ['a resizer without statuses, failed', claim(), failed('driver-failed'), undefined],
  ['nothing to grow', claim({ asked: 1 }), { wantedBytes: bytes(1) }, undefined],
  ['more asked for than the volume has yet', claim(), { wantedBytes: bytes(1) }, undefined],
  [
    'a final error',
    claim({ status: 'NodeResizeInProgress' }),
    failed('driver-failed'),
    { conditions: [OTHER, PENDING, error] },
  ],
  [
    'an error that says nothing',
    claim({ status: 'NodeResizeInProgress' }),
    failed('driver-deadline'),
    undefined,
  ],
  [
    'an error that is told already',
    claim({ status: 'NodeResizeInProgress', conditions: [error] }),
    failed('driver-failed'),
    undefined,
  ],
  [
    'infeasible',
    claim({ status: 'NodeResizePending' }),
    refused('infeasible'),
    { ...infeasible, conditions: [OTHER, PENDING, error] },
  ],
  [
    'infeasible, for another size',
    claim({ status: 'NodeResizeInProgress' }),
    refused('infeasible', 3),
    undefined,
  ],
  [
    'in use',
    claim({ status: 'NodeResizeInProgress' }),
    refused('in-use', 3),
    { conditions: [OTHER, PENDING, error] },
  ],
  [
    'it is the turn of a size that the node has not heard of yet',
    claim({ status: 'NodeResizePending', asked: 3 }),
    { hasBytes: bytes(2), hasBegun: true },
    undefined,
  ],
  [
    'what failed was another size',
    claim({ status: 'NodeResizeInProgress', asked: 3 }),
    failed('driver-failed'),
    undefined,
  ],
  [
    'it is told to be larger than the node knows',
    claim({ status: 'NodeResizeInProgress', has: 3 }),
    { hasBytes: bytes(2) },
    undefined,
  ],
  [
    'done, and only readers are left',
    claim({ status: 'NodeResizeInProgress' }),
    { held: 'read-only', hasBytes: bytes(2) },
    { capacity: { storage: '2Gi' }, allocatedResourceStatuses: { storage: null }, conditions: [OTHER] },
  ],
  ['read-only', claim({ status: 'NodeResizePending' }), { held: 'read-only', hasBegun: true }, undefined],
  ['a resizer without statuses, read-only', claim(), { held: 'read-only', hasBytes: bytes(2) }, undefined],
  ['told to be infeasible', claim({ status: 'NodeResizeInfeasible' }), { hasBytes: bytes(2) }, undefined],
  [
    'the controller is at work',
    claim({ status: 'ControllerResizeInProgress' }),
    { hasBytes: bytes(2) },
    undefined,
  ],
];

for (const [what, of, more, expected] of TABLE)
  test(`a claim of which is written what is so: ${what}`, () => {
    assert.deepEqual(change(of, facts(more)), expected);
    if (expected !== undefined) assert.equal(isGrowthOpen(of), true);
  });

const STATUSES = [
  undefined,
  'NodeResizePending',
  'NodeResizeInProgress',
  'NodeResizeInfeasible',
  'ControllerResizeInProgress',
];
const anyCode = fc.constantFrom<FailureCode>(
  'driver-failed',
  'driver-deadline',
  'driver-busy',
  'driver-refused',
);
const anyFacts = fc.record({
  wantedBytes: fc.constantFrom(bytes(1), bytes(2), bytes(3)),
  hasBytes: fc.constantFrom(undefined, bytes(1), bytes(2), bytes(3)),
  held: fc.constantFrom(undefined, undefined, 'read-only'),
  hasBegun: fc.boolean(),
  refused: fc.constantFrom(undefined, refused('in-use').refused, refused('infeasible').refused),
  failure: fc.option(fc.record({ code: anyCode, message: fc.string() }), { nil: undefined }),
});
const anyClaim = fc
  .record({
    status: fc.constantFrom(...STATUSES),
    has: fc.constantFrom(1, 2),
    asked: fc.constantFrom(1, 2, 3),
    conditions: fc.subarray<Json>([OTHER, PENDING, error]),
  })
  .map(claim);

function sizeOf(of: Json): string {
  const { capacity } = of['status'] as { readonly capacity: Json };
  return String(capacity['storage']);
}

test('whatever is so, it is written and done, never more than the volume has, and no word of others is taken', () => {
  fc.assert(
    fc.property(anyClaim, anyFacts, (before, told) => {
      let now = before;
      for (let writes = 0; ; writes += 1) {
        const status = change(now, told);
        if (status === undefined) break;
        // One for the size that it is the turn of, and one where the volume has more by now.
        assert.ok(writes < 2, JSON.stringify(status));
        const after = mergePatch(now, { status }) as Json;
        const size = parseExactBytes(sizeOf(after)) ?? bytes(0);
        if (status['capacity'] !== undefined) assert.ok(!isMoreThan(size, told.hasBytes ?? bytes(0)));
        assert.ok(!isMoreThan(parseExactBytes(sizeOf(now)) ?? bytes(0), size));
        now = after;
      }
      assert.equal(hasOther(now), hasOther(before));
    }),
    { numRuns: 2_000 },
  );
});

function hasOther(of: Json): boolean {
  const { conditions } = of['status'] as { readonly conditions: readonly Json[] };
  return conditions.includes(OTHER);
}
