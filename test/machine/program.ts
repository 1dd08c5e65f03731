/**
 * How tests start our own programs: as one file each, built once for all tests of a run (test/run.ts), which starts
 * five times as fast as the source. A test file that is run by itself has them from the source.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where the programs of this run are; its processes inherit it. */
export const BUILD_VARIABLE = 'MOORING_TEST_BUILD';

export const PROGRAM_ENTRIES = [
  'agent/main.ts',
  'plugins/loopfile/main.ts',
  'test/agent/process/talking-program.ts',
  'test/broker-main.ts',
  'test/drive/broken-driver.ts',
  'test/hostile/fuse-server.ts',
  'test/real/agent-process.ts',
] as const;

export type ProgramEntry = (typeof PROGRAM_ENTRIES)[number];

/** Where a build has the program, from the top of the build. */
export function builtName(entry: ProgramEntry): string {
  return join('programs', entry.replace(/\.ts$/, '.mjs'));
}

/** The file of the program, or undefined where nothing was built. */
export function builtProgram(entry: ProgramEntry): string | undefined {
  const build = process.env[BUILD_VARIABLE];
  return build === undefined ? undefined : join(build, builtName(entry));
}

/** What node is given to run it. */
export function programArguments(entry: ProgramEntry): readonly string[] {
  const built = builtProgram(entry);
  if (built !== undefined) return [built];
  const source = fileURLToPath(new URL(`../../${entry}`, import.meta.url));
  return ['--import', import.meta.resolve('tsx'), source];
}
