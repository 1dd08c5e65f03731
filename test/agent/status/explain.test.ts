import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explain, type ExplanationDocument } from '../../../agent/status/explain.ts';
import { statusOf } from '../../../agent/status/status.ts';
import type { StatusFacts } from '../../../agent/status/status-facts.ts';
import { type PodUid, publicationKey } from '../../../plugins/volume.ts';
import type { DetachReport, PodDemand } from '../../../agent/source/cluster-report.ts';
import { ABSENT, PRESENT } from '../../../reconciler/model/actual-state.ts';
import type { Obstacle } from '../../../reconciler/model/obstacle.ts';
import {
  actual,
  DATA,
  DB,
  desired,
  facts,
  GONE,
  LAYOUT,
  LOGS,
  obstacle,
  pod,
  richFacts,
  wanted,
  WEB,
} from '../status-fixture.ts';

function found(subject: string, given: StatusFacts = richFacts()): ExplanationDocument {
  const explanation = explain(subject, statusOf(given, LAYOUT, 'r'));
  assert(explanation.kind === 'found', JSON.stringify(explanation));
  return explanation.document;
}

function refused(subject: string, given: StatusFacts = richFacts()): string {
  const explanation = explain(subject, statusOf(given, LAYOUT, 'r'));
  assert(explanation.kind !== 'found');
  return `${explanation.kind}: ${explanation.message}`;
}

test('a pod is found by name, full name and uid; a volume by name, handle and id', () => {
  for (const subject of ['db', 'default/db', DB.uid, `pod:${DB.uid}`])
    assert.equal(found(subject).subject.id, DB.uid);
  for (const subject of [LOGS.specName, 'vol-logs', LOGS.id, `volume:${LOGS.id}`]) {
    assert.equal(found(subject).subject.id, LOGS.id);
  }
});

test('when all is well, nothing is in the way', () => {
  assert.deepEqual(found('web'), {
    apiVersion: 'mooring/v1',
    kind: 'Explanation',
    subject: { kind: 'pod', name: 'default/web', id: WEB.uid },
    summary: 'nothing is in the way: pod default/web has all of its 3 volumes mounted',
    obstacles: [],
    conditions: [],
    notes: [],
  });
  assert.equal(found('data').summary, 'nothing is in the way of volume data: it is mounted for 1 of 1 pod');
  assert.equal(
    found('db', facts({ pods: [DB] })).summary,
    'nothing is in the way: pod default/db uses no volume',
  );
});

test('a failure says what, how often, for how long, and when it is tried again', () => {
  const { summary, obstacles } = found('db');
  assert.equal(summary, 'pod default/db: 0 of 1 volume mounted');
  assert.deepEqual(
    obstacles.map(({ sentence }) => sentence),
    [
      `volume ${LOGS.specName}: stage failed 3 times (driver-busy) for 41s: the driver is busy; next try in 12s`,
    ],
  );
});

test('a missing driver is named, and with it why it was refused', () => {
  const { obstacles, notes } = found('archive');
  assert.equal(
    obstacles[0]?.sentence,
    'waits for 10m for driver nfs.csi.k8s.io to register on this node; ' +
      'it goes on by itself as soon as it does',
  );
  assert.deepEqual(notes, [
    'driver nfs.csi.k8s.io at /var/lib/mooring/plugins_registry/nfs-reg.sock was refused: ' +
      'its endpoint /tmp/csi.sock is outside the plug-in directories',
  ]);
});

test('who blocks is named, once', () => {
  const { summary, obstacles } = found('default/old');
  assert.equal(summary, 'pod default/old is no longer wanted; 1 volume of it still to be taken down');
  assert.equal(
    obstacles[0]?.sentence,
    'volume old-data: unpublish failed 5 times (mount-busy) for 1m: ' +
      'the mount is in use, blocked by pid 4711 (tail); next try in 4s',
  );
  const twice = found('typo').obstacles[0]?.sentence ?? '';
  assert.equal(twice.split('ConfigMap default/settings').length, 2);
});

test('every kind of obstacle makes a sentence of its own', () => {
  const sentence = (rest: Partial<Obstacle>): string => {
    const given = facts({ desired: desired([wanted(DATA, WEB)]), obstacles: [obstacle(DATA, rest)] });
    return found('volume:data', given).obstacles[0]?.sentence ?? '';
  };
  assert.equal(
    sentence({ kind: 'running', attempts: 0, sinceMs: 999_500 }),
    'stage has been running for 500ms',
  );
  const lastFailure = { code: 'driver-busy', message: 'busy', effect: 'none', blocker: 'pid 7' } as const;
  assert.equal(
    sentence({ kind: 'running', sinceMs: 999_500, lastFailure }),
    'stage has been running for 500ms; before that it failed 3 times (driver-busy): busy, blocked by pid 7',
  );
  assert.equal(
    sentence({ kind: 'waiting-retry', attempts: 1, nextRetryMs: 900_000 }),
    'stage failed once (driver-busy) for 41s: the driver is busy; the next try is due now',
  );
  assert.equal(
    sentence({ kind: 'waiting-change', code: 'driver-unimplemented' }),
    'stage failed (driver-unimplemented) for 41s: the driver is busy; ' +
      'it is not tried again before the wish or the driver changes',
  );
  for (const code of ['not-attached', 'in-use-unreported'] as const)
    assert.equal(
      sentence({ kind: 'waiting-change', operation: 'attach', code, message: 'the cluster has to act' }),
      `attach failed (${code}) for 41s: the cluster has to act; it goes on by itself when that has changed`,
    );
  assert.equal(
    sentence({ kind: 'waiting-turn', code: undefined, message: 'publish runs', blocker: 'publish' }),
    'stage waits for 41s for its turn: publish runs',
  );
  assert.equal(
    sentence({ kind: 'blocked', code: 'reference-missing', message: 'no Secret', blocker: 'Secret a/b' }),
    'cannot be set up for 41s (reference-missing): no Secret, blocked by Secret a/b; ' +
      'it goes on by itself when that is put right',
  );
  assert.equal(
    sentence({ kind: 'frozen', operation: 'unpublish', message: 'the wish is unknown' }),
    'unpublish is held back for 41s: the wish is unknown',
  );
});

test('an obstacle of the whole volume is told once, those of single pods for each', () => {
  const key = publicationKey(WEB.uid, 'data');
  const given = facts({
    desired: desired([wanted(DATA, WEB, DB)]),
    obstacles: [
      obstacle(DATA, {}),
      obstacle(DATA, { publication: key, code: 'mount-failed', operation: 'publish' }),
    ],
  });
  assert.deepEqual(
    found('data', given).obstacles.map(({ pod: name, reason }) => [name, reason.code]),
    [
      [null, 'driver-busy'],
      ['default/web', 'mount-failed'],
    ],
  );
});

test('one who waits for a turn is told who is at work', () => {
  const given = facts({
    desired: desired([wanted(DATA, WEB, DB)]),
    obstacles: [
      obstacle(DATA, { kind: 'waiting-turn', publication: publicationKey(WEB.uid, 'data'), code: undefined }),
    ],
    running: [
      {
        operation: { kind: 'publish', volume: DATA.id, publication: publicationKey(DB.uid, 'data') },
        lane: 'l',
        phase: 'running',
        sinceMs: 990_000,
        begunMs: 0,
        step: { kind: 'working', sinceMs: 0, signMs: 0 },
        progress: undefined,
        setback: undefined,
      },
    ],
  });
  assert.deepEqual(found('default/web', given).notes, [
    'publish of volume data has been running since 2026-11-21T11:59:50.000Z',
  ]);
});

test('an ambiguous subject lists what it can mean, in words that can be used', () => {
  const other = pod('web', '99999999-9999-4999-8999-999999999999', 'shop');
  const given = facts({ desired: desired([wanted(DATA, WEB, other)]), pods: [WEB, other] });
  const message = refused('web', given);
  assert.match(
    message,
    /^ambiguous: "web" can mean pod:1{8}-.* \(default\/web\), pod:9{8}-.* \(shop\/web\); say which$/,
  );
  assert.equal(found('shop/web', given).subject.id, other.uid);
  const clash = facts({
    actual: new Map([[DATA.id, actual(DATA, PRESENT, PRESENT, pod('data', GONE.uid))]]),
  });
  assert.match(refused('data', clash), /ambiguous.*pod:.*volume:kubernetes.io\/csi/);
  assert.equal(found('volume:data', clash).subject.kind, 'volume');
});

test('an unknown subject is told what is near, what was rejected, or where to look', () => {
  assert.equal(
    refused('wbe'),
    'unknown: no pod and no volume is called "wbe". broken.yaml cannot be read now, and may tell of it. ' +
      'Did you mean "web"?',
  );
  assert.equal(
    refused('default/bad'),
    'unknown: no pod and no volume is called "default/bad". Pod default/bad in ' +
      'bad.yaml#2 was rejected: spec.volumes[0].csi.driver: expected a driver name.',
  );
  for (const name of ['pod:bad', 'pod:default/bad'])
    assert.match(
      refused(name),
      /called "pod:.*bad"\. Pod default\/bad in bad\.yaml#2 was rejected: spec\.volumes/,
    );
  assert.match(refused('pod:wbe'), /Did you mean "web"\?$/);
  assert.match(refused('zzzzzz'), /"mooring status" lists all there are\.$/);
  assert.match(refused('web', facts({})), /The agent knows no pods and no volumes\.$/);
  assert.match(refused('\u001b[31m'), /"\\u001b\[31m"/);
});

test('a pod of a manifest that was never readable is told where it may be', () => {
  const unread = (...origins: string[]) =>
    facts({ desired: desired([], { unknownOrigins: new Set(origins) }) });
  assert.equal(
    refused('web', unread('web.yaml')),
    'unknown: no pod and no volume is called "web". web.yaml cannot be read now, and may tell of it. ' +
      'The agent knows no pods and no volumes.',
  );
  const many = refused('web', unread('e.yaml', 'a.yaml', 'b.yaml', 'c.yaml', 'd.yaml'));
  assert.match(many, /a\.yaml, b\.yaml, c\.yaml and 2 more cannot be read now, and may tell of it\./);
});

/** The node of the tests as one of a cluster that takes it for lost, and the volume attached for these pods. */
function unready(
  pods: DetachReport['pods'],
  more: Partial<DetachReport> = {},
  owners = [WEB, DB],
): StatusFacts {
  const detachClock: DetachReport = {
    ...{ ready: 'Unknown', sinceWallMs: undefined, seenMs: 990_000, outOfService: false, pods },
    ...more,
  };
  const here = { ...actual(DATA, PRESENT, PRESENT, ...owners), attached: PRESENT };
  const needs = { ...here.needs, attach: true };
  return facts({
    pods: owners,
    desired: desired([wanted(DATA, ...owners)]),
    actual: new Map([[DATA.id, { ...here, needs }]]),
    cluster: {
      ...{ server: 'https://k:6443', state: 'following', sinceMs: 1, message: '', pods: owners.length },
      detachClock,
    },
  });
}

test('D-126: of a node that is not Ready each pod that keeps a volume from being taken is named, and why', () => {
  const notes = (...given: Parameters<typeof unready>) => found('data', unready(...given)).notes;
  const begin = 'this node has not been Ready (Unknown): volume data is detached by force';
  const force = '6 minutes (at once, if the node is marked node.kubernetes.io/out-of-service)';
  const there = { kind: 'there', markedFromMs: undefined } as const;
  const ended = { kind: 'ended', sinceMs: 940_000 } as const;
  const both: DetachReport['pods'] = new Map<PodUid, PodDemand>([
    [WEB.uid, there],
    [DB.uid, { kind: 'staying' }],
  ]);
  assert.deepEqual(notes(both), [
    `${begin} ${force} after pod default/db (it tolerates what the node is tainted with, and is not marked for ` +
      'deletion), pod default/web (to be marked for deletion when the node is tainted) are gone from the cluster',
  ]);
  const many = Array.from({ length: 5 }, (_, index) => pod(`p${index}`, `u-${index}`));
  const [told] = notes(new Map(many.map(({ uid }) => [uid, there])), {}, many);
  assert.match(told ?? '', /pod default\/p2 \(to be marked [a-z ]+\) and 2 more are gone from the cluster$/);
  assert.deepEqual(notes(new Map([[WEB.uid, ended]])), [
    `${begin} from 2026-11-21T12:05:00.000Z on, as no pod has had it since 2026-11-21T11:59:00.000Z`,
  ]);
  assert.deepEqual(notes(new Map()), [`${begin} at any moment, as no pod has it`]);
  assert.deepEqual(notes(new Map([[DB.uid, { kind: 'leaving' }]]), { outOfService: true }), [
    'this node has not been Ready (Unknown), and it is marked node.kubernetes.io/out-of-service: volume data is ' +
      'detached by force at once after pod default/db (it is marked for deletion) is gone from the cluster',
  ]);
});

test('D-126: what is not attached here cannot be taken, and nothing is told of it', () => {
  const given = unready(new Map());
  const standing = [...given.actual.values()].map((one) => ({ ...one, attached: ABSENT }));
  const actualState = new Map(standing.map((one) => [one.spec.id, one]));
  assert.deepEqual(found('data', { ...given, actual: actualState }).notes, []);
});
