import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, fail, type Result } from '../../../mount/failure.ts';
import { createOwnLook } from '../../../plugins/guard/own-look.ts';
import type { PublicationCall, VolumePlugin } from '../../../plugins/plugin.ts';
import { createContentPlugin } from '../../../plugins/pod/content.ts';
import { createEmptyDirPlugin } from '../../../plugins/pod/empty-dir.ts';
import { callOf, content, emptyDir, freshHost, layout, mounterOf, worldOf } from '../local-world.ts';

const call = callOf(emptyDir('disk'));
const path = layout.mountPoint(call.spec, call.publication);
const proven = { mountId: 21, device: '0:40' };

/** Who was asked what, in order. */
async function asked(
  looksItself: boolean,
  within: number | undefined,
  isDoubted?: true,
  answer: Result<void> = done,
): Promise<readonly unknown[]> {
  const seen: unknown[] = [];
  const plugin = (looksItself ? { looksItself } : {}) as VolumePlugin;
  const orLook = createOwnLook({ expectedRound: () => within }, plugin);
  const verb = async ({ expected }: PublicationCall) => {
    seen.push(expected);
    return answer;
  };
  await orLook({ path, proven, isDoubted }, call, verb, async () => {
    seen.push('look');
    return done;
  });
  return seen;
}

test('a verb that looks itself is told what is to be there, and nobody looks before', async () => {
  assert.deepEqual(await asked(true, 3), [{ path, mountId: 21, within: 3 }]);
  assert.deepEqual(await asked(false, 3), ['look']);
  assert.deepEqual(await asked(true, undefined), ['look']);
  assert.deepEqual(await asked(true, 3, true), ['look']);
});

test('where a verb sees something else it is looked at as ever, and another failure is a failure', async () => {
  const failure = { code: 'mount-foreign', message: 'another', effect: 'none' } as const;
  const expected = { path, mountId: 21, within: 3 };
  const unexpected = fail({ ...failure, isUnexpected: true });
  assert.deepEqual(await asked(true, 3, undefined, unexpected), [expected, 'look']);
  assert.deepEqual(await asked(true, 3, undefined, fail(failure)), [expected]);
});

for (const [kind, spec, files] of [
  ['secret', content('secret'), { key: 'value' }],
  ['emptyDir on disk', emptyDir('disk'), undefined],
  ['emptyDir in memory', emptyDir('memory'), undefined],
] as const) {
  test(`${kind}: what is not as it was expected is left as it is, up and down`, async () => {
    const host = freshHost();
    const world = worldOf(
      callOf(spec, files),
      (on) =>
        kind === 'secret'
          ? createContentPlugin('secret', on, layout, mounterOf(on))
          : createEmptyDirPlugin(on, layout, mounterOf(on)),
      (on, target) => on.describe(target),
      host,
    );
    const own = callOf(spec, files);
    const at = layout.mountPoint(spec, own.publication);
    const strange = { ...own, expected: { path: at, mountId: 4_711, within: 1 } };
    const refuses = async (verb: 'publish' | 'unpublish'): Promise<void> => {
      const before = host.effects();
      const result = await world.plugin()[verb](strange);
      const { isUnexpected, effect } = result.ok ? {} : { ...result.failure };
      assert.deepEqual([isUnexpected, effect, host.effects() - before], [true, 'none', 0]);
    };
    await refuses('publish');
    assert.ok((await world.plugin().publish(own)).ok);
    await refuses('unpublish');
    assert.ok((await world.plugin().unpublish(own)).ok);
  });
}
