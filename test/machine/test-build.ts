/**
 * The test files of a run and the programs that they start, built once: node's runner starts a process for each file,
 * and most of a short one's time was spent on translating what all of them share.
 */
import { mkdirSync, symlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { bundleInto } from '../real/bundle.ts';
import { builtName, PROGRAM_ENTRIES } from './program.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Bundled CommonJS packages call `require` for Node's own modules. */
const BANNER = [
  "import { createRequire as createRequireForBundle } from 'node:module';",
  'const require = createRequireForBundle(import.meta.url);',
].join('\n');

/** A test finds files beside itself: it goes on believing to be where its source is. */
const AT_ITS_SOURCE: Plugin = {
  name: 'at its source',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const url = `const urlOfSource = ${JSON.stringify(pathToFileURL(path).href)};`;
      return { contents: text.includes('import.meta.url') ? `${url} ${text}` : text, loader: 'ts' };
    });
  },
};

/**
 * Builds into `directory`, which must not be there yet. `testFiles` are named from the top of the repository. Settles
 * with what node is to run, in the same order.
 */
export async function buildTests(
  testFiles: readonly string[],
  directory: string,
): Promise<readonly string[]> {
  mkdirSync(directory);
  // What is not bundled is found from there.
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  const programs = PROGRAM_ENTRIES.map((entry) => bundleInto(join(directory, builtName(entry)), entry));
  const tests = build({
    absWorkingDir: ROOT,
    entryPoints: testFiles.map((name, turn) => ({ in: name, out: builtTest(name, turn) })),
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    keepNames: true,
    sourcemap: true,
    sourcesContent: false,
    // They look for files beside themselves.
    external: ['esbuild', 'tsx', 'typescript'],
    define: { 'import.meta.url': 'urlOfSource' },
    banner: { js: BANNER },
    plugins: [AT_ITS_SOURCE],
    logLevel: 'warning',
  });
  await Promise.all([tests, ...programs]);
  return testFiles.map((name, turn) => join(directory, `${builtTest(name, turn)}.mjs`));
}

/** Without the end. Node's runner sorts what it is given: the turn is in the name. */
function builtTest(name: string, turn: number): string {
  return `${String(turn).padStart(4, '0')}/${name.replace(/\.ts$/, '')}`;
}
