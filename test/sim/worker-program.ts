/** The simulation as one program, and how its processes are started: most of a seed's time is V8's otherwise. */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { RUN_PREFIX } from '../machine/run-scratch.ts';
import { COMPILER_FLAGS } from './compiler-flags.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Bundled CommonJS packages call `require` for Node's own modules. */
const BANNER = [
  "import { createRequire as createRequireForBundle } from 'node:module';",
  'const require = createRequireForBundle(import.meta.url);',
].join('\n');

/** A stack tells the lines of the sources. The heap is large from the start: a seed leaves hardly anything behind. */
const NODE_FLAGS = [
  '--enable-source-maps',
  '--min-semi-space-size=64',
  '--max-semi-space-size=64',
  '--initial-heap-size=256',
  ...COMPILER_FLAGS,
] as const;

/**
 * Builds worker-main.ts and all that it needs into one file, which is removed when this process ends, and answers with
 * what starts a process of it. What tsx adds to every function (its name) is left out.
 */
export async function buildWorkerProgram(): Promise<() => ChildProcess> {
  const directory = mkdtempSync(join(tmpdir(), RUN_PREFIX));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const program = join(directory, 'worker.mjs');
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['test/sim/worker-main.ts'],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: true,
    sourcesContent: false,
    banner: { js: BANNER },
    logLevel: 'warning',
  });
  return () => fork(program, { stdio: 'inherit', execArgv: [...NODE_FLAGS] });
}
