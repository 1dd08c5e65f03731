/** The sentences that every `Host` keeps about who has something of a place. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';
import { value } from '../value.ts';

export interface PlaceHoldersWorld {
  readonly host: Host;
  /** Exists; empty. */
  readonly root: AbsolutePath;
  /** Somebody works in the directory, until the returned function was called; that settles when he has gone. */
  occupy(path: AbsolutePath): Promise<() => Promise<void>>;
}

const HOLDERS_MAX = 8;

export function placeHoldersContract(
  name: string,
  make: (t: TestContext) => Promise<PlaceHoldersWorld>,
): void {
  const sentence = (words: string, check: (world: PlaceHoldersWorld) => Promise<void>): void => {
    test(`${name}: ${words}`, async (t) => {
      await check(await make(t));
    });
  };

  sentence(
    'each place has an answer, in the order in which it was asked for',
    async ({ host, root, occupy }) => {
      const [first, second, third] = [below(root, 'a'), below(root, 'b'), below(root, 'none')];
      for (const path of [first, second]) value(await host.makeDirectory(path, 0o755));
      const counts = async (...places: readonly AbsolutePath[]): Promise<readonly number[]> =>
        value(await host.findPlaceHolders(places, root)).map((holders) => holders.length);
      assert.deepEqual(await counts(first, second, third), [0, 0, 0]);
      assert.deepEqual(await counts(), []);
      const leave = await occupy(second);
      assert.deepEqual(await counts(first, second, third), [0, 1, 0]);
      assert.deepEqual(await counts(third, second, first), [0, 1, 0]);
      assert.deepEqual(await counts(second), [1]);
      const [[found] = []] = value(await host.findPlaceHolders([second], root));
      assert.equal(found?.how, 'uses');
      assert.ok((found?.pid ?? 0) > 0);
      await leave();
      assert.deepEqual(await counts(first, second), [0, 0]);
    },
  );

  sentence(`of many that have a place ${HOLDERS_MAX} are told`, async ({ host, root, occupy }) => {
    const place = below(root, 'crowded');
    value(await host.makeDirectory(place, 0o755));
    for (let count = 0; count < HOLDERS_MAX + 2; count += 1) await occupy(place);
    const [holders = []] = value(await host.findPlaceHolders([place], root));
    assert.equal(new Set(holders.map(({ pid }) => pid)).size, HOLDERS_MAX);
  });
}
