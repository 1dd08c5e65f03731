/**
 * What one sees at a path, by the mount table and by the kernel: the mount id of an open descriptor (proc(5), fdinfo)
 * judges, on trees of mounts made by chance. A failure names its seed.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AbsolutePath } from '../../mount/host.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import { mountIdOfPath, readMountTable } from '../../mount/broker/path/mount-lookup.ts';
import { mountIdOf, O_PATH, openPathOf } from '../../mount/broker/path/path-walk.ts';
import { mountsBelow, unmountAll } from '../demo/machine.ts';
import { createRandom, type Random } from '../sim/random.ts';
import { inPrivateNamespace } from './namespace.ts';

const skip = inPrivateNamespace();
const SEEDS = 10;
const STEPS = 25;
/** Trees bound into themselves where mounts are shared double with each step. */
const MOUNTS_MAX = 80;
const DEPTH = 3;
/** One that the kernel escapes. */
const NAMES = ['a', 'b c'] as const;

function table(): MountTable {
  const read = readMountTable();
  return read.ok ? read.value : assert.fail(read.failure.message);
}

/** What the kernel refuses it refuses: what then stands is compared. */
function attempt(command: string, ...argv: readonly string[]): void {
  try {
    execFileSync(command, argv, { stdio: 'ignore' });
  } catch {
    // As it was.
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Directories as one sees them, through all that is mounted. */
function directoriesBelow(path: string, depth = DEPTH): string[] {
  if (depth === 0) return [path];
  const names = readdirSync(path).filter((name) => isDirectory(join(path, name)));
  return [path, ...names.flatMap((name) => directoriesBelow(join(path, name), depth - 1))];
}

function mountHolding(path: string): number {
  const descriptor = openSync(path, O_PATH);
  try {
    return mountIdOf(openPathOf(descriptor));
  } finally {
    closeSync(descriptor);
  }
}

function grow(path: string, depth = DEPTH): void {
  if (depth === 0) return;
  for (const name of NAMES) {
    mkdirSync(join(path, name), { recursive: true });
    grow(join(path, name), depth - 1);
  }
}

let sources = 0;

function mountNew(path: string): void {
  sources += 1;
  attempt('mount', '-t', 'tmpfs', `new ${sources}`, path);
  grow(path, 2);
}

function step(base: string, random: Random): string {
  const all = directoriesBelow(base);
  if (mountsBelow(base).length > MOUNTS_MAX) attempt('umount', '--lazy', random.pick(all));
  const [one, other] = [random.pick(all), random.pick(all)];
  const kind = random.pick([
    'new',
    'new',
    'new',
    'bind',
    'rbind',
    'self',
    'move',
    'gone',
    'gone',
    'make',
    'name',
    'lose',
  ] as const);
  switch (kind) {
    case 'new':
      mountNew(one);
      break;
    case 'bind':
    case 'rbind':
      attempt('mount', `--${kind}`, one, other);
      break;
    case 'self':
      attempt('mount', '--rbind', one, one);
      break;
    case 'move':
      attempt('mount', '--move', one, other);
      break;
    case 'gone':
      attempt('umount', ...(random.chance(0.3) ? ['--lazy'] : []), one);
      break;
    case 'make':
      attempt(
        'mount',
        `--make-${random.pick(['shared', 'shared', 'rshared', 'private', 'slave'] as const)}`,
        one,
      );
      break;
    case 'name':
      if (one !== base) attempt('mv', '-T', one, `${one}~`);
      if (isDirectory(`${one}~`)) renameBack(one);
      break;
    case 'lose':
      // What is bound elsewhere stays there, with `//deleted` behind its root.
      if (one !== base) attempt('rm', '--recursive', '--one-file-system', one);
      break;
  }
  return `${kind} ${one} ${other}`;
}

/** The directory above a mount point may change its name, and the mount's target changes with it. */
function renameBack(path: string): void {
  compare(`${path} was renamed`, `${path}~`);
  try {
    renameSync(`${path}~`, path);
  } catch {
    // Something has that name again.
  }
}

function compare(what: string, base: string): void {
  const seen = table();
  for (const path of directoriesBelow(base) as AbsolutePath[]) {
    const mountId = mountIdOfPath(path);
    assert.ok(mountId.ok, `${what}: ${path}`);
    const stack = seen.at(path);
    assert.equal(seen.way(path).at(-1)?.mountId, mountHolding(path), `${what}: the mount that ${path} is in`);
    assert.equal(stack.at(-1)?.mountId, mountId.value, `${what}: what one sees at ${path}`);
    for (const [index, upper] of stack.slice(1).entries())
      assert.equal(upper.parentId, stack[index]?.mountId, `${what}: the stack at ${path}`);
  }
}

async function onTree(seed: number): Promise<void> {
  const random = createRandom(seed);
  const scratch = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-tree-'));
  try {
    const base = join(scratch, 'base');
    mkdirSync(base);
    mountNew(base);
    attempt('mount', `--make-${random.pick(['shared', 'private'] as const)}`, base);
    grow(base);
    for (let count = 0; count < STEPS && isDirectory(base); count += 1)
      compare(`seed ${seed}, step ${count}, ${step(base, random)}`, base);
  } finally {
    await unmountAll([...mountsBelow(scratch)].reverse());
    rmSync(scratch, { recursive: true, force: true });
  }
}

test('the table tells what one sees at a path, however mounts lie over each other', { skip }, async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) await onTree(seed);
});

test('so it does where the root is bound onto itself and shared, as for a kubelet in a container', {
  skip,
}, async () => {
  execFileSync('mount', ['--make-rshared', '/']);
  execFileSync('mount', ['--rbind', '/', '/']);
  for (let seed = 101; seed <= 100 + SEEDS; seed += 1) await onTree(seed);
});
