import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statusOf } from '../../../agent/status/status.ts';
import type { StatusFacts } from '../../../agent/status/status-facts.ts';
import type { PodVolumeStatus, StatusDocument } from '../../../agent/status/status-document.ts';
import { statusText } from '../../../agent/cli/status-text.ts';
import { publicationKey } from '../../../plugins/volume.ts';
import { ABSENT, BEGUN, PRESENT } from '../../../reconciler/model/actual-state.ts';
import { CountedMap } from '../counted-reads.ts';
import {
  actual,
  DATA,
  DB,
  GONE,
  desired,
  facts,
  LAYOUT,
  obstacle,
  pod,
  richFacts,
  secret,
  SECRET_CANARY,
  wanted,
  WEB,
} from '../status-fixture.ts';

function status(given: StatusFacts): StatusDocument {
  return statusOf(given, LAYOUT, 'r-1');
}

function onlyPlace(given: Partial<StatusFacts>): PodVolumeStatus {
  const [place] = status(facts(given)).pods.flatMap(({ volumes }) => volumes);
  assert(place !== undefined);
  return place;
}

const WANTED = { desired: desired([wanted(DATA, WEB)]), pods: [WEB] };
const THERE = new Map([[DATA.id, actual(DATA, PRESENT, PRESENT, WEB)]]);

test('a published volume is mounted, says where, and its pod is ready', () => {
  const document = status(facts({ ...WANTED, actual: THERE }));
  assert.deepEqual(document.pods, [
    {
      namespace: 'default',
      name: 'web',
      uid: WEB.uid,
      wanted: true,
      ready: true,
      volumes: [
        {
          name: 'data',
          id: DATA.id,
          plugin: 'kubernetes.io/csi',
          driver: 'loopfile.mooring.dev',
          wanted: true,
          state: 'mounted',
          rungs: { attached: 'not-needed', staged: 'present', published: 'present' },
          readOnly: false,
          path: `/var/lib/mooring/pods/${WEB.uid}/volumes/kubernetes.io~csi/data/mount`,
          image: null,
          supplementalGid: null,
          origin: 'web.yaml',
          reason: null,
        },
      ],
    },
  ]);
});

test('a volume that is wanted and not there says on which way it is', () => {
  const state = (kind: Parameters<typeof obstacle>[1]): string => {
    return onlyPlace({ ...WANTED, obstacles: [obstacle(DATA, kind)] }).state;
  };
  assert.equal(onlyPlace(WANTED).state, 'mounting');
  assert.equal(state({ kind: 'running' }), 'mounting');
  assert.equal(state({ kind: 'waiting-retry' }), 'waiting');
  assert.equal(state({ kind: 'waiting-driver' }), 'waiting');
  assert.equal(state({ kind: 'waiting-turn' }), 'waiting');
  assert.equal(state({ kind: 'waiting-change' }), 'blocked');
  assert.equal(state({ kind: 'blocked' }), 'blocked');
  assert.equal(state({ kind: 'quarantined' }), 'blocked');
  // ReadWriteOncePod: the other pod need only go.
  assert.equal(state({ kind: 'blocked', code: 'volume-in-use' }), 'waiting');
});

test('what is not wanted any more is unmounting, or kept while the wish is not known', () => {
  const state = (kind: Parameters<typeof obstacle>[1]): string => {
    return onlyPlace({ actual: THERE, obstacles: [obstacle(DATA, kind)] }).state;
  };
  assert.equal(onlyPlace({ actual: THERE }).state, 'unmounting');
  assert.equal(state({ kind: 'waiting-retry' }), 'unmounting');
  assert.equal(state({ kind: 'gate-closed' }), 'kept');
  assert.equal(state({ kind: 'frozen' }), 'kept');
});

test('a doubtful mount is not called mounted', () => {
  const doubtful = new Map([[DATA.id, actual(DATA, PRESENT, BEGUN, WEB)]]);
  const document = status(facts({ ...WANTED, actual: doubtful }));
  assert.equal(document.pods[0]?.ready, false);
  assert.equal(document.pods[0]?.volumes[0]?.rungs.published, 'unsure');
  assert.equal(document.pods[0]?.volumes[0]?.state, 'mounting');
});

test('the obstacle of the place comes before that of the volume, and another pod has its own', () => {
  const both = desired([wanted(DATA, WEB, DB)]);
  const own = obstacle(DATA, {
    publication: publicationKey(WEB.uid, 'data'),
    code: 'mount-failed',
    operation: 'publish',
  });
  const document = status(facts({ desired: both, obstacles: [obstacle(DATA, {}), own] }));
  const codes = document.pods.map(({ name, volumes }) => [name, volumes[0]?.reason?.code]);
  assert.deepEqual(codes, [
    ['db', 'driver-busy'],
    ['web', 'mount-failed'],
  ]);
  assert.equal(document.volumes[0]?.reason?.code, 'driver-busy');
});

test('a reason carries since, how long, and when the next try is', () => {
  const place = onlyPlace({ ...WANTED, obstacles: [obstacle(DATA, { blocker: 'pid 7' })] });
  assert.deepEqual(place.reason, {
    kind: 'waiting-retry',
    code: 'driver-busy',
    operation: 'stage',
    message: 'the driver is busy',
    blocker: 'pid 7',
    since: '2026-11-21T11:59:19.000Z',
    forMs: 41_000,
    nextRetryInMs: 12_000,
    attempts: 3,
    lastFailure: null,
    progress: null,
    step: null,
  });
  const lastFailure = { code: 'driver-busy', message: 'busy', effect: 'none' } as const;
  const again = onlyPlace({ ...WANTED, obstacles: [obstacle(DATA, { kind: 'running', lastFailure })] });
  assert.deepEqual(again.reason?.lastFailure, { code: 'driver-busy', message: 'busy', blocker: null });
  const overdue = onlyPlace({ ...WANTED, obstacles: [obstacle(DATA, { nextRetryMs: 1 })] });
  assert.equal(overdue.reason?.nextRetryInMs, 0);
});

test('a mounted volume does not show what only concerns the volume as a whole', () => {
  assert.equal(onlyPlace({ ...WANTED, actual: THERE, obstacles: [obstacle(DATA, {})] }).reason, null);
});

test('a pod without volumes is there and ready; a pod that is gone is not ready', () => {
  const document = status(facts({ pods: [DB], actual: THERE }));
  assert.deepEqual(
    document.pods.map(({ name, wanted: isWanted, ready }) => [name, isWanted, ready]),
    [
      ['db', true, true],
      ['web', false, false],
    ],
  );
});

test('everything is counted once', () => {
  const { summary } = status(richFacts());
  assert.deepEqual(summary, {
    pods: 5,
    podsWanted: 4,
    podsReady: 1,
    volumes: 6,
    mounted: 3,
    mounting: 0,
    waiting: 2,
    blocked: 1,
    unmounting: 1,
    kept: 0,
    operationsRunning: 0,
    operationsQueued: 0,
    operationsOverdue: 0,
    driversRegistered: 1,
    driversRefused: 1,
    objectsRejected: 1,
    sourcesUnknown: 1,
    unreadableRecords: 0,
    abandonedCalls: 0,
    quarantined: 0,
    unanswered: 0,
    unhealthy: 0,
    strangers: 0,
  });
});

test('A-021, A-038: the document holds no secret, mount option, attribute or publish context', () => {
  const text = JSON.stringify(status(richFacts()));
  assert.equal(text.includes(SECRET_CANARY), false);
  assert.equal(statusText(status(richFacts()), { look: LOOK, wide: true }).includes(SECRET_CANARY), false);
});

test('no key is ever left out, so that a reader finds null', () => {
  const [place] = status(facts(WANTED)).pods.flatMap(({ volumes }) => volumes);
  const text = JSON.parse(JSON.stringify(status(richFacts()))) as StatusDocument;
  const keys = Object.keys(place ?? {}).sort();
  for (const one of text.pods.flatMap(({ volumes }) => volumes))
    assert.deepEqual(Object.keys(one).sort(), keys);
});

test('control characters of strangers are escaped, and long messages cut', () => {
  const evil = pod('web', WEB.uid);
  const message = `\u001b[2J\n${'x'.repeat(5_000)}`;
  const place = onlyPlace({
    desired: desired([wanted(DATA, evil)]),
    obstacles: [obstacle(DATA, { message })],
  });
  assert.match(place.reason?.message ?? '', /^\\u001b\[2J\\u000ax+…$/);
  assert.equal(Buffer.byteLength(place.reason?.message ?? '') <= 1_024, true);
});

test('a status of 2,000 places is made in a moment', () => {
  const pods = Array.from({ length: 1_000 }, (_, index) => pod(`p${index}`, `u-${index}`));
  const many = desired([wanted(DATA, ...pods)]);
  const count = { reads: 0 };
  const one = actual(DATA, ABSENT, PRESENT, ...pods);
  const document = status(
    facts({
      desired: many,
      actual: new Map([[DATA.id, { ...one, publications: new CountedMap(one.publications, count) }]]),
    }),
  );
  assert.equal(document.summary.mounted, 1_000);
  assert.ok(count.reads < 50 * 1_000, `${count.reads} reads`);
});

const LOOK = { widthMax: 80, colour: false, unicode: true } as const;

test('D-126: a node that is not Ready says what takes volumes from it, and how many pods are in the way', () => {
  const detachClock = {
    ...{ ready: 'False' as const, sinceWallMs: Date.UTC(2026, 10, 21, 11), seenMs: 1, outOfService: false },
    pods: new Map([
      [WEB.uid, { kind: 'there', markedFromMs: Date.UTC(2026, 10, 21, 11, 5) } as const],
      [DB.uid, { kind: 'leaving' } as const],
      [GONE.uid, { kind: 'ended', sinceMs: 999_000 } as const],
    ]),
  };
  const cluster = { server: 'https://k:6443', state: 'following', sinceMs: 1, message: '', pods: 2 } as const;
  const document = status(facts({ cluster: { ...cluster, detachClock } }));
  assert.deepEqual(document.sources.cluster?.detachClock, {
    ready: 'False',
    since: '2026-11-21T11:00:00.000Z',
    outOfService: false,
    pods: [
      { uid: WEB.uid, state: 'there', markedFrom: '2026-11-21T11:05:00.000Z', endedSince: null },
      { uid: DB.uid, state: 'leaving', markedFrom: null, endedSince: null },
      { uid: GONE.uid, state: 'ended', markedFrom: null, endedSince: '2026-11-21T11:59:59.000Z' },
    ],
  });
  const text = statusText(document, { look: { ...LOOK, widthMax: undefined }, wide: false });
  assert.match(
    text,
    /This node has not been Ready since 2026-11-21T11:00:00.* \(False\): .* 1 are there, 1 marked .*, 1 gone\./,
  );
  const never = { ...detachClock, sinceWallMs: 9e15 };
  assert.equal(
    status(facts({ cluster: { ...cluster, detachClock: never } })).sources.cluster?.detachClock?.since,
    null,
  );
});

test('the table fits the terminal, and names what stands in the way below its line', () => {
  const text = statusText(status(richFacts()), { look: LOOK, wide: false });
  for (const line of text.split('\n')) assert.equal([...line].length <= 80, true, line);
  assert.match(text, /^✗ worker-1 · 1 of 4 pods ready · up 16m40s · mooring /);
  assert.match(
    text,
    /default\/db {2,}pvc-0f3a9c52-.*… {2}loopfile.mooring.dev {2}◌ waiting\n {4}└ stage failed 3 times/,
  );
  assert.match(text, /\n {4}└ [^\n]+\n {6}in 12s\n/);
  assert.match(text, /Rejected: Pod default\/bad in bad.yaml#2: spec.volumes/);
  assert.match(text, /what came from it is kept: broken.yaml/);
});

test('a pipe gets whole names, one line per sentence, and no colour', () => {
  const text = statusText(status(richFacts()), { look: { ...LOOK, widthMax: undefined }, wide: false });
  assert.match(text, /pvc-0f3a9c52-7b1e-4b43-9a55-2d7c3f1e8b60/);
  assert.equal(text.includes('\u001b'), false);
  assert.equal(text.split('\n').filter((line) => line.includes('└')).length, 5);
});

test('what a pod has of an object is told as read-only: no container can write to it', () => {
  for (const kind of ['secret', 'config-map', 'downward-api', 'projected'] as const) {
    const content = { ...secret(WEB, 'settings'), kind };
    const unmounted = { desired: desired([wanted(content, WEB)]), pods: [WEB] };
    const mounted = { ...unmounted, actual: new Map([[content.id, actual(content, ABSENT, PRESENT, WEB)]]) };
    assert.deepEqual(
      [unmounted, mounted].map((one) => onlyPlace(one).readOnly),
      [true, true],
      kind,
    );
    const text = statusText(status(facts(mounted)), { look: LOOK, wide: true });
    assert.match(text, /settings .* present +ro /, kind);
  }
});

test('a terminal that knows only ASCII gets only ASCII', () => {
  const text = statusText(status(richFacts()), { look: { ...LOOK, unicode: false }, wide: false });
  assert.match(text, /^[\x20-\x7e\n]+$/);
});

test('an empty node says so', () => {
  assert.match(
    statusText(status(facts({})), { look: LOOK, wide: false }),
    /0 of 0 pods ready.*\n\nNo pods and no volumes.\n$/s,
  );
});

test('a volume that is still to be taken down is not passed over where no pod is left', () => {
  const left = facts({ actual: new Map([[DATA.id, actual(DATA, ABSENT, PRESENT)]]) });
  assert.match(
    statusText(status(left), { look: LOOK, wide: false }),
    /0 of 0 pods ready.*\n\nNo pods; 1 volume of pods that have gone is not down yet.\n/s,
  );
});

test('before everything has been read the status says that nothing is taken down', () => {
  const early = facts({ desired: desired([], { complete: false }) });
  assert.match(
    statusText(status(early), { look: LOOK, wide: false }),
    /Not everything that is wanted has been read yet/,
  );
});
