import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type AttachmentAnswer,
  type AttachmentFacts,
  attachmentVerdict,
  type Standing,
} from '../../../agent/attachment/attachment-verdict.ts';
import type { AttachmentSight } from '../../../kubernetes/objects/attachment-sight.ts';

const SIGHT: AttachmentSight = {
  uid: 'a-1',
  nodeName: 'n1',
  attacher: 'd.example.com',
  deleted: false,
  attached: true,
  publishContext: { lun: '7' },
  attachError: undefined,
  detachError: undefined,
};
const NOTHING: Standing = { stands: false, uid: undefined };
const SAME: Standing = { stands: true, uid: 'a-1' };

const present = (more: Partial<AttachmentSight> = {}): AttachmentAnswer => ({
  kind: 'present',
  sight: { ...SIGHT, ...more },
});
const GONE: AttachmentAnswer = { kind: 'absent', isConfirmed: true };
const MISSED: AttachmentAnswer = { kind: 'absent', isConfirmed: false };
const DENIED: AttachmentAnswer = { kind: 'unknown', isDenied: true, message: 'no relationship found (403)' };
const SILENT: AttachmentAnswer = { kind: 'unknown', isDenied: false, message: 'no answer in 10000 ms' };

function judge(
  isListed: boolean,
  answer: AttachmentAnswer,
  standing: Standing,
  { isNew = false, isOfBefore = false } = {},
) {
  const facts: AttachmentFacts = {
    isListed,
    isNew,
    isOfBefore,
    answer,
    name: 'csi-1',
    driver: 'd.example.com',
    nodeName: 'n1',
  };
  return attachmentVerdict(facts, standing);
}

const ROWS: readonly (readonly [string, boolean, AttachmentAnswer, Standing, string, RegExp])[] = [
  ['attached and listed', true, present(), NOTHING, 'granted', /^$/],
  ['the same, and it stands', true, present(), SAME, 'granted', /^$/],
  ['it stands, nobody knows under which', true, present(), { stands: true, uid: undefined }, 'granted', /^$/],
  ['another one, and nothing stands', true, present({ uid: 'a-2' }), NOTHING, 'granted', /^$/],
  ['another one than what stands', true, present({ uid: 'a-2' }), SAME, 'replaced', /made anew/],
  [
    'another one, not attached',
    false,
    present({ uid: 'a-2', attached: false }),
    SAME,
    'replaced',
    /made anew/,
  ],
  ['attached, not listed', false, present(), NOTHING, 'wait', /attach\/detach controller has not listed/],
  ['attached, not listed, it stands', false, present(), SAME, 'wait', /has not listed/],
  ['being deleted', true, present({ deleted: true }), NOTHING, 'wait', /being deleted/],
  ['being deleted, it stands', true, present({ deleted: true }), SAME, 'wait', /being deleted/],
  [
    'not attached yet',
    false,
    present({ attached: false }),
    NOTHING,
    'wait',
    /csi-attacher of driver d\.example/,
  ],
  [
    'it failed',
    false,
    present({ attached: false, attachError: 'no free slot' }),
    NOTHING,
    'wait',
    /csi-attacher .*no free slot/,
  ],
  ['attached no more, and it stands', true, present({ attached: false }), SAME, 'lost', /not attached/],
  ['of another node', true, present({ nodeName: 'n2' }), NOTHING, 'wait', /node n2/],
  ['none yet', false, MISSED, NOTHING, 'wait', /no VolumeAttachment csi-1: the attach\/detach controller/],
  ['none, though listed', true, GONE, NOTHING, 'wait', /still lists/],
  ['gone once, and it stands', true, MISSED, SAME, 'wait', /once more/],
  ['gone twice, and it stands', false, GONE, SAME, 'lost', /is gone/],
  ['denied', true, DENIED, NOTHING, 'wait', /system:node:n1 to get volumeattachments/],
  ['denied, and it stands', true, DENIED, SAME, 'wait', /403/],
  ['no answer', true, SILENT, SAME, 'wait', /no answer/],
];

test('denied, as a plain node is while there is none, it is said who has to make it, beside the right', () => {
  const verdict = judge(false, DENIED, NOTHING);
  const both =
    /no relationship found.*attach\/detach controller.*has to make it.*allow system:node:n1 to get/;
  assert.match('message' in verdict ? verdict.message : '', both);
});

for (const [sentence, isListed, answer, standing, kind, message] of ROWS) {
  test(`${sentence}: ${kind}`, () => {
    const verdict = judge(isListed, answer, standing);
    assert.equal(verdict.kind, kind);
    assert.match('message' in verdict ? verdict.message : '', message);
  });
}

test('attached since its use was acknowledged: granted before the Node lists it (D-131)', () => {
  assert.equal(judge(false, present(), NOTHING, { isNew: true }).kind, 'granted');
  assert.equal(judge(false, present(), SAME, { isNew: true }).kind, 'granted');
  assert.equal(judge(false, present({ attached: false }), NOTHING, { isNew: true }).kind, 'wait');
});

const sights = fc.record({
  uid: fc.constantFrom('a-1', 'a-2'),
  nodeName: fc.constantFrom('n1', 'n2'),
  attacher: fc.constantFrom('d.example.com', 'other.example.com'),
  deleted: fc.boolean(),
  attached: fc.boolean(),
  publishContext: fc.constant({}),
  attachError: fc.option(fc.string(), { nil: undefined }),
  detachError: fc.option(fc.string(), { nil: undefined }),
});
const answers: fc.Arbitrary<AttachmentAnswer> = fc.oneof(
  sights.map((sight) => ({ kind: 'present' as const, sight })),
  fc.boolean().map((isConfirmed) => ({ kind: 'absent' as const, isConfirmed })),
  fc.record({ kind: fc.constant('unknown' as const), isDenied: fc.boolean(), message: fc.string() }),
);
const ages = fc.record({ isNew: fc.boolean(), isOfBefore: fc.boolean() });
const standings = fc.record({ stands: fc.boolean(), uid: fc.constantFrom('a-1', 'a-3', undefined) });

for (const answer of [GONE, present({ attached: false })])
  test(`asked for before it stood, and ${answer.kind}: it waits for another answer (cluster, seed 16497)`, () => {
    const verdict = judge(false, answer, SAME, { isOfBefore: true });
    assert.equal(verdict.kind, 'wait');
    assert.match('message' in verdict ? verdict.message : '', /asked for once more/);
  });

test('whatever is said: what is granted, lost or replaced has its proof, and what waits says why', () => {
  fc.assert(
    fc.property(fc.boolean(), ages, answers, standings, (isListed, age, answer, standing) => {
      const { isNew, isOfBefore } = age;
      const verdict = judge(isListed, answer, standing, age);
      const sight = answer.kind === 'present' ? answer.sight : undefined;
      const isOurs = sight?.nodeName === 'n1' && sight.attacher === 'd.example.com';
      switch (verdict.kind) {
        case 'granted': {
          assert.ok((isListed || isNew) && isOurs && sight?.attached === true && !sight.deleted);
          assert.ok(!standing.stands || standing.uid === undefined || standing.uid === sight.uid);
          assert.equal(verdict.uid, sight.uid);
          return;
        }
        case 'lost': {
          assert.ok(standing.stands && answer.kind !== 'unknown' && !isOfBefore);
          assert.ok(answer.kind === 'absent' ? answer.isConfirmed : sight?.attached === false);
          return;
        }
        case 'replaced':
          return void assert.ok(standing.stands && standing.uid !== undefined && standing.uid !== sight?.uid);
        case 'wait':
          return void assert.ok(verdict.message !== '');
      }
    }),
    { numRuns: 2_000 },
  );
});
