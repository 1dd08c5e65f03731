/** RS-02: what the records know counts as seen, and is kept for a time when no manifest of this life shows it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createVanishedHold, type VanishedHold } from '../../../agent/source/vanished-hold.ts';
import type { DesiredObjects } from '../../../agent/source/desired-objects.ts';
import type { PodReference, PodUid } from '../../../plugins/volume.ts';
import { podUid } from '../manifests.ts';

const HOLD_MS = 300_000;

function reference(name: string, uid = `uid-${name}`): PodReference {
  return { uid: podUid(uid), name, namespace: 'default', serviceAccount: '' };
}

type Wish = Pick<DesiredObjects, 'complete' | 'pods' | 'shownPods' | 'unknownOrigins'>;

function wishOf(pods: readonly PodReference[], rest: Partial<Wish> = {}): Wish {
  const all = new Map(pods.map((one) => [one.uid, { reference: one }]));
  const known = { complete: true, shownPods: new Set<PodUid>(), unknownOrigins: new Set<string>() };
  return { ...known, pods: all as unknown as DesiredObjects['pods'], ...rest };
}

function bench(holdMs = HOLD_MS) {
  let nowMs = 1_000;
  let due = 0;
  const timers: { atMs: number; fire: () => void }[] = [];
  const hold: VanishedHold = createVanishedHold({
    holdMs,
    onDue: () => {
      due += 1;
    },
    clock: {
      nowMs: () => nowMs,
      timer: (delayMs, fire) => {
        const timer = { atMs: nowMs + delayMs, fire };
        timers.push(timer);
        return () => timers.splice(timers.indexOf(timer), 1);
      },
    },
  });
  return {
    hold,
    due: () => due,
    timers,
    pass(ms: number) {
      nowMs += ms;
      for (const timer of [...timers]) if (timer.atMs <= nowMs) timer.fire();
    },
  };
}

const uids = (held: ReadonlyMap<PodUid, unknown>): readonly string[] => [...held.keys()].sort();
const [A, B, C, D] = ['a', 'b', 'c', 'd'].map((name) => reference(name)) as [
  PodReference,
  PodReference,
  PodReference,
  PodReference,
];

test('one that no listing shows is kept, and goes by itself when its time is over', () => {
  const { hold, due, pass, timers } = bench();
  assert.deepEqual(
    uids(hold.look(wishOf([], { complete: false }), [A, B])),
    [],
    'before the first listing the gate is closed',
  );
  assert.deepEqual(uids(hold.look(wishOf([B]), [A, B])), ['uid-a']);
  assert.equal(hold.held().get(A.uid)?.untilMs, 1_000 + HOLD_MS);
  pass(HOLD_MS - 1);
  assert.deepEqual([due(), uids(hold.look(wishOf([B]), [A, B]))], [0, ['uid-a']]);
  pass(1);
  assert.equal(due(), 1);
  assert.deepEqual(uids(hold.look(wishOf([B]), [A, B])), []);
  assert.deepEqual(
    [uids(hold.look(wishOf([B]), [A, B])), timers.length > 0 ? 'timers' : 'none'],
    [[], 'none'],
  );
});

test('one is kept beyond its time while something that may want it cannot be read, and nobody looks meanwhile', () => {
  const { hold, due, pass, timers } = bench();
  const inDoubt = wishOf([B], { unknownOrigins: new Set(['/etc/mooring/manifests']) });
  assert.deepEqual(uids(hold.look(wishOf([B]), [A, B])), ['uid-a']);
  hold.look(inDoubt, [A, B]);
  assert.equal(timers.length, 0);
  pass(HOLD_MS + 1);
  assert.deepEqual([due(), uids(hold.look(inDoubt, [A, B]))], [0, ['uid-a']]);
  hold.forget([A.uid]);
  assert.deepEqual(uids(hold.look(inDoubt, [A, B])), [], 'an operator knows better');
});

test('one that nothing wants when all can be read again goes then, and one that is wanted never went', () => {
  for (const wanted of [[B], [A, B]]) {
    const { hold, pass } = bench();
    hold.look(wishOf([B]), [A, B]);
    hold.look(wishOf([B], { unknownOrigins: new Set(['web.yaml']) }), [A, B]);
    pass(HOLD_MS + 1);
    assert.deepEqual(uids(hold.look(wishOf(wanted), [A, B])), []);
    const later = uids(hold.look(wishOf([B]), [A, B]));
    assert.deepEqual(later, [], 'decided, or seen in life');
  }
});

test('one that is back is seen, and the next time it is gone by what is seen in life', () => {
  const { hold } = bench();
  hold.look(wishOf([]), [A]);
  assert.deepEqual(uids(hold.look(wishOf([A]), [A])), []);
  assert.deepEqual(uids(hold.look(wishOf([]), [A])), []);
});

test('one that is shown and not wanted went in this life, also where it is found on disk later', () => {
  const { hold } = bench();
  const shown = wishOf([B], { shownPods: new Set([A.uid, C.uid]) });
  assert.deepEqual(uids(hold.look(shown, [A, B, D])), ['uid-d']);
  assert.deepEqual(uids(hold.look(shown, [A, B, C, D])), ['uid-d']);
  assert.deepEqual(uids(hold.look(wishOf([B]), [A, B, C, D])), ['uid-d']);
});

test('what is found on disk later is kept as long, from when it was found', () => {
  const { hold, pass } = bench();
  hold.look(wishOf([B]), [B]);
  pass(10_000);
  assert.equal(hold.look(wishOf([B]), [B, A]).get(A.uid)?.untilMs, 11_000 + HOLD_MS);
});

test('one whose name another pod has by now is gone, unless most are', () => {
  const again = reference('a', 'uid-new');
  assert.deepEqual(uids(bench().hold.look(wishOf([again, B, C, D]), [A, B])), []);
  const all = [A, B, C, D];
  const others = all.map(({ name }) => reference(name, `uid-new-${name}`)).slice(0, 3);
  assert.equal(bench().hold.look(wishOf(others), all).size, 4);
});

test('an operator can say that they are gone', () => {
  const { hold, due } = bench();
  hold.look(wishOf([]), [A, B]);
  hold.forget([A.uid]);
  assert.equal(due(), 1);
  assert.deepEqual(uids(hold.look(wishOf([]), [A, B])), ['uid-b']);
});

test('with a hold of nothing nobody is kept', () => {
  assert.deepEqual(uids(bench(0).hold.look(wishOf([]), [A, B, C, D])), []);
});
