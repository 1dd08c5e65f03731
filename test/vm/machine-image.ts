/**
 * What a virtual machine boots from: Debian's cloud kernel and a small root tree of this machine's own Debian release
 * or of another one, from where this machine has its packages. Made once (about half a minute) and kept outside the
 * clone. Nothing of the product is in it, so it outlives every change of the product.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface MachineImage {
  readonly kernel: string;
  /** Raw, ext4, the whole disk. Never written to: machines write to a layer over it. */
  readonly disk: string;
}

/** What is in it. */
export interface MachineKind {
  /** The release of Debian; undefined: this machine's own. */
  readonly release?: string;
  /** Beside what every machine has. */
  readonly packages: readonly string[];
}

export const PLAIN_MACHINE: MachineKind = { packages: [] };

const CACHE = '/var/cache/mooring-test-vm';
const BUILD_MS_MAX = 400_000;
/** Images that nobody used for so long go when a new one is made. */
const UNUSED_MS_MAX = 7 * 24 * 3_600_000;
const LINES_SHOWN = 8;
const TOOLS = ['qemu-system-x86_64', 'qemu-img', 'mmdebstrap', 'mkfs.ext4'];
const PACKAGES = [
  'systemd',
  'systemd-sysv',
  'udev',
  'dbus',
  'kmod',
  'e2fsprogs',
  'xfsprogs',
  'mount',
  'util-linux',
  'procps',
  'qemu-guest-agent',
  'libstdc++6',
];
/** A shell that is not of a login may have a path without the administrator's tools. */
const ENVIRONMENT = { PATH: `${process.env['PATH']}:/usr/sbin:/sbin`, LC_ALL: 'C.UTF-8' };
/** Each costs a boot under emulation a part of a second, and no test asks for it. */
const MASKED = [
  'systemd-logind.service',
  'systemd-user-sessions.service',
  'systemd-binfmt.service',
  'systemd-sysusers.service',
  'systemd-update-utmp.service',
  'systemd-update-utmp-runlevel.service',
  'systemd-machine-id-commit.service',
  'systemd-firstboot.service',
  'systemd-random-seed.service',
  'systemd-pstore.service',
  'systemd-timesyncd.service',
  'systemd-journal-catalog-update.service',
  'systemd-update-done.service',
  'ldconfig.service',
  'dev-hugepages.mount',
  'dev-mqueue.mount',
  'sys-kernel-debug.mount',
  'sys-kernel-tracing.mount',
  'modprobe@.service',
  'getty.target',
];
/**
 * Runs with the future root as $1 and mmdebstrap's own sources: the kernel is unpacked, not installed. Since Debian 13
 * its modules are packed below /usr.
 */
const KERNEL_HOOK = `set -e; export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"; mkdir "$1/kernel"; cd "$1/kernel"
name=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: //p')
apt-get -q download "$name"; dpkg -x "$name"_*.deb tree
part=tree; [ -d tree/lib ] || part=tree/usr
cp -a $part/lib/modules "$1/usr/lib/"; cp tree/boot/vmlinuz-* "$1/../kernel"; cd "$1"; rm -rf kernel
chroot "$1" depmod "$(ls "$1/usr/lib/modules")"`;

/** $1: the folder to fill; $2: the release; $3: its packages; $4: the node program; the package sources follow. */
const SCRIPT = `set -euo pipefail
cd "$1"; release=$2; packages=$3; node=$4; shift 4
skip=(); for part in doc man locale info; do skip+=("--dpkgopt=path-exclude=/usr/share/$part/*"); done
mmdebstrap --quiet --variant=minbase --mode=root --format=directory --dpkgopt=force-unsafe-io "\${skip[@]}" \\
  --include="$packages" --customize-hook="$KERNEL_HOOK" "$release" "$PWD/root" "$@"
install -m 0755 "$node" root/usr/local/bin/node
chroot root node --version
# What a package starts by itself costs every boot its time: a test starts what it needs.
rm -rf root/etc/systemd/system/*.wants
for unit in ${MASKED.join(' ')}; do ln -sf /dev/null "root/etc/systemd/system/$unit"; done
ln -sf /usr/lib/systemd/system/multi-user.target root/etc/systemd/system/default.target
# An empty one would make every boot a first boot.
echo 0123456789abcdef0123456789abcdef > root/etc/machine-id
echo vm-node > root/etc/hostname
: > root/etc/fstab
truncate --size 4G disk.raw
mkfs.ext4 -q -F -d root disk.raw
rm -rf root
`;

/** Why this machine cannot have one, or undefined. */
function machineImageSkip(): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root';
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'needs Linux on x86-64';
  const missing = TOOLS.find(
    (tool) => spawnSync(tool, ['--version'], { env: ENVIRONMENT }).error !== undefined,
  );
  if (missing !== undefined) return `${missing} is not installed`;
  if (debianRelease() === undefined) return 'needs Debian: its package sources and its release';
  return undefined;
}

/** The image, or why it cannot be made here: most often there are no package sources to be reached. */
export async function machineImage(kind: MachineKind): Promise<MachineImage | { readonly missing: string }> {
  const missing = machineImageSkip();
  if (missing !== undefined) return { missing };
  // A program of the machine's own goes in, so its version counts; the rest is what this file says.
  const made = [
    readFileSync(fileURLToPath(import.meta.url)),
    process.version,
    debianRelease() ?? '',
    JSON.stringify(kind),
  ];
  const hash = createHash('sha256');
  for (const part of made) hash.update(part).update('\0');
  const folder = join(CACHE, hash.digest('hex').slice(0, 16));
  const image = { kernel: join(folder, 'kernel'), disk: join(folder, 'disk.raw') };
  if (!existsSync(folder)) {
    const failure = await build(folder, kind);
    if (failure !== undefined) return { missing: failure };
  }
  const now = new Date();
  utimesSync(folder, now, now);
  return image;
}

async function build(folder: string, kind: MachineKind): Promise<string | undefined> {
  mkdirSync(CACHE, { recursive: true });
  for (const name of readdirSync(CACHE)) {
    if (Date.now() - statSync(join(CACHE, name)).mtimeMs > UNUSED_MS_MAX)
      rmSync(join(CACHE, name), { recursive: true });
  }
  const unfinished = mkdtempSync(join(CACHE, '.new-'));
  try {
    const packages = [...PACKAGES, ...kind.packages].join(',');
    const release = kind.release ?? debianRelease() ?? '';
    const words = [unfinished, release, packages, process.execPath, ...sourcesOf(kind)];
    const { code, said } = await runScript(words);
    const lastLines = said.trimEnd().split('\n').slice(-LINES_SHOWN).join('\n');
    if (code !== 0) return `no machine image could be made (${code}):\n${lastLines}`;
    // Another run may have been faster.
    if (!existsSync(folder)) renameSync(unfinished, folder);
    return undefined;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

function runScript(
  words: readonly string[],
): Promise<{ readonly code: number | string; readonly said: string }> {
  // In namespaces of its own: whatever ends it takes every process and mount of it along.
  const alone = [
    'unshare',
    '--mount',
    '--propagation',
    'private',
    '--pid',
    '--fork',
    '--kill-child',
    '--mount-proc',
  ];
  const bound = [
    'timeout',
    '--signal=KILL',
    `${BUILD_MS_MAX / 1_000}`,
    'bash',
    '-c',
    SCRIPT,
    'image',
    ...words,
  ];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...alone, ...bound], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...ENVIRONMENT, KERNEL_HOOK },
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += String(chunk)));
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: error.message, said }));
    child.once('close', (code, signal) => resolve({ code: code ?? signal ?? 'ended', said }));
  });
}

function debianRelease(): string | undefined {
  const file = '/etc/os-release';
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return /^ID=debian$/m.test(text) ? /^VERSION_CODENAME=(\w+)$/m.exec(text)?.[1] : undefined;
}

/** Another release is on the same mirror; what else this machine has may not be there for it. */
function sourcesOf({ release }: MachineKind): readonly string[] {
  if (release === undefined) return packageSources();
  const texts = packageSources().map((file) => readFileSync(file, 'utf8'));
  return [/\bhttps?:\/\/\S+\/debian(?=\/?\s)/.exec(texts.join('\n'))?.[0] ?? 'http://deb.debian.org/debian'];
}

/** As apt(8) finds them. */
function packageSources(): readonly string[] {
  const folder = '/etc/apt/sources.list.d';
  const parts = existsSync(folder)
    ? readdirSync(folder).filter((name) => /\.(list|sources)$/.test(name))
    : [];
  return ['/etc/apt/sources.list', ...parts.sort().map((name) => join(folder, name))].filter(existsSync);
}
