/** A program of ours as one file, which starts ten times as fast as its source. */
import { chmod, copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { PROGRAM_FIRST_LINE } from '../../mount/process/node-start.ts';
import { builtProgram, type ProgramEntry } from '../machine/program.ts';

/** Bundled CommonJS dependencies call require; an ES module has none. */
const BANNER = [
  PROGRAM_FIRST_LINE,
  "import { createRequire as mooringRequire } from 'node:module'; const require = mooringRequire(import.meta.url);",
].join('\n');

/** `entry`: from the top of the repository. Settles with the executable file, `<directory>/<name>`. */
export async function bundle(directory: string, entry: ProgramEntry, name: string): Promise<string> {
  const outfile = join(directory, name);
  const built = builtProgram(entry);
  if (built === undefined) await bundleInto(outfile, entry);
  else await copyFile(built, outfile);
  return outfile;
}

/** As `bundle`, and always built. */
export async function bundleInto(outfile: string, entry: ProgramEntry): Promise<void> {
  await build({
    entryPoints: [fileURLToPath(new URL(`../../${entry}`, import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    banner: { js: BANNER },
    logLevel: 'error',
  });
  await chmod(outfile, 0o755);
}
