import assert from 'node:assert/strict';
import { test } from 'node:test';
import { publicationKey, type PodUid, type VolumeId } from '../../../plugins/volume.ts';
import type { Wait } from '../../../reconciler/model/obstacle.ts';
import { createObstacleBook } from '../../../reconciler/run/obstacle-book.ts';

const VOLUME = 'kubernetes.io/csi/d^data' as VolumeId;
const WEB = publicationKey('uid-web' as PodUid, 'data');
const OTHER = publicationKey('uid-other' as PodUid, 'data');

function told(...waits: readonly Wait[]) {
  const book = createObstacleBook({ nowMs: () => 0 }, () => assert.fail('nothing is under way'));
  book.replace(
    VOLUME,
    waits.map((wait) => ({ from: 'plan', wait })),
  );
  return book.list([]).map(({ publication, operation, kind }) => [publication, operation, kind]);
}

function wait(operation: Wait['operation'], publication: Wait['publication'], kind: Wait['kind']): Wait {
  return { kind, operation, publication, failure: undefined };
}

test('INV-34: a place that has two things to wait for has one reason, the one that comes first', () => {
  // What came late is given back beside what is to be set up there, and both wait for the driver.
  const waits = [
    wait('unpublish', WEB, 'waiting-driver'),
    wait('publish', WEB, 'waiting-driver'),
    wait('publish', OTHER, 'waiting-driver'),
  ];
  assert.deepEqual(told(...waits), [
    [WEB, 'unpublish', 'waiting-driver'],
    [OTHER, 'publish', 'waiting-driver'],
  ]);
});

test('a quarantine is the reason only where there is no other', () => {
  const quarantined = wait('publish', WEB, 'quarantined');
  assert.deepEqual(told(quarantined), [[WEB, 'publish', 'quarantined']]);
  assert.deepEqual(told(quarantined, wait('unpublish', WEB, 'waiting-driver')), [
    [WEB, 'unpublish', 'waiting-driver'],
  ]);
});
