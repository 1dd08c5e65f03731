/**
 * A disk that several nodes reach, and that its storage gives to one at a time. Whoever it is taken from is not asked,
 * and goes on writing to what it had: a copy of that moment, which nobody else reads.
 */
import { copyFileSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { mountsBelow, runToEnd } from '../demo/machine.ts';
import type { World } from '../interop/world.ts';
import type { Storage } from './test-attacher.ts';

export interface SharedDisk {
  /** As whoever attaches it to that node sees it. */
  storageOf(world: World): Storage;
  /** Is that anywhere in the bytes that the storage keeps? */
  holds(word: string): boolean;
  /** Is it in the bytes that this node wrote to, or would write to? */
  holdsOf(world: World, word: string): boolean;
  /** Given while another one had it: a mistake of the cluster, or of this test. */
  readonly givenTwice: readonly string[];
}

/** The image was made in the pool of the first; the drivers of the others each keep their own book of it. */
export function shareDisk(handle: string, first: World, others: readonly World[]): SharedDisk {
  const kept = join(first.scratch, 'shared.img');
  const imageOf = (world: World): string => join(world.pool, handle, 'data.img');
  linkSync(imageOf(first), kept);
  for (const { pool } of others) {
    mkdirSync(join(pool, handle), { mode: 0o700 });
    copyFileSync(join(first.pool, handle, 'volume.json'), join(pool, handle, 'volume.json'));
    linkSync(kept, join(pool, handle, 'data.img'));
  }
  const givenTwice: string[] = [];
  let owner: World | undefined;

  /** From here on the image that the node has is another file than the one that is kept. */
  async function fence(world: World): Promise<void> {
    // A copy of one moment, with all that the node has written until then and nothing half.
    const mount = mountsBelow(world.root).find(({ target }) => target.endsWith('/globalmount'))?.target;
    if (mount !== undefined) await runToEnd('fsfreeze', ['--freeze', mount]);
    try {
      await runToEnd('cp', ['--sparse=always', imageOf(world), `${kept}.new`]);
      renameSync(`${kept}.new`, kept);
    } finally {
      if (mount !== undefined) await runToEnd('fsfreeze', ['--unfreeze', mount]);
    }
  }

  return {
    givenTwice,
    holds: (word) => readFileSync(kept).includes(word),
    holdsOf: (world, word) => readFileSync(imageOf(world)).includes(word),
    storageOf: (world) => ({
      async give() {
        if (owner === world) return;
        if (owner !== undefined) givenTwice.push(world.scratch);
        owner = world;
        const next = `${imageOf(world)}.next`;
        rmSync(next, { force: true });
        linkSync(kept, next);
        renameSync(next, imageOf(world));
      },
      async take() {
        if (owner !== world) return;
        await fence(world);
        owner = undefined;
      },
    }),
  };
}
