/**
 * Whatever is wanted meanwhile, and however often: each call that was given up is given back, or stands and is taken
 * down, after the last moment at which it may take effect (DR-05, RC-04; seed 2439).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Failure } from '../../../mount/failure.ts';
import type { PublicationKey, VolumeSpec } from '../../../plugins/volume.ts';
import type { DesiredVolume } from '../../../reconciler/model/desired-state.ts';
import { LATE_EFFECT_MS } from '../../../reconciler/run/lookout.ts';
import { createBench } from '../bench.ts';
import { csi, wanted, wish } from '../world.ts';

const UNANSWERED: Failure = { code: 'driver-deadline', message: 'late', effect: 'unknown', unanswered: true };
const READ = csi('data');
const FORMS = {
  'as it is': READ,
  // Which leaves out what is undefined.
  'from a record': JSON.parse(JSON.stringify(READ)) as typeof READ,
  'otherwise mounted': { ...csi('data'), mountOptions: ['noatime'] },
  'as a device': { ...csi('data'), mode: 'Block' },
} as const satisfies Record<string, VolumeSpec>;
const FORM_NAMES = Object.keys(FORMS) as (keyof typeof FORMS)[];

/** Wished for so long: by which pod, as what; and what of it its driver does not answer. */
const STEPS = fc.array(
  fc.record({
    form: fc.option(fc.constantFrom(...FORM_NAMES), { nil: undefined }),
    pod: fc.constantFrom('web', 'next'),
    unanswered: fc.constantFrom('stage', 'publish', undefined),
    ms: fc.constantFrom(300, 2_000, LATE_EFFECT_MS / 3, LATE_EFFECT_MS + 5_000),
  }),
  { minLength: 2, maxLength: 12 },
);

interface Call {
  readonly kind: string;
  /** Stages and publishes of one form meet each other's undoing; those as files are at the same place. */
  readonly place: string;
  readonly atMs: number;
}

function placeOf(spec: VolumeSpec, publication: PublicationKey | undefined): string {
  return `${spec.kind === 'csi' && spec.mode} ${publication ?? 'stage'}`;
}

test('of a volume that is wanted in any way meanwhile, whatever was given up is undone after its time', async () => {
  await fc.assert(
    fc.asyncProperty(STEPS, async (steps) => {
      const { host, plugins, reconciler } = createBench({ resyncMs: 1_000 * LATE_EFFECT_MS });
      const undone: Call[] = [];
      const givenUp: Call[] = [];
      let unanswered: string | undefined;
      plugins.fault = (kind) => {
        const made = plugins.made.at(-1) ?? assert.fail('a call was made');
        const call = { kind, place: placeOf(made.spec, made.publication?.key), atMs: host.nowMs() };
        if (kind === 'unstage' || kind === 'unpublish') undone.push(call);
        if (kind !== unanswered) return undefined;
        givenUp.push(call);
        return UNANSWERED;
      };
      for (const { form, pod, unanswered: kind, ms } of steps) {
        const one: DesiredVolume = { ...wanted('data', [pod]), spec: FORMS[form ?? 'as it is'] };
        unanswered = kind;
        reconciler.setDesired(wish(form === undefined ? [] : [one]));
        await host.advance(ms);
      }
      unanswered = undefined;
      reconciler.setDesired(wish([]));
      for (let waits = 0; waits < 4; waits += 1) await host.advance(LATE_EFFECT_MS);
      for (const call of givenUp) {
        const isUndone = undone.some(({ kind, place, atMs }) => {
          return kind === `un${call.kind}` && place === call.place && atMs >= call.atMs + LATE_EFFECT_MS;
        });
        assert.ok(isUndone, `${call.kind} of ${call.place} at ${call.atMs} ms may come yet`);
      }
      assert.deepEqual([...plugins.world], []);
      assert.deepEqual([reconciler.actual().size, host.files.size], [0, 0]);
    }),
    { numRuns: 300 },
  );
});
