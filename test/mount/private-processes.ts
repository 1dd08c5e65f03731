/**
 * A mount namespace and a process namespace for tests that look at all processes: in it they see their own only. A
 * test machine may have others that nobody may look at, and then the right answer to "who uses it?" is a failure.
 */
import { spawnSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';

/** Holds the process namespace the test was started from. */
const OUTER = 'MOORING_TEST_OUTER_PROCESSES';

/** As inPrivateNamespace of test/real/namespace.ts: call it first, and give what it returns to each test as `skip`. */
export function inPrivateProcesses(): string | false {
  const here = readlinkSync('/proc/self/ns/pid');
  const outer = process.env[OUTER];
  if (outer !== undefined && outer !== here) return false;
  const file = process.argv[1] ?? '';
  if (process.getuid?.() !== 0) return skipLoudly(`${file} needs root to mount`);
  const unshare = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const command = [...unshare, '--propagation', 'private'];
  if (spawnSync(command[0] ?? '', [...command.slice(1), 'true']).status !== 0) {
    return skipLoudly(`${file} needs a private process namespace, and unshare(1) cannot make one here`);
  }
  const again = spawnSync(
    'setpriv',
    ['--pdeathsig', 'KILL', ...command, process.execPath, ...process.execArgv, ...process.argv.slice(1)],
    { stdio: 'inherit', env: { ...process.env, [OUTER]: here } },
  );
  process.exit(again.status ?? 1);
}

function skipLoudly(reason: string): string {
  process.stderr.write(`\n*** SKIPPED: ${reason} ***\n\n`);
  return reason;
}
