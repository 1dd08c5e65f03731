import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PodUid, publicationKey, RECONSTRUCTED } from '../../../plugins/volume.ts';
import { type ActualVolume, onTheGround, RESTARTED } from '../../../reconciler/model/actual-state.ts';
import { learn } from '../../../reconciler/model/belief-change.ts';
import { createBelief } from '../../../reconciler/model/belief.ts';
import { createRandom } from '../../sim/random.ts';
import { csiSpec } from '../../plugins/csi-spec.ts';
import { bytes, place } from '../world.ts';

const NO_NEEDS = { attach: false, stage: false, expand: false };
const PODS = ['web', 'db', 'job'] as PodUid[];

function volume(name: string, pods: readonly PodUid[]): ActualVolume {
  const publications = new Map(
    pods.map((pod) => {
      const key = publicationKey(pod, name);
      const spec = { ...place(pod, name), key };
      return [key, { spec, presence: RESTARTED, generation: undefined, mount: undefined }];
    }),
  );
  return { ...onTheGround(csiSpec('driver.example', name, name), NO_NEEDS), publications };
}

test('the volumes of a pod are those that have a place of it, whatever was believed before', () => {
  const random = createRandom(11);
  const belief = createBelief(new Map());
  for (let change = 0; change < 2_000; change += 1) {
    const one = volume(
      random.pick(['a', 'b', 'c', 'd']),
      PODS.filter(() => random.chance(0.4)),
    );
    const known = belief.volumes.has(one.spec.id);
    if (known && random.chance(0.3)) belief.forget(one.spec.id);
    else if (known && random.chance(0.5)) belief.observe({ ...one, needs: NO_NEEDS });
    else belief.begin(one);
    for (const pod of PODS) {
      const expected = [...belief.volumes.values()].filter(({ publications }) => {
        return [...publications.values()].some(({ spec }) => spec.pod.uid === pod);
      });
      assert.deepEqual(new Set(belief.ofPod(pod)), new Set(expected));
    }
  }
});

test('a look speaks of what is known, and does not change what a volume needs', () => {
  const belief = createBelief(new Map());
  const one = volume('a', ['web' as PodUid]);
  for (const door of [belief.observe, belief.expect, belief.learn]) assert.throws(() => door(one), /known/);
  belief.begin(one);
  assert.throws(() => belief.observe({ ...one, needs: { ...NO_NEEDS, stage: true } }), /needs/);
  assert.throws(() => belief.learn({ ...one, publications: new Map() }), /forgotten/);
  assert.equal(belief.volumes.get(one.spec.id), one);
});

test('what stands keeps the attachment that it was set up under; what does not takes that of the grant', () => {
  const down = onTheGround(csiSpec('driver.example', 'a', 'a'), { ...NO_NEEDS, attach: true });
  const operation = { kind: 'attach', volume: down.spec.id } as const;
  const granted = { kind: 'done', learnt: { attachmentUid: 'two' } } as const;
  for (const [volume, uid] of [
    [down, 'two'],
    [{ ...down, attachmentUid: 'one' }, 'two'],
    [{ ...down, attachmentUid: 'one', staged: RESTARTED }, 'one'],
    [{ ...down, staged: RESTARTED }, 'two'],
  ] as const)
    assert.equal(learn(volume, volume, operation, granted).attachmentUid, uid);
});

test('A-071: a place that was never set up is not the last one to go, with which "in use" would end', () => {
  const refusedExpansion = { toBytes: bytes(20), because: 'in-use', message: 'in use' } as const;
  const down = onTheGround(csiSpec('driver.example', 'a', 'a'), { ...NO_NEEDS, expand: true });
  const before: ActualVolume = { ...down, staged: RESTARTED, refusedExpansion };
  const publication = publicationKey('web' as PodUid, 'a');
  const place = volume('a', ['web' as PodUid]).publications.get(publication) ?? assert.fail();
  const begun = { ...place, presence: { kind: 'unsure', because: 'begun' } } as const;
  const one: ActualVolume = { ...before, publications: new Map([[publication, begun]]) };
  const failure = { code: 'mount-foreign', message: 'covered', effect: 'none' } as const;
  const refused = learn(
    one,
    before,
    { kind: 'publish', volume: down.spec.id, publication },
    { kind: 'failed', failure },
  );
  assert.deepEqual([refused.publications.size, refused.refusedExpansion], [0, refusedExpansion]);
  const done = { kind: 'done', learnt: {} } as const;
  const gone = learn(one, one, { kind: 'unpublish', volume: down.spec.id, publication }, done);
  assert.deepEqual([gone.publications.size, gone.refusedExpansion], [0, undefined]);
});

test('DL-04: a place found on disk may have binds of parts, though a publish of others has failed', () => {
  const down = onTheGround(csiSpec('driver.example', 'a', 'a'), NO_NEEDS);
  const publication = publicationKey('web' as PodUid, 'a');
  const found = volume('a', ['web' as PodUid]).publications.get(publication) ?? assert.fail();
  const before: ActualVolume = {
    ...down,
    publications: new Map([[publication, { ...found, spec: { ...found.spec, origin: RECONSTRUCTED } }]]),
  };
  const wish = { ...found.spec, subpaths: [{ container: 'main', index: 0, path: 'part' }] };
  const begun: ActualVolume = { ...before, publications: new Map([[publication, { ...found, spec: wish }]]) };
  const failure = { code: 'mount-stacked', message: 'covered', effect: 'none' } as const;
  const operation = { kind: 'publish', volume: down.spec.id, publication } as const;
  const refused = learn(begun, before, operation, { kind: 'failed', failure });
  assert.deepEqual(refused.publications.get(publication)?.spec.subpaths, []);
});
