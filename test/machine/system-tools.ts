/**
 * The one list of the system tools that tests, demo, bench and gate need, and the Debian package of each. What is
 * missing is installed, or named in one error before anything begins: half a run of tests says nothing.
 */
import { spawnSync } from 'node:child_process';
import { findTool } from '../../mount/path-tool.ts';

const PACKAGES = {
  mount: 'mount',
  umount: 'mount',
  losetup: 'mount',
  unshare: 'util-linux',
  setpriv: 'util-linux',
  prlimit: 'util-linux',
  flock: 'util-linux',
  blkid: 'util-linux',
  nsenter: 'util-linux',
  fsfreeze: 'util-linux',
  chattr: 'e2fsprogs',
  'mkfs.ext4': 'e2fsprogs',
  'fsck.ext4': 'e2fsprogs',
  e2fsck: 'e2fsprogs',
  resize2fs: 'e2fsprogs',
  'mkfs.xfs': 'xfsprogs',
  xfs_growfs: 'xfsprogs',
  xfs_io: 'xfsprogs',
  'mkfs.btrfs': 'btrfs-progs',
  btrfs: 'btrfs-progs',
  python3: 'python3-minimal',
  'systemd-analyze': 'systemd',
  'systemd-notify': 'systemd',
  podman: 'podman',
  runc: 'runc',
  catatonit: 'catatonit',
  'qemu-system-x86_64': 'qemu-system-x86',
  'qemu-img': 'qemu-utils',
  mmdebstrap: 'mmdebstrap',
} as const;

export type SystemTool = keyof typeof PACKAGES;

const NODE = ['mount', 'umount', 'losetup', 'unshare', 'setpriv', 'prlimit', 'flock', 'blkid'] as const;
const EXT4 = ['mkfs.ext4', 'fsck.ext4', 'e2fsck', 'resize2fs'] as const;
const XFS = ['mkfs.xfs', 'xfs_growfs', 'xfs_io'] as const;

/** What somebody sets out to do, and the tools for it. */
export const NEEDED = {
  demo: [...NODE, ...EXT4],
  bench: [...NODE, ...EXT4],
  hostile: [...NODE, ...EXT4, ...XFS],
  test: [
    ...NODE,
    ...EXT4,
    ...XFS,
    'nsenter',
    'fsfreeze',
    'mkfs.btrfs',
    'btrfs',
    'python3',
    'systemd-analyze',
    'systemd-notify',
    'podman',
    'runc',
    'catatonit',
  ],
  vm: [...NODE, ...EXT4, 'qemu-system-x86_64', 'qemu-img', 'mmdebstrap'],
} as const satisfies Record<string, readonly SystemTool[]>;

export type Purpose = keyof typeof NEEDED;

/** The argument that says: name what is missing, install nothing. */
export const NO_INSTALL = '--no-install';

export interface ProvideParts {
  readonly install: boolean;
  readonly has: (tool: SystemTool) => boolean;
  /** Runs a command to its end. */
  readonly run: (argv: readonly string[]) => { readonly code: number | null; readonly output: string };
  /** `sudo`: it can be had; `none`: neither root nor sudo. */
  readonly rights: 'root' | 'sudo' | 'none';
  readonly hasApt: boolean;
  readonly say: (line: string) => void;
}

/** Undefined when all tools are there now; otherwise the one sentence that says what to do. */
export function provideTools(purpose: Purpose, parts: ProvideParts = HERE): string | undefined {
  const isMissing = (tool: SystemTool): boolean => !parts.has(tool);
  const missing = NEEDED[purpose].filter(isMissing);
  if (missing.length === 0) return undefined;
  const packages = [...new Set(missing.map((tool) => PACKAGES[tool]))].sort();
  const install = ['apt-get', 'install', '-y', '-q', '--no-install-recommends', ...packages];
  const lacking =
    `${purpose} needs ${missing.join(', ')}, which this machine does not have. ` +
    `On Debian, as root: apt-get update && ${install.join(' ')}`;
  if (!parts.install || !parts.hasApt || parts.rights === 'none') return lacking;
  parts.say(
    `${purpose} needs ${missing.join(', ')}: installing ${packages.join(' ')} (${NO_INSTALL}: do not)`,
  );
  const asRoot = parts.rights === 'sudo' ? ['sudo', '--'] : [];
  const quietly = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive'];
  // A fresh machine has no package lists; one whose lists are out of date fails at the second step, and says so.
  const updated = parts.run([...asRoot, 'apt-get', 'update', '-q']);
  const installed = parts.run([...quietly, ...install]);
  const still = missing.filter(isMissing);
  if (still.length === 0) return undefined;
  const words = [updated, installed].map(({ output }) => output.trim().split('\n').slice(-3).join('\n'));
  return `${lacking}\nThat was tried, and ${still.join(', ')} is still missing:\n${words.join('\n')}`;
}

const HERE: ProvideParts = {
  install: !process.argv.includes(NO_INSTALL),
  has: (tool) => findTool(tool) !== undefined,
  run(argv) {
    const [command = '', ...rest] = argv;
    const { status, stdout, stderr } = spawnSync(command, rest, {
      encoding: 'utf8',
      stdio: ['inherit', 'pipe', 'pipe'],
    });
    return { code: status, output: `${stdout}${stderr}` };
  },
  rights: process.getuid?.() === 0 ? 'root' : findTool('sudo') === undefined ? 'none' : 'sudo',
  hasApt: findTool('apt-get') !== undefined,
  say: (line) => void process.stderr.write(`${line}\n`),
};
