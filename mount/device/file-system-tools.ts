/** File systems on block devices: the tools that make, check and grow them, and what blkid(8) says. Pure. */

export const FILE_SYSTEM_TYPES = ['ext2', 'ext3', 'ext4', 'xfs', 'btrfs'] as const;

export type FileSystemType = (typeof FILE_SYSTEM_TYPES)[number];

export type FileSystemTool =
  | 'mkfs.ext2'
  | 'mkfs.ext3'
  | 'mkfs.ext4'
  | 'mkfs.xfs'
  | 'mkfs.btrfs'
  | 'e2fsck'
  | 'resize2fs'
  | 'xfs_growfs'
  | 'btrfs'
  | 'blkid'
  | 'blockdev';

/**
 * A tool that writes to a device has so long. Killed in the middle it leaves what only a person can mend: a file system
 * that is half made or half moved; and a check that takes longer would begin anew for ever. On a large or slow disk
 * each may take hours. One that hangs does so in the kernel, where no kill ends it.
 */
export const WRITE_MS_MAX = 24 * 60 * 60_000;

export type ToolCall = readonly [FileSystemTool, ...string[]];

export function isFileSystemType(text: string): text is FileSystemType {
  return (FILE_SYSTEM_TYPES as readonly string[]).includes(text);
}

/** Without any force flag: a refusal of mkfs is final (INV-9). */
export function makeCall(type: FileSystemType, device: string): ToolCall {
  return [`mkfs.${type}`, '-q', '--', device];
}

/**
 * Has the kernel read a device anew. While anybody has it open, what was read of it once is kept in memory, also when
 * another machine that reaches the disk has written to it since.
 */
export function readAnewCall(device: string): ToolCall {
  return ['blockdev', '--flushbufs', device];
}

/** Repairs only what is safe without asking (`-p`, INV-10). Undefined: it checks itself when it is mounted. */
export function checkCall(type: FileSystemType, device: string): ToolCall | undefined {
  return type === 'xfs' || type === 'btrfs' ? undefined : ['e2fsck', '-p', device];
}

const ERRORS_LEFT = 4;

/**
 * What e2fsck(8) found. Its exit code has a bit for each: 1 corrected, 2 corrected under a mount, 4 errors are left, 8
 * and above: it could not check. `exitCode`: undefined when a signal ended it.
 */
export function checked(exitCode: number | undefined): 'good' | 'errors-left' | 'unfinished' {
  if (exitCode === undefined) return 'unfinished';
  if (exitCode < ERRORS_LEFT) return 'good';
  return (exitCode & ERRORS_LEFT) === 0 ? 'unfinished' : 'errors-left';
}

/** A check of all of it, which resize2fs(8) asks for before it moves anything. */
export function fullCheckCall(device: string): ToolCall {
  return ['e2fsck', '-p', '-f', device];
}

/** It grows while it is mounted; others do so before, where no capability is needed for it. */
export function growsMounted(type: FileSystemType): boolean {
  return type === 'xfs' || type === 'btrfs';
}

/** To the size of its device; one of full size stays as it is. `mountPoint`: of one that `growsMounted`. */
export function growCall(type: FileSystemType, device: string, mountPoint: string): ToolCall {
  switch (type) {
    case 'xfs':
      return ['xfs_growfs', '-d', mountPoint];
    case 'btrfs':
      return ['btrfs', 'filesystem', 'resize', 'max', mountPoint];
    default:
      return ['resize2fs', device];
  }
}

/** Mount options it always needs: a copied disk has the UUID of its original, and xfs mounts a UUID only once. */
export function optionsOf(type: FileSystemType): readonly string[] {
  return type === 'xfs' ? ['nouuid'] : [];
}

/** What is on a device: a file system, something else (a partition table, LUKS, …), or nothing that blkid knows. */
export type DeviceContent =
  | { readonly kind: 'file-system'; readonly type: string }
  | { readonly kind: 'other'; readonly what: string }
  | { readonly kind: 'nothing' };

export function probeCall(device: string): ToolCall {
  return ['blkid', '--probe', '--output', 'export', device];
}

/** `nothing` proves nothing: blkid says it of an unreadable device as well (MF-3). */
export function contentIn(report: {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly complaint: string;
}): DeviceContent {
  const { exitCode, stdout, complaint } = report;
  if (exitCode === 2) return { kind: 'nothing' };
  if (exitCode !== 0) return { kind: 'other', what: `blkid ended with ${exitCode}: ${complaint}` };
  const facts = new Map(
    stdout.split('\n').map((line) => {
      const [key = '', ...value] = line.split('=');
      return [key, value.join('=')];
    }),
  );
  if ([...facts.keys()].every(isOfThePlace)) return { kind: 'nothing' };
  const type = facts.get('TYPE');
  if (type !== undefined && facts.get('USAGE') === 'filesystem') return { kind: 'file-system', type };
  return { kind: 'other', what: type ?? facts.get('PTTYPE') ?? 'an unknown signature' };
}

/** What blkid(8) says of any partition, whatever is on it: what it is called, and its line in the table of its disk. */
function isOfThePlace(key: string): boolean {
  return key === '' || key === 'DEVNAME' || key.startsWith('PART_ENTRY_');
}
