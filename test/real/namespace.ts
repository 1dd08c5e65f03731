/**
 * A private mount namespace for tests that mount: what they leave mounted goes when their process does, and the machine
 * never sees it.
 */
import { spawnSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';

/** Holds the namespace the test was started from, so that the second life knows it is another one. */
const OUTER = 'MOORING_TEST_OUTER_NAMESPACE';

/**
 * Call it first in a test file, and give what it returns to each test as `skip`. In the machine's own namespace it runs
 * the file again in a private one and exits as that did; inside, it returns false. Not root: the reason, said loudly.
 */
export function inPrivateNamespace(): string | false {
  const here = readlinkSync('/proc/self/ns/mnt');
  const outer = process.env[OUTER];
  if (outer !== undefined && outer !== here) return false;
  const file = process.argv[1] ?? '';
  if (process.getuid?.() !== 0) return skipLoudly(`${file} needs root to mount`);
  const unshare = ['unshare', '--mount', '--propagation', 'private'];
  if (spawnSync(unshare[0] ?? '', [...unshare.slice(1), 'true']).status !== 0) {
    return skipLoudly(`${file} needs a private mount namespace, and unshare(1) cannot make one here`);
  }
  // The reports of the runner's protocol go straight through: the runner sees one file. When we are killed, so is it.
  const again = spawnSync(
    'setpriv',
    ['--pdeathsig', 'KILL', ...unshare, process.execPath, ...process.execArgv, ...process.argv.slice(1)],
    { stdio: 'inherit', env: { ...process.env, [OUTER]: here } },
  );
  process.exit(again.status ?? 1);
}

function skipLoudly(reason: string): string {
  process.stderr.write(`\n*** SKIPPED: ${reason} ***\n\n`);
  return reason;
}
