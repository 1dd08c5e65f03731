/** AP-12, RS-02: whatever the steps in which pods come back or are given up, one line says how it ended for all. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HeldPods } from '../../../agent/source/vanished-hold.ts';
import { createVanishedLog } from '../../../agent/source/vanished-log.ts';
import { createManifestKeeper, reasonsOf } from '../../../agent/source/manifest-keeper.ts';
import { createMassRemovalLog } from '../../../agent/source/mass-removal-log.ts';
import type { DesiredObjects } from '../../../agent/source/desired-objects.ts';
import type { PodReference, PodUid } from '../../../plugins/volume.ts';
import type { Log, LogFields } from '../../../mount/process/log.ts';

const clock = { nowMs: () => 1_000 };

function recording(): { readonly log: Log; readonly lines: [string, LogFields | undefined][] } {
  const lines: [string, LogFields | undefined][] = [];
  const note = (event: string, fields?: LogFields): void => {
    lines.push([event, fields]);
  };
  return { log: { debug: note, info: note, warn: note, error: note }, lines };
}

function uids(names: string): ReadonlySet<PodUid> {
  return new Set(names.split('') as PodUid[]);
}

/** The pods of the letters. */
function podsOf(names: string): DesiredObjects['pods'] {
  return new Map(
    [...uids(names)].map((uid) => [uid, { reference: { uid } }]),
  ) as unknown as DesiredObjects['pods'];
}

function reportsOf(names: string): DesiredObjects['reports'] {
  return names === '' ? [] : [{ massRemoval: { pods: uids(names), sinceMs: 0, untilMs: 11_000 } }];
}

function heldOf(names: string): HeldPods {
  const one = { pod: {} as PodReference, sinceMs: 0, untilMs: 301_000 };
  return new Map([...uids(names)].map((uid) => [uid, one]));
}

test('most pods vanish, come back one after the other, and one is given up: one line of the end', () => {
  const { log, lines } = recording();
  const { note } = createMassRemovalLog(log, clock);
  for (const vanishing of ['', 'abcd', 'bcd', 'cd', 'd'])
    note({ pods: podsOf('abcdef'), reports: reportsOf(vanishing) });
  note({ pods: podsOf('abcef'), reports: reportsOf('') });
  note({ pods: podsOf('abcef'), reports: reportsOf('') });
  assert.deepEqual(lines, [
    ['most pods vanished from the manifests at once, kept for now', { vanished: 4, pods: 6, waitMs: 10_000 }],
    ['vanished pods decided on', { back: 3, takenDown: 1 }],
  ]);
  note({ pods: podsOf('abcef'), reports: reportsOf('abce') });
  note({ pods: podsOf('f'), reports: reportsOf('') });
  assert.deepEqual(lines.at(-1), ['vanished pods decided on', { back: 0, takenDown: 4 }]);
  assert.equal(lines.length, 4);
});

test('pods that vanish from the cluster are said to, and nobody is told of manifests or to forget them', () => {
  const { log, lines } = recording();
  const cluster = { server: 'https://k:6443', state: 'following', sinceMs: 1, message: '', pods: 6 } as const;
  const reports = reportsOf('abcd').map((one) => ({
    ...one,
    cluster: { ...cluster, detachClock: undefined },
  }));
  createMassRemovalLog(log, clock).note({ pods: podsOf('abcdef'), reports });
  assert.deepEqual(lines, [
    ['most pods vanished from the cluster at once, kept for now', { vanished: 4, pods: 6, waitMs: 10_000 }],
  ]);
  const reasons = reasonsOf(
    new Map(),
    { reports, unknownOrigins: new Set() },
    { ...clock, wallMs: () => 1_000 },
  );
  assert.equal(reasons.size, 4);
  for (const { message } of reasons.values()) assert.doesNotMatch(message, /manifest|mooring forget/);
  const desired = () => ({ pods: podsOf('abcdef'), reports });
  const hold = { held: () => heldOf(''), forget: () => {} };
  assert.deepEqual(createManifestKeeper({ sources: [], hold, desired }).missing(), []);
});

test('pods that are kept since a start end one after the other: one line for all of them', () => {
  const { log, lines } = recording();
  const { note } = createVanishedLog(log, clock);
  note({ pods: podsOf('x') }, heldOf('abcd'));
  note({ pods: podsOf('xa') }, heldOf('bcd'));
  note({ pods: podsOf('xab') }, heldOf('cd'));
  note({ pods: podsOf('xab') }, heldOf('c'));
  note({ pods: podsOf('xab') }, heldOf(''));
  note({ pods: podsOf('xab') }, heldOf(''));
  assert.deepEqual(lines, [
    [
      'manifests vanished while nobody looked, their pods are kept for now',
      { vanished: 4, pods: 1, waitMs: 300_000, command: 'mooring forget --all' },
    ],
    ['kept pods decided on', { back: 2, takenDown: 2 }],
  ]);
});
