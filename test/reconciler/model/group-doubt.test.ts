import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PublicationKey } from '../../../plugins/volume.ts';
import type { ActualVolume } from '../../../reconciler/model/actual-state.ts';
import { learn } from '../../../reconciler/model/belief-change.ts';
import { actual } from '../world.ts';

/** Pods by their group; the one that goes is the last. */
function shared(
  going: 'present' | 'unsure',
  groups: Readonly<Record<string, number | undefined>>,
): ActualVolume {
  const names = Object.keys(groups);
  const pods = Object.fromEntries(
    names.map((name) => [name, name === names.at(-1) ? going : 'present'] as const),
  );
  const volume = actual('data', { staged: 'present', pods });
  const publications = [...volume.publications].map(([key, entry]) => {
    const gid = groups[entry.spec.pod.name];
    const fsGroup = gid === undefined ? {} : { fsGroup: { gid, changePolicy: 'OnRootMismatch' } as const };
    return [key, { ...entry, spec: { ...entry.spec, ...fsGroup } }] as const;
  });
  return { ...volume, publications: new Map(publications) };
}

/** Who is there, and how surely, when the last pod's place is down. */
function afterTheLastIsDown(volume: ActualVolume): string[] {
  const publication = [...volume.publications.keys()].at(-1) as PublicationKey;
  const operation = { kind: 'unpublish', volume: volume.spec.id, publication } as const;
  const left = learn(volume, volume, operation, { kind: 'done', learnt: {} });
  return [...left.publications.values()].map(({ spec, presence }) => `${spec.pod.name} ${presence.kind}`);
}

test('RC-16: a pod whose volume may be half another group’s is published, and walked, again', () => {
  assert.deepEqual(afterTheLastIsDown(shared('unsure', { a: 1_000, b: 1_000, gone: 2_000 })), [
    'a present',
    'b unsure',
  ]);
});

test('a pod that has a dead volume keeps its place: no walk could put its group right', () => {
  const failure = { code: 'file-system-dead', message: 'EIO', effect: 'unknown' } as const;
  const volume = shared('unsure', { a: 1_000, gone: 2_000 });
  assert.deepEqual(afterTheLastIsDown({ ...volume, sickness: { failure, of: 'stage' } }), ['a present']);
});

test('nobody is walked again for a place that was surely there, or was of the same group, or of none', () => {
  for (const volume of [
    shared('present', { a: 1_000, gone: 2_000 }),
    shared('unsure', { a: 2_000, gone: 2_000 }),
    shared('unsure', { a: 1_000, gone: undefined }),
    shared('unsure', { a: undefined, gone: 2_000 }),
  ]) {
    assert.deepEqual(afterTheLastIsDown(volume), ['a present']);
  }
});
