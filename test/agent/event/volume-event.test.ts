import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EventView, volumeEvents } from '../../../agent/event/volume-event.ts';
import type { VolumeSpec } from '../../../plugins/volume.ts';
import { onTheGround, PRESENT } from '../../../reconciler/model/actual-state.ts';
import type { Obstacle } from '../../../reconciler/model/obstacle.ts';
import { csiSpec } from '../../plugins/csi-spec.ts';
import * as node from '../status-fixture.ts';

const NEEDS = { attach: false, stage: true, expand: false };
const ORIGIN = 'https://server node n1';
const FAILURE = {
  code: 'reference-missing',
  message: 'Secret default/a is missing',
  effect: 'none',
} as const;

/** `WEB` and `DB` are pods of the cluster, `JOB` is of a file. */
function view(
  obstacles: readonly Obstacle[],
  more: Partial<ReturnType<EventView['reconciler']['desired']>> = {},
) {
  const spec = node.DATA;
  const both = [node.WEB, node.DB].map((pod) => ({
    ...node.publication(pod, spec.specName),
    origin: ORIGIN,
  }));
  const wanted = node.wanted(spec, node.WEB, node.DB, node.JOB);
  const known = onTheGround(spec, NEEDS);
  const publications = new Map(
    both.map((place) => [
      place.key,
      { spec: place, presence: PRESENT, generation: undefined, mount: undefined },
    ]),
  );
  return {
    reconciler: {
      actual: () => new Map([[spec.id, { ...known, publications }]]),
      desired: () => node.desired([wanted], more),
      obstacles: () => obstacles,
    },
    desiredObjects: {
      pods: new Map([
        [node.WEB.uid, { origin: ORIGIN }],
        [node.DB.uid, { origin: ORIGIN }],
        [node.JOB.uid, { origin: '/etc/mooring/manifests/job.yaml' }],
      ]),
      rejected: [],
    },
  } satisfies EventView;
}

function said(obstacle: Partial<Obstacle>, spec: VolumeSpec = node.DATA): readonly (readonly unknown[])[] {
  const whole = node.obstacle(spec, { lastFailure: undefined, ...obstacle });
  return volumeEvents(view([whole]), ORIGIN).map(({ subject, reason, code, sayAfterMs }) => [
    `${subject.kind} ${subject.name}`,
    reason,
    code,
    sayAfterMs,
  ]);
}

const place = (pod: typeof node.WEB) => node.publication(pod, node.DATA.specName).key;

test('what keeps one place down is said of its pod, what keeps the volume down of each pod that wants it', () => {
  const failed = { kind: 'waiting-retry', code: 'driver-busy', attempts: 3 } as const;
  assert.deepEqual(said({ ...failed, operation: 'publish', publication: place(node.WEB) }), [
    ['Pod web', 'FailedMount', 'driver-busy', 2_000],
  ]);
  assert.deepEqual(said({ ...failed, operation: 'stage', publication: undefined }), [
    ['Pod web', 'FailedMount', 'driver-busy', 2_000],
    ['Pod db', 'FailedMount', 'driver-busy', 2_000],
  ]);
});

test('of a pod that has no object in the cluster nothing is said', () => {
  assert.deepEqual(
    said({ kind: 'waiting-driver', operation: 'publish', publication: place(node.JOB), attempts: 0 }),
    [],
  );
});

test('who has to act on an attachment is said after a quarter of a minute, and a way down with its object', () => {
  const waits = { kind: 'blocked', code: 'not-attached', attempts: 0 } as const;
  assert.deepEqual(said({ ...waits, kind: 'waiting-driver', operation: 'attach', publication: undefined }), [
    ['Pod web', 'WaitingForAttachment', 'not-attached', 15_000],
    ['Pod db', 'WaitingForAttachment', 'not-attached', 15_000],
  ]);
  const held = { kind: 'waiting-retry', code: 'volume-held', attempts: 1 } as const;
  assert.deepEqual(said({ ...held, operation: 'unpublish', publication: place(node.DB) }), [
    ['Pod db', 'FailedUnmount', 'volume-held', 15_000],
  ]);
  assert.deepEqual(said({ ...held, operation: 'unstage', publication: undefined }), [
    ['PersistentVolume data', 'FailedUnmountDevice', 'volume-held', 15_000],
  ]);
  assert.deepEqual(
    said({ kind: 'quarantined', code: undefined, operation: undefined, publication: undefined }),
    [['PersistentVolume data', 'VolumeQuarantined', 'quarantined', 15_000]],
  );
});

test('work that goes on is no trouble, unless it goes on for too long, or the try before has failed', () => {
  const runs = { kind: 'running', code: undefined, operation: 'stage', publication: undefined } as const;
  assert.deepEqual(said({ ...runs, attempts: 0 }), []);
  assert.equal(said({ ...runs, overdue: true })[0]?.[2], 'running');
  assert.equal(said({ ...runs, lastFailure: FAILURE })[0]?.[2], 'reference-missing');
});

test('a device is mapped, not mounted', () => {
  const device = csiSpec(node.DRIVER, 'vol-data', 'data', { mode: 'Block' });
  const failed = { kind: 'waiting-retry', code: 'driver-busy', attempts: 1, operation: 'stage' } as const;
  const now = view([node.obstacle(device, { ...failed, publication: undefined, lastFailure: undefined })]);
  const [known] = now.reconciler.actual().values();
  const reconciler = {
    ...now.reconciler,
    actual: () => new Map(known === undefined ? [] : [[device.id, { ...known, spec: device }]]),
  };
  assert.equal(volumeEvents({ ...now, reconciler }, ORIGIN)[0]?.reason, 'FailedMapVolume');
});

test('what a volume lacks to be wanted at all is said of its pod, by its name in the pod', () => {
  const unresolved = [node.WEB, node.JOB].map((pod) => ({ pod, volumeName: 'settings', failure: FAILURE }));
  const events = volumeEvents(view([], { unresolved }), ORIGIN);
  assert.deepEqual(
    events.map(({ subject, reason, message }) => [subject.name, reason, message]),
    [['web', 'FailedMount', 'volume "settings": Secret default/a is missing']],
  );
});

test('a pod that waits as a whole is told why; what is refused beside that has no object to say it of', () => {
  const { desiredObjects, ...now } = view([]);
  const message = 'it waits for PersistentVolumeClaim default/data: no marks';
  const rejected = [
    { pod: node.WEB, message },
    { message },
    { pod: node.DB, field: 'spec.volumes', message },
  ];
  const events = volumeEvents({ ...now, desiredObjects: { ...desiredObjects, rejected } }, ORIGIN);
  assert.deepEqual(
    events.map(({ subject, reason, message: said, sayAfterMs }) => [subject.name, reason, said, sayAfterMs]),
    [
      ['web', 'FailedMount', message, 15_000],
      ['db', 'FailedMount', `spec.volumes: ${message}`, 15_000],
    ],
  );
});
