/**
 * SE-02, SE-03 (CVE-2017-1002101, CVE-2021-25741): a container exchanges directories and links of its volume while a
 * part of it is walked to, made and bound. `SUBPATH_ATTEMPTS` says how often; `npm run race` makes a million.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { removeEmptyDirectory } from '../../mount/broker/file/directory-effects.ts';
import { bindPart } from '../../mount/broker/part/part-bind.ts';
import { openPart } from '../../mount/broker/part/part-walk.ts';
import { withDirectory } from '../../mount/broker/path/path-walk.ts';
import { ok } from '../../mount/failure.ts';
import { type AbsolutePath, below } from '../../mount/host.ts';
import { runTool } from '../../mount/tool.ts';
import { scratchDirectory } from '../mount/scratch.ts';
import { inPrivateNamespace } from './namespace.ts';

const skip = inPrivateNamespace();
const ATTEMPTS = Number(process.env['SUBPATH_ATTEMPTS'] ?? 20_000);
/** A bind costs a process, so one attempt of so many goes on to it. */
const BIND_EVERY = 1_000;
const EXCHANGE = fileURLToPath(new URL('exchange.pl', import.meta.url));
const RENAMEAT2: Readonly<Record<string, number>> = { x64: 316, arm64: 276 };
const NAIVE_ATTEMPTS_MAX = 10_000_000;

interface Battlefield {
  readonly volume: AbsolutePath;
  readonly outside: AbsolutePath;
  readonly target: AbsolutePath;
}

/** A directory and a link at each of the ways that lead out; both names of a pair are there at every moment. */
const PAIRS = [
  { inside: 'near', link: 'near-link', text: '../outside' },
  { inside: 'far/a/b', link: 'far/a/b-link', text: '../../../outside' },
  { inside: 'absolute', link: 'absolute-link', text: '' },
  { inside: 'file', link: 'file-link', text: '../outside/secret' },
  // What climbs from a directory that is moved up meanwhile climbs too far where names are looked up.
  { inside: 'deep/1/2', link: 'shallow', text: undefined },
] as const;

function furnish(t: TestContext): Battlefield {
  const root = scratchDirectory(t);
  const [volume, outside, target] = [
    below(root, 'volume'),
    below(root, 'outside'),
    below(root, 'parts', '0'),
  ];
  for (const path of [volume, outside, below(root, 'parts')]) mkdirSync(path, { recursive: true });
  writeFileSync(join(outside, 'secret'), 'outside');
  for (const { inside, link, text } of PAIRS) {
    const path = join(volume, inside);
    if (inside === 'file') writeFileSync(path, 'inside');
    else {
      mkdirSync(path, { recursive: true });
      writeFileSync(join(path, 'secret'), 'inside');
    }
    if (text === undefined) mkdirSync(join(volume, link));
    else symlinkSync(text === '' ? outside : text, join(volume, link));
  }
  symlinkSync('deep/1/2/../../../near/secret', join(volume, 'climbing'));
  return { volume, outside, target };
}

/** Does it while the names are exchanged. */
async function underAttack({ volume }: Battlefield, act: () => Promise<void> | void): Promise<void> {
  const call = RENAMEAT2[process.arch];
  assert.ok(call !== undefined, `this test knows renameat2(2) of x64 and arm64, not of ${process.arch}`);
  const paths = PAIRS.flatMap(({ inside, link }) => [join(volume, inside), join(volume, link)]);
  const child = spawn('perl', [EXCHANGE, String(call), ...paths], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  try {
    await new Promise((resolve, reject) => {
      child.stdout?.once('data', resolve);
      child.once('exit', (code) => reject(new Error(`the attacker ended by itself: ${code}`)));
      child.once('error', reject);
    });
    await act();
    assert.equal(child.exitCode, null, 'the attacker ended before the test did');
  } finally {
    if (child.exitCode === null && child.kill('SIGKILL')) await ended;
  }
}

/** The parts that are asked for in turn, and whether what is missing of them is made. */
const PARTS = [
  { part: 'near/secret', makesMissing: false },
  { part: 'near/made', makesMissing: true },
  { part: 'near', makesMissing: false },
  { part: 'far/a/b/secret', makesMissing: false },
  { part: 'far/a/b/made/deeper', makesMissing: true },
  { part: 'absolute/secret', makesMissing: false },
  { part: 'absolute/made', makesMissing: true },
  { part: 'file', makesMissing: false },
  { part: 'climbing', makesMissing: false },
] as const;

function isOutside(path: string, { outside, volume }: Battlefield): boolean {
  const isIn = (directory: string): boolean => path === directory || path.startsWith(`${directory}/`);
  return isIn(outside) || !isIn(volume);
}

/** Where a walk led, or the code of its refusal. */
function walkOnce(field: Battlefield, part: string, makesMissing: boolean): string {
  const walked = withDirectory(field.volume, (volume) => {
    const opened = openPart(volume, part, makesMissing);
    if (!opened.ok) return opened;
    const { descriptor } = opened.value.place;
    try {
      return ok(readlinkSync(`/proc/self/fd/${descriptor}`));
    } finally {
      closeSync(descriptor);
    }
  });
  return walked.ok ? walked.value : walked.failure.code;
}

/** Looks at each component first, and then opens the path by its name. */
function walkNaively({ volume }: Battlefield, part: string): string | undefined {
  try {
    let path: string = volume;
    for (const name of part.split('/')) {
      path = join(path, name);
      if (lstatSync(path).isSymbolicLink()) return undefined;
    }
    const descriptor = openSync(path, 'r');
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return undefined;
  }
}

test('the exchange leads a walk that looks first and opens then out of the volume', { skip }, async (t) => {
  const field = furnish(t);
  await underAttack(field, () => {
    for (let attempt = 0; attempt < NAIVE_ATTEMPTS_MAX; attempt += 1) {
      const led = walkNaively(field, attempt % 2 === 0 ? 'near/secret' : 'absolute/secret');
      if (led !== undefined && isOutside(led, field)) return;
    }
    assert.fail('it never did, so the test below shows nothing');
  });
});

test(`SE-02: ${ATTEMPTS} walks under exchange lead nowhere outside, and make nothing there`, {
  skip,
}, async (t) => {
  const field = furnish(t);
  const came = new Map<string, number>();
  let binds = 0;
  await underAttack(field, async () => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const { part, makesMissing } = PARTS[attempt % PARTS.length] ?? PARTS[0];
      const led = walkOnce(field, part, makesMissing);
      const isPath = led.startsWith('/');
      assert.ok(!isPath || !isOutside(led, field), `attempt ${attempt}: ${part} led to ${led}`);
      const what = isPath ? 'inside' : led;
      came.set(what, (came.get(what) ?? 0) + 1);
      if (attempt % BIND_EVERY === 0) binds += await bindOnce(field, part, makesMissing);
      if (makesMissing) removeMade(field, part);
    }
  });
  assert.equal(readFileSync(join(field.outside, 'secret'), 'utf8'), 'outside');
  t.diagnostic(`${JSON.stringify(Object.fromEntries(came))}, ${binds} binds`);
  // It was attacked indeed: some walks met the link and some the directory.
  for (const one of ['inside', 'subpath-unsafe'])
    assert.ok((came.get(one) ?? 0) > 0, `no walk came to ${one}`);
  assert.ok(binds > 0, 'no bind was made');
  // It is protected, as a mount point of ours is; the last one may have been of a file.
  if (lstatSync(field.target).isDirectory()) assert.ok(removeEmptyDirectory(field.target).ok);
});

/** So that the next walk has to make it; what is outside is looked at first, for this goes by names. */
function removeMade({ volume, outside }: Battlefield, part: string): void {
  assert.deepEqual(readdirSync(outside), ['secret']);
  const made = part.slice(0, part.indexOf('/made') + '/made'.length);
  try {
    rmSync(join(volume, made), { recursive: true, force: true });
  } catch {
    // The names were exchanged meanwhile: it is there the next time.
  }
}

/** 1: it was bound, to what is in the volume, and is not any more. */
async function bindOnce(field: Battlefield, part: string, makesMissing: boolean): Promise<number> {
  const { volume: root, target } = field;
  const bound = bindPart({ root, rootMountId: undefined, part, target, makesMissing });
  if (!bound.ok) return 0;
  assert.equal(bound.value, 'bound');
  const isFile = lstatSync(target).isFile();
  const secret = isFile ? target : join(target, 'secret');
  if (isFile || readdirSync(target).includes('secret')) assert.equal(readFileSync(secret, 'utf8'), 'inside');
  const unmounted = await runTool({ tool: 'umount', argv: ['--', target], deadlineMs: 60_000 });
  assert.ok(unmounted.ok && unmounted.value.exitCode === 0);
  return 1;
}
