/** SE-27: who renames in a volume while it is walked leads no walk to a file that has a name outside of it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs, {
  linkSync,
  lstatSync,
  mkdirSync,
  opendirSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { type TestContext, test } from 'node:test';
import { type AbsolutePath, below, type Clock } from '../../../mount/host.ts';
import { createOwnership } from '../../../mount/agent-side/fs-group-walk.ts';
import { changeOwnershipPart } from '../../../mount/broker/file/fs-group-part.ts';
import type { OwnershipPart } from '../../../mount/broker/file/ownership-part.ts';
import type { OwnershipReport } from '../../../mount/ownership.ts';
import { GID, ownershipRequest } from '../../contract/ownership.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { until } from '../../until.ts';
import { value } from '../../value.ts';
import { scratchDirectory } from '../scratch.ts';

const skip = inPrivateNamespace();
const AGE_MS = 100;
const clock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  timer: (delayMs, fire) => {
    const timer = setTimeout(fire, delayMs);
    return () => clearTimeout(timer);
  },
};

/** The walk of the product, in this process: `before` is called before each of its parts. */
async function walk(
  volume: AbsolutePath,
  before: (part: OwnershipPart) => void = () => {},
): Promise<OwnershipReport> {
  const parts = {
    clock,
    ageMs: AGE_MS,
    change: async (part: OwnershipPart) => {
      before(part);
      return changeOwnershipPart(part, () => {});
    },
  };
  return value(await createOwnership(parts)(ownershipRequest(volume)));
}

interface World {
  readonly volume: AbsolutePath;
  /** The two directories in it, as they are listed. */
  readonly first: AbsolutePath;
  readonly second: AbsolutePath;
  /** Somebody's file outside of the volume. */
  readonly foreign: AbsolutePath;
  /** Its other name, in the first directory. */
  readonly ledOut: AbsolutePath;
}

async function plant(t: TestContext): Promise<World> {
  const root = scratchDirectory(t);
  const [volume, foreign] = [below(root, 'volume'), below(root, 'foreign')];
  for (const name of ['a', 'b']) mkdirSync(below(volume, name), { recursive: true, mode: 0o755 });
  writeFileSync(foreign, 'kept', { mode: 0o600 });
  const [first, second] = listed(volume);
  assert.ok(first !== undefined && second !== undefined);
  const ledOut = below(first, 'led-out');
  linkSync(foreign, ledOut);
  return { volume, first, second, foreign, ledOut };
}

/** In the order in which the file system has them. */
function listed(path: AbsolutePath): readonly AbsolutePath[] {
  const directory = opendirSync(path);
  try {
    return [directory.readSync(), directory.readSync()].flatMap((entry) =>
      entry === null ? [] : [below(path, entry.name)],
    );
  } finally {
    directory.closeSync();
  }
}

/** What a move changes is told apart from what was there before only when that is so old. */
async function untilOld(path: AbsolutePath): Promise<void> {
  await until('the link is old', () => Date.now() - lstatSync(path).ctimeMs > AGE_MS);
}

function seen(path: AbsolutePath): string {
  const { gid, mode } = lstatSync(path);
  return `${gid} ${(mode & 0o7777).toString(8)}`;
}

/** Once, right after the first such call about a path that ends so. */
function afterFirst(t: TestContext, call: 'lstatSync' | 'openSync', end: string, act: () => void): void {
  const real = fs[call] as (...all: readonly unknown[]) => unknown;
  const restore = (): void => {
    Object.assign(fs, { [call]: real });
    syncBuiltinESMExports();
  };
  Object.assign(fs, {
    [call]: (...all: readonly unknown[]): unknown => {
      const answer = real(...all);
      if (String(all[0]).endsWith(end)) {
        restore();
        act();
      }
      return answer;
    },
  });
  syncBuiltinESMExports();
  t.after(restore);
}

function exchange(one: AbsolutePath, other: AbsolutePath): void {
  renameSync(one, `${one}-away`);
  renameSync(other, one);
  renameSync(`${one}-away`, other);
}

for (const [what, move] of [
  ['a name', ({ ledOut, second }: World) => renameSync(ledOut, below(second, 'led-out'))],
  ['a directory', ({ first, second }: World) => renameSync(first, below(second, 'moved'))],
] as const) {
  test(`${what} that is moved to where the walk has not been is not counted twice`, { skip }, async (t) => {
    const world = await plant(t);
    const { volume, second, foreign } = world;
    await untilOld(foreign);
    const moved: boolean[] = [];
    await walk(volume, ({ names: [name] }) => {
      if (moved.length > 0 || name === undefined || below(volume, Buffer.from(name).toString()) !== second)
        return;
      moved.push(true);
      move(world);
    });
    assert.deepEqual([moved, seen(foreign)], [[true], '0 600']);
  });
}

for (const [what, make] of [
  ['file', (path: AbsolutePath) => writeFileSync(path, 'own', { mode: 0o600 })],
  ['symbolic link', (path: AbsolutePath) => symlinkSync('nowhere', path)],
] as const) {
  test(`a ${what} is exchanged with a link that leads out as it was looked at`, { skip }, async (t) => {
    const { volume, first, foreign, ledOut } = await plant(t);
    const own = below(first, 'own');
    make(own);
    afterFirst(t, 'lstatSync', '/own', () => exchange(own, ledOut));
    await walk(volume);
    assert.equal(seen(foreign), '0 600');
  });
}

test('a link that leads out is removed as it was opened, in the place of a file of the volume', {
  skip,
}, async (t) => {
  const { volume, first, foreign, ledOut } = await plant(t);
  const own = below(first, 'own');
  writeFileSync(own, 'own', { mode: 0o600 });
  afterFirst(t, 'lstatSync', '/own', () => exchange(own, ledOut));
  afterFirst(t, 'openSync', '/own', () => unlinkSync(own));
  await walk(volume);
  assert.equal(seen(foreign), '0 600');
});

test('a socket or a fifo with a name outside of the volume stays as it is, as a file does', {
  skip,
}, async (t) => {
  const { volume, second, foreign } = await plant(t);
  unlinkSync(foreign);
  execFileSync('mkfifo', ['-m', '0600', foreign]);
  linkSync(foreign, below(second, 'fifo'));
  await walk(volume);
  assert.equal(seen(foreign), '0 600');
});

test('files whose names are all in the volume are given, however young these are', { skip }, async (t) => {
  const { volume, second, foreign, ledOut } = await plant(t);
  unlinkSync(foreign);
  linkSync(ledOut, below(second, 'own'));
  linkSync(ledOut, below(second, 'own-too'));
  assert.deepEqual(await walk(volume), { seen: 6, changed: 4, refused: 0 });
  assert.equal(seen(ledOut), `${GID} 660`);
});

test('names are counted once more of young files only, however many others have several', {
  skip,
}, async (t) => {
  const { volume, second, foreign, ledOut } = await plant(t);
  unlinkSync(foreign);
  linkSync(ledOut, below(second, 'own'));
  const counted: (readonly string[] | undefined)[] = [];
  await walk(volume, ({ scope, files }) => {
    if (scope === 'count') counted.push(files);
  });
  assert.deepEqual(
    counted.map((files) => files?.length),
    [1],
  );
});

test('so are those of a file system whose clock is ahead of the one of the node', { skip }, async (t) => {
  const { volume, second, foreign, ledOut } = await plant(t);
  unlinkSync(foreign);
  linkSync(ledOut, below(second, 'own'));
  const now = Date.now.bind(Date);
  t.mock.method(Date, 'now', () => now() - 3_600_000);
  const { refused } = await walk(volume);
  assert.deepEqual([refused, seen(ledOut)], [0, `${GID} 660`]);
});
