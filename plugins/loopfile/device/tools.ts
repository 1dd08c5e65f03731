/** The programs the driver runs, and what to install when one is missing. */
import { runTool } from '../../../mount/tool.ts';
import { status } from './status.ts';

const DEBIAN_PACKAGE = {
  losetup: 'mount',
  mount: 'mount',
  umount: 'mount',
  blkid: 'util-linux',
  blockdev: 'util-linux',
  'mkfs.ext2': 'e2fsprogs',
  'mkfs.ext3': 'e2fsprogs',
  'mkfs.ext4': 'e2fsprogs',
  e2fsck: 'e2fsprogs',
  resize2fs: 'e2fsprogs',
  'mkfs.xfs': 'xfsprogs',
  xfs_growfs: 'xfsprogs',
  'mkfs.btrfs': 'btrfs-progs',
  btrfs: 'btrfs-progs',
} as const;

export type Tool = keyof typeof DEBIAN_PACKAGE;

export interface ToolAnswer {
  readonly exitCode: number;
  readonly stdout: string;
  /** What it said last, for messages: of standard error, or of standard output when that is empty. */
  readonly complaint: string;
}

const QUICK_MS = 30_000;

/**
 * Runs a tool to its end. A missing tool is FAILED_PRECONDITION and names the package; a tool that had to be killed is
 * DEADLINE_EXCEEDED: it may have done its work all the same.
 */
export async function ask(tool: Tool, argv: readonly string[], deadlineMs = QUICK_MS): Promise<ToolAnswer> {
  const ran = await runTool({ tool, argv, deadlineMs });
  if (!ran.ok) {
    if (ran.failure.code !== 'tool-missing') throw status('INTERNAL', `${tool}: ${ran.failure.message}`);
    throw status('FAILED_PRECONDITION', `${tool} is not installed: apt-get install ${DEBIAN_PACKAGE[tool]}`);
  }
  const { exitCode, signal, deadlinePassed, stdout, stderr } = ran.value;
  if (deadlinePassed || exitCode === undefined) {
    throw status(
      'DEADLINE_EXCEEDED',
      `${tool} was ended by ${signal ?? 'a signal'} (deadline ${deadlineMs} ms)`,
    );
  }
  return { exitCode, stdout, complaint: lastWords(stderr) || lastWords(stdout) };
}

const COMPLAINT_LINES = 2;
const COMPLAINT_CHARACTERS_MAX = 500;
/** `resize2fs 1.47.0 (5-Feb-2023)`, which the tools of e2fsprogs say first, and the hint mount(8) adds last. */
const SAYS_NOTHING = /^\S+ \d+(\.\d+)+ \(.*\)$|^dmesg\(1\) may have more information/;

/** The reason comes at the end: before it are banners and progress. */
function lastWords(output: string): string {
  const lines = output.split('\n').map((line) => line.trim());
  const telling = lines.filter((line) => line !== '' && !SAYS_NOTHING.test(line));
  return telling.slice(-COMPLAINT_LINES).join('; ').slice(-COMPLAINT_CHARACTERS_MAX);
}

/** Like `ask`, for tools whose only good exit code is 0; any other is INTERNAL. */
export async function run(tool: Tool, argv: readonly string[], deadlineMs = QUICK_MS): Promise<string> {
  const answer = await ask(tool, argv, deadlineMs);
  if (answer.exitCode !== 0)
    throw status('INTERNAL', `${tool} ended with ${answer.exitCode}: ${answer.complaint}`);
  return answer.stdout;
}
