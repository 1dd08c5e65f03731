/** A real directory, real events: whoever looks at every hint has always seen the last state. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createDirectoryWatcher } from '../../../../agent/source/manifests/directory-watcher.ts';
import type { Cancel } from '../../../../mount/host.ts';
import { path } from '../../manifests.ts';

const HINT_MS_MAX = 30_000;

const clock = {
  timer(delayMs: number, fire: () => void): Cancel {
    const timer = setTimeout(fire, delayMs);
    return () => clearTimeout(timer);
  },
};

interface Watched {
  readonly directory: string;
  /** Settles once a look made at a hint has shown what is there now. */
  caughtUp(): Promise<void>;
  hints(): number;
  end(): Promise<void>;
}

const temporary: string[] = [];
const open: Watched[] = [];
// A test that failed has not ended its watch, which would keep this process alive.
after(async () => {
  await Promise.all(open.map((one) => one.end()));
  for (const one of temporary) await rm(one, { recursive: true, force: true });
});

async function temporaryDirectory(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'mooring-watch-'));
  temporary.push(made);
  return made;
}

/** What a look at the directory shows: names, and the contents of regular files. */
function look(directory: string): string {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries
      .map((one) => {
        return `${one.name} ${one.isFile() ? readFileSync(join(directory, one.name), 'utf8') : ''}`;
      })
      .sort()
      .join('|');
  } catch {
    return 'absent';
  }
}

function watched(
  directory: string,
  time: typeof clock = clock,
  concerns?: (name: string) => boolean,
): Watched {
  const watcher = createDirectoryWatcher(time);
  let hints = 0;
  let seen = 'never looked';
  let looked: () => void = () => {};
  const hint = (): void => {
    hints += 1;
    seen = look(directory);
    looked();
  };
  watcher.watch(path(directory), hint, concerns);
  const one: Watched = {
    directory,
    caughtUp: () =>
      new Promise((resolve, reject) => {
        const late = setTimeout(() => {
          reject(
            new Error(
              `after ${HINT_MS_MAX} ms the last hint had shown ${seen}, and there is ${look(directory)}`,
            ),
          );
        }, HINT_MS_MAX);
        looked = () => {
          if (seen !== look(directory)) return;
          clearTimeout(late);
          looked = () => {};
          resolve();
        };
        looked();
      }),
    hints: () => hints,
    end: () => watcher.close(),
  };
  open.push(one);
  return one;
}

/** Watching a directory that is there; the first hint says that the watch has begun. */
async function watching(time: typeof clock = clock, concerns?: (name: string) => boolean): Promise<Watched> {
  const one = watched(await temporaryDirectory(), time, concerns);
  await one.caughtUp();
  return one;
}

test('files that come, change, are renamed over and go are each seen', async () => {
  const one = await watching();
  const file = join(one.directory, 'web.yaml');
  await writeFile(file, 'a: 1\n');
  await one.caughtUp();
  await writeFile(file, 'a: 2\n');
  await one.caughtUp();
  await writeFile(join(one.directory, '.web.yaml.tmp'), 'a: 3\n');
  await rename(join(one.directory, '.web.yaml.tmp'), file);
  await one.caughtUp();
  await unlink(file);
  await one.caughtUp();
  await one.end();
});

test('a burst of events is a few hints, and the last state is seen', async () => {
  // Time stands still until the test lets a timer end: so the events of the burst come within it, at any load.
  const due = new Set<() => void>();
  const one = await watching({
    timer(_, fire) {
      due.add(fire);
      return () => due.delete(fire);
    },
  });
  const before = one.hints();
  for (let index = 0; index < 200; index += 1)
    await writeFile(join(one.directory, `${index % 7}.yaml`), String(index));
  let isSeen = false;
  const seen = one.caughtUp().then(() => {
    isSeen = true;
  });
  let ended = 0;
  while (!isSeen) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    const [fire] = due;
    if (fire === undefined) continue;
    due.delete(fire);
    ended += 1;
    fire();
  }
  await seen;
  assert.ok(one.hints() - before <= ended, `${one.hints() - before} hints in ${ended} spans`);
  await one.end();
});

test('a file that is written under a name of no concern is one hint, at once, when it gets its own', async () => {
  // Time stands still: a hint that has to wait for the end of a burst never comes.
  const due = new Set<() => void>();
  const still: typeof clock = {
    timer(_, fire) {
      due.add(fire);
      return () => due.delete(fire);
    },
  };
  let isTold = (): void => {};
  const told = new Promise<void>((resolve) => {
    isTold = resolve;
  });
  const one = await watching(still, (name) => {
    if (name === '.web.yaml.tmp') isTold();
    return !name.startsWith('.');
  });
  for (const fire of due) fire();
  due.clear();
  const before = one.hints();
  const hidden = join(one.directory, '.web.yaml.tmp');
  await writeFile(hidden, 'a: 1');
  await told;
  assert.equal(one.hints(), before);
  await rename(hidden, join(one.directory, 'web.yaml'));
  await one.caughtUp();
  assert.equal(one.hints(), before + 1);
  await one.end();
});

test('of a socket that comes and goes many times the last state is seen, at any pace', async () => {
  const one = await watching();
  const socket = join(one.directory, 'driver.sock');
  for (let round = 0; round < 40; round += 1) {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    // Sometimes it is seen, sometimes it is gone before.
    if (round % 2 === 0) await one.caughtUp();
    await new Promise((resolve) => server.close(resolve));
    if (round % 3 !== 0) await one.caughtUp();
  }
  await one.caughtUp();
  await one.end();
});

test('a directory that is not there yet is watched when it appears', async () => {
  const parent = await temporaryDirectory();
  const one = watched(join(parent, 'later', 'manifests'));
  await mkdir(join(parent, 'later', 'manifests'), { recursive: true });
  await one.caughtUp();
  await writeFile(join(one.directory, 'web.yaml'), 'a: 1\n');
  await one.caughtUp();
  await one.end();
});

test('a directory that is removed and made again, or replaced by rename, is watched again', async () => {
  const one = await watching();
  await rm(one.directory, { recursive: true });
  await one.caughtUp();
  await mkdir(one.directory);
  await one.caughtUp();
  await writeFile(join(one.directory, 'a.yaml'), 'a: 1\n');
  await one.caughtUp();
  const other = `${one.directory}-other`;
  temporary.push(other, `${one.directory}-old`);
  await mkdir(other);
  await writeFile(join(other, 'replaced.yaml'), 'r: 1\n');
  await rename(one.directory, `${one.directory}-old`);
  await rename(other, one.directory);
  await one.caughtUp();
  await writeFile(join(one.directory, 'b.yaml'), 'b: 1\n');
  await one.caughtUp();
  await one.end();
});

test('after the end there is no hint', async () => {
  const one = await watching();
  const other = await watching();
  await one.end();
  const before = one.hints();
  for (const name of ['x', 'y']) {
    await writeFile(join(one.directory, name), '');
    await writeFile(join(other.directory, name), '');
    await other.caughtUp();
  }
  assert.equal(one.hints(), before);
  await other.end();
});
