/** The product as it is shipped: two files in dist, built here when they are missing or older than their sources. */
import { spawn } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = ['agent', 'reconciler', 'kubernetes', 'plugins', 'mount'] as const;
const SOURCE_FILES = ['build.ts', 'package.json', 'package-lock.json'] as const;

export const AGENT_BUNDLE = join(ROOT, 'dist/mooring.mjs');
export const DRIVER_BUNDLE = join(ROOT, 'dist/mooring-loopfile.mjs');

/** Builds what is not there or not up to date; a sentence when that fails. */
export async function prepareBundles(): Promise<string | undefined> {
  if (Math.min(...[AGENT_BUNDLE, DRIVER_BUNDLE].map(modifiedMs)) > newestSourceMs()) return undefined;
  const startMs = performance.now();
  process.stderr.write('Building the bundles in dist ... ');
  // The same loader as ours runs build.ts, so that no npx is needed.
  const child = spawn(process.execPath, [...process.execArgv, join(ROOT, 'build.ts')], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => said.push(chunk));
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(127));
    child.once('close', resolve);
  });
  process.stderr.write(code === 0 ? `${((performance.now() - startMs) / 1_000).toFixed(1)} s\n` : 'failed\n');
  return code === 0 ? undefined : `The build ended with ${code}:\n${Buffer.concat(said).toString('utf8')}`;
}

/** -Infinity when it is not there. */
function modifiedMs(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.NEGATIVE_INFINITY;
}

function newestSourceMs(): number {
  const files = SOURCES.flatMap((folder) => {
    const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
    return names.filter((name) => name.endsWith('.ts')).map((name) => join(ROOT, folder, name));
  });
  return Math.max(...[...files, ...SOURCE_FILES.map((name) => join(ROOT, name))].map(modifiedMs));
}
