/**
 * A private namespace for tests that mount or look at all processes: what they leave mounted goes when their process
 * does, and the machine never sees it.
 */
import { spawnSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';

/** What of the machine a test file wants for itself alone. */
interface Privacy {
  /** As people know it. */
  readonly name: string;
  /** The kernel's, below /proc/self/ns. */
  readonly namespace: 'mnt' | 'pid';
  /** Holds the namespace the test was started from, so that the second life knows it is another one. */
  readonly outerVariable: string;
  /** Options of unshare(1). */
  readonly flags: readonly string[];
  /** What comes before the command in the namespace. */
  readonly init: readonly string[];
}

const MOUNTS: Privacy = {
  name: 'mount',
  namespace: 'mnt',
  outerVariable: 'MOORING_TEST_OUTER_NAMESPACE',
  flags: ['--mount', '--propagation', 'private'],
  init: [],
};

const PROCESSES: Privacy = {
  name: 'process',
  namespace: 'pid',
  outerVariable: 'MOORING_TEST_OUTER_PROCESSES',
  flags: ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private'],
  // The first process inherits those of whoever is killed. Node.js waits for its own children only: thousands stay in
  // /proc as zombies, and each look for holders goes through all of them.
  init: ['sh', '-c', '"$@"; exit "$?"', 'sh'],
};

/**
 * Call it first in a test file, and give what it returns to each test as `skip`. In the machine's own namespace it runs
 * the file again in a private one and exits as that did; inside, it returns false. Not root: the reason, said loudly.
 */
export function inPrivateNamespace(): string | false {
  return inPrivate(MOUNTS);
}

/**
 * As inPrivateNamespace, with a process namespace besides: the test sees its own processes only. A test machine may
 * have others that nobody may look at, and then the right answer to "who uses it?" is a failure.
 */
export function inPrivateProcesses(): string | false {
  return inPrivate(PROCESSES);
}

function inPrivate({ name, namespace, outerVariable, flags, init }: Privacy): string | false {
  const here = readlinkSync(`/proc/self/ns/${namespace}`);
  const outer = process.env[outerVariable];
  if (outer !== undefined && outer !== here) return false;
  const file = process.argv[1] ?? '';
  if (process.getuid?.() !== 0) return skipLoudly(`${file} needs root to mount`);
  if (spawnSync('unshare', [...flags, 'true']).status !== 0) {
    return skipLoudly(`${file} needs a private ${name} namespace, and unshare(1) cannot make one here`);
  }
  const itself = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  // The reports of the runner's protocol go straight through: the runner sees one file. When we are killed, so is it.
  const again = spawnSync('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...flags, ...init, ...itself], {
    stdio: 'inherit',
    env: { ...process.env, [outerVariable]: here },
  });
  process.exit(again.status ?? 1);
}

function skipLoudly(reason: string): string {
  process.stderr.write(`\n*** SKIPPED: ${reason} ***\n\n`);
  return reason;
}
