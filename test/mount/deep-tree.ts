/** A tree that no path is long enough for: directories in each other, each with a file and one more directory. */
import { closeSync, constants, mkdirSync, openSync, writeFileSync } from 'node:fs';

const O_PATH = 0o10000000;
const LEVELS = 2_500;

/** Fills the directory; the last file has a name that is no text. Says how many entries it has made. */
export function plantDeep(directory: string): number {
  let descriptor = openSync(directory, O_PATH | constants.O_DIRECTORY);
  for (let level = 0; level < LEVELS; level += 1) {
    const here = `/proc/self/fd/${descriptor}`;
    writeFileSync(`${here}/file`, '', { mode: 0o600 });
    mkdirSync(`${here}/beside`, { mode: 0o700 });
    mkdirSync(`${here}/dddddddddd`, { mode: 0o700 });
    const next = openSync(`${here}/dddddddddd`, O_PATH | constants.O_DIRECTORY);
    closeSync(descriptor);
    descriptor = next;
  }
  const odd = Buffer.concat([Buffer.from(`/proc/self/fd/${descriptor}/`), Buffer.from([0xff, 0xfe])]);
  writeFileSync(odd, 'x', { mode: 0o600 });
  closeSync(descriptor);
  return 3 * LEVELS + 1;
}
