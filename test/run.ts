/**
 * `npm test`: every test file under node's own runner, inside a private mount namespace when we are root, and a look
 * at the machine afterwards: the tests must leave no mount, loop device, process or scratch directory behind.
 * `npm test -- test/reconciler` runs the files below a folder; `test/interop`, `test/vm`, `test/k8s` only when named.
 * System tools that are missing are installed first; with `--no-install` they are named, and nothing is run.
 */
import { spawn } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Failures } from './machine/failures.ts';
import { BUILD_VARIABLE } from './machine/program.ts';
import { createRunScratch } from './machine/run-scratch.ts';
import { NO_INSTALL, provideTools } from './machine/system-tools.ts';
import { buildTests } from './machine/test-build.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
/** Many files wait for most of their time, so there are twice as many as a small machine has processors. */
const CONCURRENCY = 4;
/** They take minutes, so they begin first: nobody waits for one of them alone at the end. */
const LONGEST = [
  'test/real/crash-sweep',
  'test/sim/simulate',
  'test/real/foreign',
  'test/real/',
  'test/systemd/',
  'test/drive/',
];
/** How long one file may take; a test that hangs must not hang the gate. The whole sweep needs a good part of it. */
const FILE_MS_MAX = 3_000_000;

function testFiles(wanted: readonly string[]): string[] {
  const all = readdirSync(HERE, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => relative(process.cwd(), join(HERE, name)))
    .sort((a, b) => turnOf(a) - turnOf(b) || (a < b ? -1 : 1));
  return wanted.length === 0
    ? all.filter((name) => !APART.some((one) => name.startsWith(one)))
    : all.filter((name) => wanted.some((one) => name.startsWith(one.replace(/^\.\//, ''))));
}

function turnOf(name: string): number {
  const turn = LONGEST.findIndex((one) => name.startsWith(one));
  return turn < 0 ? LONGEST.length : turn;
}

/** They build Go programs, machines, and a whole control plane, for minutes: suites of their own. */
const APART = ['test/interop/', 'test/vm/', 'test/k8s/'];
/** A machine under emulation wants all processors, and its image is made once. */
const ONE_BY_ONE = 'test/vm/';

async function run(names: readonly string[], directory: string): Promise<number> {
  const build = join(directory, 'build');
  const files = await buildTests(names, build);
  const env = { ...process.env, TMPDIR: directory, [BUILD_VARIABLE]: build };
  const node = [
    process.execPath,
    '--enable-source-maps',
    '--test',
    `--test-concurrency=${names.some((name) => name.startsWith(ONE_BY_ONE)) ? 1 : CONCURRENCY}`,
    `--test-timeout=${FILE_MS_MAX}`,
    ...files,
  ];
  const isRoot = process.getuid?.() === 0;
  if (!isRoot) {
    process.stderr.write(
      'WARNING: not root: every test that needs the real kernel will be skipped. Run it as root.\n',
    );
  }
  const [command = '', ...argv] = isRoot ? ['unshare', '--mount', '--propagation', 'private', ...node] : node;
  // On a terminal node's own reporter repeats what failed; in a log nobody would find it.
  if (process.stdout.isTTY) {
    const child = spawn(command, argv, { stdio: 'inherit', env });
    return new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)));
  }
  const child = spawn(command, argv, { stdio: ['inherit', 'pipe', 'inherit'], env });
  const failures = new Failures();
  createInterface({ input: child.stdout }).on('line', (line) => {
    process.stdout.write(`${line}\n`);
    failures.add(line);
  });
  return new Promise((resolve) =>
    child.on('close', (code) => {
      process.stdout.write(String(failures));
      resolve(code ?? 1);
    }),
  );
}

const files = testFiles(process.argv.slice(2).filter((one) => one !== NO_INSTALL));
if (files.length === 0) {
  process.stderr.write('no test file matches\n');
  process.exit(2);
}
const lacking = provideTools(files.some((name) => name.startsWith(ONE_BY_ONE)) ? 'vm' : 'test');
if (lacking !== undefined) {
  process.stderr.write(`${lacking}\n`);
  process.exit(1);
}
const scratch = createRunScratch();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
const code = await run(files, scratch.directory);
const left = scratch.leftBehind();
for (const trace of left) process.stderr.write(`LEFT BEHIND: ${trace}\n`);
if (left.length === 0) scratch.remove();
else rmSync(join(scratch.directory, 'build'), { recursive: true });
process.exit(code === 0 && left.length > 0 ? 1 : code);
