/** ST-21: who corrects what a driver refused waits for nothing else; what is told of it has then been heeded. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Failure } from '../../../mount/failure.ts';
import type { PublicationSpec } from '../../../plugins/volume.ts';
import type { DesiredPublication, DesiredVolume } from '../../../reconciler/model/desired-state.ts';
import { createBench } from '../bench.ts';
import { settled } from '../bench-host.ts';
import { wanted, wish } from '../world.ts';

const REFUSED: Failure = { code: 'driver-unimplemented', message: 'not like this', effect: 'none' };

type Other = Partial<PublicationSpec> & Pick<DesiredPublication, 'hasDifferentLabels'>;

function otherwise({ hasDifferentLabels, ...spec }: Other): DesiredVolume {
  const volume = wanted('data', ['web']);
  const publications = [...volume.publications].map(([key, place]) => {
    const labels = hasDifferentLabels === undefined ? {} : { hasDifferentLabels };
    return [key, { ...place, ...labels, spec: { ...place.spec, ...spec } }] as const;
  });
  return { ...volume, publications: new Map(publications) };
}

const CORRECTIONS: Readonly<Record<string, Other>> = {
  'its being read-only': { readOnly: true },
  'its group': { fsGroup: { gid: 1_000, changePolicy: 'Always' } },
  'the labels of its containers': { hasDifferentLabels: true },
  'a part of it': { subpaths: [{ container: 'main', index: 0, path: 'a' }] },
};

for (const [what, correction] of Object.entries(CORRECTIONS)) {
  test(`a publish that is refused until the wish is another is tried with ${what} changed`, async () => {
    const { reconciler, plugins, host } = createBench();
    plugins.fault = (kind) => (kind === 'publish' ? REFUSED : undefined);
    reconciler.setDesired(wish([otherwise(correction)]));
    await settled();
    plugins.fault = () => undefined;
    // The same wish again is no news.
    reconciler.setDesired(wish([otherwise(correction)]));
    await host.advance(1_000);
    assert.equal(reconciler.obstacles()[0]?.kind, 'waiting-change');
    reconciler.setDesired(wish([wanted('data', ['web'])]));
    await settled();
    const [volume] = [...reconciler.actual().values()];
    assert.deepEqual(
      [...(volume?.publications.values() ?? [])].map(({ presence }) => presence.kind),
      ['present'],
    );
    assert.deepEqual(reconciler.obstacles(), []);
  });
}
