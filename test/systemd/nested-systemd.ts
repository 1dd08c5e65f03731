/** A systemd of its own as pid 1 of a container: an overlay of this machine's root. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../until.ts';
import { signalProcess } from '../signal.ts';

export interface NestedSystemd {
  /** Runs a shell command inside; standard output and exit code. */
  run(command: string): { readonly code: number | null; readonly out: string };
  /** Asks again until the command's output matches; throws with the last output after `waitMs`. */
  until(command: string, wanted: RegExp, waitMs?: number): Promise<string>;
  /** Lines of pid 1's mountinfo with the text. */
  mounts(text: string): readonly string[];
  end(): Promise<void>;
}

const BOOT_MS_MAX = 300_000;
const CGROUPS = ['systemd', 'unified'].map((name) => `/sys/fs/cgroup/${name}`);

/** Why this machine cannot do it, or undefined. */
export function nestedSystemdSkip(): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root';
  if (!existsSync('/lib/systemd/systemd')) return 'there is no systemd to run';
  if (CGROUPS.some((one) => !existsSync(one)))
    return 'the cgroups are not laid out as systemd 252 has them (hybrid)';
  if (spawnSync('unshare', ['-mpfiuC', 'true']).status !== 0) return 'unshare(1) may not make the namespaces';
  return undefined;
}

const MASKED = [
  'systemd-udevd.service',
  'systemd-udev-trigger.service',
  'systemd-networkd.service',
  'systemd-resolved.service',
  'systemd-logind.service',
  'systemd-timesyncd.service',
  'getty.target',
  'console-getty.service',
];

/** `setUp` runs with $R, the future root, before systemd starts. */
function insideScript(folder: string, setUp: string): string {
  return `set -e
O=${folder}/overlay; R=$O/root; mkdir -p $O; mount -t tmpfs overlay $O; mkdir $O/upper $O/work $R
mount -t overlay overlay -o lowerdir=/,upperdir=$O/upper,workdir=$O/work $R
mount -t proc proc $R/proc
for d in run tmp var/log var/lib; do mount -t tmpfs tmpfs $R/$d; done
mount --rbind /dev $R/dev
mount -t sysfs sysfs $R/sys
mount -t tmpfs cgroup $R/sys/fs/cgroup
mkdir $R/sys/fs/cgroup/systemd $R/sys/fs/cgroup/unified
mount -t cgroup -o none,name=systemd cgroup $R/sys/fs/cgroup/systemd
mount -t cgroup2 cgroup2 $R/sys/fs/cgroup/unified
rm -rf $R/etc/systemd/system/*.wants; : > $R/etc/fstab
echo 0123456789abcdef0123456789abcdef > $R/etc/machine-id
for u in ${MASKED.join(' ')}; do ln -sf /dev/null $R/etc/systemd/system/$u; done
${setUp}
mkdir -p $R/old; cd $R; pivot_root . old; umount -l /old
mount --make-rshared /
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
  /lib/systemd/systemd --unit=multi-user.target --show-status=0
`;
}

export async function bootNestedSystemd(setUp: string): Promise<NestedSystemd> {
  const folder = mkdtempSync(join(tmpdir(), 'mooring-nested-'));
  const name = folder.slice(folder.lastIndexOf('/') + 1);
  const cgroups = CGROUPS.map((one) => join(one, name));
  for (const one of cgroups) mkdirSync(one);
  // $$ is the shell, which becomes unshare: its child is pid 1. All of it goes when the test process goes.
  const outside = `for g in ${cgroups.join(' ')}; do echo $$ > $g/cgroup.procs; done
exec setpriv --pdeathsig KILL unshare -m -p -f -i -u -C --kill-child --propagation private bash -c "$INSIDE"`;
  const env = { ...process.env, INSIDE: insideScript(folder, setUp) };
  const holder = spawn('bash', ['-c', outside], { env, detached: true, stdio: 'ignore' });
  const gone = new Promise<void>((resolve) => holder.once('exit', () => resolve()));
  const first = await firstProcess(holder);
  const nested: NestedSystemd = {
    run(command) {
      const environment = ['LC_ALL=C.UTF-8', 'PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'];
      const words = ['-t', String(first), '-a', '-r', '-w', 'env', ...environment, 'sh', '-c', command];
      const { status, stdout, stderr } = spawnSync('nsenter', words, {
        encoding: 'utf8',
        timeout: BOOT_MS_MAX,
      });
      return { code: status, out: `${stdout}${stderr}` };
    },
    until: (command, wanted, waitMs = BOOT_MS_MAX) =>
      until(
        `${command} says ${wanted}`,
        () => {
          const { out } = nested.run(command);
          return wanted.test(out) && out;
        },
        { waitMsMax: waitMs, lookEveryMs: 50 },
      ),
    mounts: (text) => {
      return readFileSync(`/proc/${first}/mountinfo`, 'utf8')
        .split('\n')
        .filter((line) => line.includes(text));
    },
    async end() {
      signalProcess(first, 'SIGKILL');
      await gone;
      for (const one of cgroups) await removeCgroup(one);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await nested.until('systemctl is-system-running', /running|degraded/, BOOT_MS_MAX);
  return nested;
}

async function firstProcess(holder: ChildProcess): Promise<number> {
  for (let waitedMs = 0; waitedMs < BOOT_MS_MAX && holder.exitCode === null; waitedMs += 50) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const [child] = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim().split(' ');
    if (child === undefined || child === '') continue;
    if (readFileSync(`/proc/${child}/comm`, 'utf8').trim() === 'systemd') return Number(child);
  }
  throw new Error('no systemd came up');
}

/** Processes leave a cgroup a moment after they have died. */
async function removeCgroup(path: string): Promise<void> {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await removeCgroup(join(path, entry.name));
  }
  for (let tries = 0; tries < 6_000; tries += 1) {
    try {
      rmdirSync(path);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
