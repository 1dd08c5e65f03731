/** What somebody mounted over the directory of the journal is not written into, and the look for him is no call. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, fail, ok } from '../../../mount/failure.ts';
import { below, parseAbsolutePath } from '../../../mount/host.ts';
import { type GroundParts, overwriteOnGround } from '../../../reconciler/journal/journal-ground.ts';
import { FILE_NAMES } from '../../../reconciler/journal/journal-reading.ts';

const directory = parseAbsolutePath('/state/records') ?? assert.fail();
const GROUND = 10;
const STRANGER = 20;
const GROUND_ANEW = 30;

/** `known`: the mount that the directory was in at the start, as far as that is known. */
function world(known: number | undefined) {
  const calls: string[] = [];
  const written: number[] = [];
  let expected = known;
  let within = GROUND;
  const parts: GroundParts = {
    directory,
    host: {
      async mountPlaceOf() {
        calls.push('look');
        return ok({ mountId: undefined, within });
      },
      async overwriteFile(_path, _at, _content, meant) {
        calls.push('write');
        if (meant !== undefined && meant !== within)
          return fail({ code: 'mount-foreign', message: 'elsewhere', effect: 'none' });
        written.push(within);
        return done;
      },
    },
    ground: {
      expectedRound: () => expected,
      async refuseStranger(_path, seen) {
        if (seen === STRANGER)
          return fail({ code: 'mount-foreign', message: 'a stranger', effect: 'unknown' });
        expected = seen;
        return done;
      },
    },
  };
  return {
    ...{ calls, written },
    mount(next: number) {
      within = next;
    },
    write: () => overwriteOnGround(parts, below(directory, FILE_NAMES[0]), 0, new Uint8Array(1)),
  };
}

test('a write is one call, and two while it is not known what the directory is to be in', async () => {
  const known = world(GROUND);
  assert.ok((await known.write()).ok);
  assert.deepEqual(known.calls, ['write']);
  const unknown = world(undefined);
  assert.ok((await unknown.write()).ok);
  assert.deepEqual(unknown.calls, ['look', 'write']);
});

test('nothing is written into what a stranger mounted, and all is well when he has gone', async () => {
  for (const known of [GROUND, undefined]) {
    const { mount, write, written } = world(known);
    mount(STRANGER);
    const refused = await write();
    assert.ok(!refused.ok);
    assert.deepEqual([refused.failure.message, refused.failure.effect], ['a stranger', 'none']);
    assert.deepEqual(written, []);
    mount(GROUND);
    assert.ok((await write()).ok);
    assert.deepEqual(written, [GROUND]);
  }
});

test('where the ground itself was mounted anew it is written, and from then on in one call', async () => {
  const { mount, write, written, calls } = world(GROUND);
  mount(GROUND_ANEW);
  assert.ok((await write()).ok);
  calls.length = 0;
  assert.ok((await write()).ok);
  assert.deepEqual([written, calls], [[GROUND_ANEW, GROUND_ANEW], ['write']]);
});
