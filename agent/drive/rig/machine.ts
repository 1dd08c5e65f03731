/**
 * What `mooring drive` sees and does on the machine by itself: directories, probes of data, the mount table. It runs
 * for minutes and serves nobody, so it reads and writes without brokers; everything has a deadline.
 */
import { constants } from 'node:fs';
import {
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rmdir,
  stat,
  statfs,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fail, ok, type Result } from '../../../mount/failure.ts';
import type { Clock, PathKind } from '../../../mount/host.ts';
import { type MountEntry, parseMountTable } from '../../../mount/mount-table.ts';
import { readOwnMountInfo } from '../../../mount/process/mount-info.ts';
import { formatDevice } from '../../../mount/broker/path/mount-lookup.ts';
import { runTool } from '../../../mount/tool.ts';

const FILE_MS_MAX = 20_000;
const TOOL_MS_MAX = 20_000;
const SECRET_FILE_BYTES_MAX = 65_536;
const OTHERS = 0o077;

export const CLOCK: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  timer: (delayMs, fire) => {
    const timer = setTimeout(fire, delayMs);
    return () => clearTimeout(timer);
  },
};

export function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, delayMs));
}

/** A failed system call by its name; the file system that does not answer is `ETIMEDOUT`. */
export type Attempt<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly errno: string };

/**
 * The work has `msMax`. A system call that hangs cannot be ended, but what it gives afterwards is of no use: `late` is
 * aborted, and work of several steps looks at it before each step that writes. One step harms nobody when it is late:
 * it is in the scratch directory, or on a file that was opened in time, and what it leaves there is told at the end.
 */
export async function attempt<T>(
  work: (late: AbortSignal) => Promise<T>,
  msMax: number = FILE_MS_MAX,
): Promise<Attempt<T>> {
  const controller = new AbortController();
  let cancel = (): void => {};
  const tooLate = new Promise<Attempt<T>>((resolve) => {
    cancel = CLOCK.timer(msMax, () => {
      controller.abort();
      resolve({ ok: false, errno: 'ETIMEDOUT' });
    });
  });
  const done = work(controller.signal).then(
    (value): Attempt<T> => ({ ok: true, value }),
    (error: unknown): Attempt<T> => ({ ok: false, errno: errnoOf(error) }),
  );
  const result = await Promise.race([done, tooLate]);
  cancel();
  return result;
}

function errnoOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

/** The table of this mount namespace; empty when it cannot be read. */
export async function readMounts(): Promise<readonly MountEntry[]> {
  return tableNow() ?? [];
}

/** Undefined when it cannot be read: who is to delete something must not take that for a machine without mounts. */
function tableNow(): readonly MountEntry[] | undefined {
  const text = readOwnMountInfo();
  const table = text.ok ? parseMountTable(text.value) : undefined;
  return table?.ok === true ? table.value.entries : undefined;
}

/** The stack at a path, lowest first. */
export async function mountsAt(path: string): Promise<readonly MountEntry[]> {
  return (await readMounts()).filter(({ target }) => target === path);
}

/** Those that lie at the path or anywhere below it. */
export async function mountsBelow(path: string): Promise<readonly MountEntry[]> {
  return (await readMounts()).filter(isAtOrBelow(path));
}

function isAtOrBelow(path: string): (mount: MountEntry) => boolean {
  return ({ target }) => target === path || target.startsWith(`${path}/`);
}

/** As lstat has it; what could not be asked is its errno (`ETIMEDOUT`), never `absent`. */
export async function kindOf(path: string): Promise<PathKind | string> {
  const facts = await attempt(() => lstat(path));
  if (!facts.ok) return facts.errno === 'ENOENT' || facts.errno === 'ENOTDIR' ? 'absent' : facts.errno;
  const { value } = facts;
  if (value.isDirectory()) return 'directory';
  if (value.isFile()) return 'file';
  if (value.isBlockDevice()) return 'block';
  if (value.isSocket()) return 'socket';
  if (value.isSymbolicLink()) return 'symlink';
  return value.isCharacterDevice() ? 'character' : 'fifo';
}

/** 0 when nothing is there. */
export async function inodeOf(path: string): Promise<number> {
  const facts = await attempt(() => lstat(path));
  return facts.ok ? facts.value.ino : 0;
}

/** In the directory named, or where temporary files go; 0700 and root's own, on a path without links. */
export async function makeScratch(base: string | undefined): Promise<string> {
  return mkdtemp(join(await realpath(base ?? tmpdir()), 'mooring-drive-'));
}

/** 0750, as the agent makes them. */
export async function makeDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o750 });
}

/** Empty, too, when the directory cannot be read. */
export async function namesIn(path: string): Promise<readonly string[]> {
  const names = await attempt(() => readdir(path));
  return names.ok ? names.value : [];
}

/** As an editor would: complete under another name, then renamed. 0600. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const fresh = join(dirname(path), `.${basename(path)}.new`);
  await writeFile(fresh, text, { mode: 0o600 });
  await rename(fresh, path);
}

/** A failure is not told. */
export async function removeFile(path: string): Promise<void> {
  await attempt(() => unlink(path));
}

/** A volume that was there before has what somebody wrote: a link in it may lead to any file of the machine. */
const { O_CREAT, O_NOFOLLOW, O_RDONLY, O_TRUNC, O_WRONLY } = constants;
const WRITES_PROBE = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW;

/** Writes a file through to the disk; undefined, or the errno. */
export async function writeProbe(path: string, text: string): Promise<string | undefined> {
  const written = await attempt(async (late) => {
    const file = await open(path, WRITES_PROBE, 0o600);
    try {
      late.throwIfAborted();
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  });
  return written.ok ? undefined : written.errno;
}

export async function readProbe(path: string): Promise<Attempt<string>> {
  return attempt(async () => {
    const file = await open(path, O_RDONLY | O_NOFOLLOW);
    try {
      return await file.readFile('utf8');
    } finally {
      await file.close();
    }
  });
}

/** Size of the file system that has the path; undefined when it cannot be asked. */
export async function fileSystemBytes(path: string): Promise<bigint | undefined> {
  const facts = await attempt(() => statfs(path, { bigint: true }));
  return facts.ok ? facts.value.blocks * facts.value.bsize : undefined;
}

/** `major:minor` of the device behind a device node; undefined for anything else. */
export async function deviceOf(path: string): Promise<string | undefined> {
  const facts = await attempt(() => stat(path, { bigint: true }));
  return facts.ok && facts.value.isBlockDevice() ? formatDevice(facts.value.rdev) : undefined;
}

const SECTOR_BYTES = 512n;

/** The kernel's size of a block device. */
export async function deviceBytes(device: string): Promise<bigint | undefined> {
  const text = await attempt(() => readFile(`/sys/dev/block/${device}/size`, 'utf8'));
  return text.ok ? BigInt(text.value.trim()) * SECTOR_BYTES : undefined;
}

/** The file behind a loop device; undefined for other devices. A deleted file keeps its name. */
export async function backingFileOf(device: string): Promise<string | undefined> {
  return backingFileIn(`/sys/dev/block/${device}`);
}

async function backingFileIn(directory: string): Promise<string | undefined> {
  const text = await attempt(() => readFile(`${directory}/loop/backing_file`, 'utf8'));
  return text.ok ? text.value.trim().replace(/ \(deleted\)$/, '') : undefined;
}

/** Loop devices of which the backing file is one of these. */
export async function loopDevicesOf(files: ReadonlySet<string>): Promise<readonly string[]> {
  const found: string[] = [];
  for (const name of await namesIn('/sys/block')) {
    if (!name.startsWith('loop')) continue;
    const file = await backingFileIn(`/sys/block/${name}`);
    if (file !== undefined && files.has(file)) found.push(`/dev/${name} (${file})`);
  }
  return found;
}

const BLOCK_BYTES = 4_096;

/** Writes one block at the start of a device, through to it; undefined, or the errno. */
export async function writeBlock(path: string, text: string): Promise<string | undefined> {
  const written = await attempt(async (late) => {
    const device = await open(path, constants.O_WRONLY | constants.O_SYNC);
    try {
      const block = Buffer.alloc(BLOCK_BYTES);
      block.write(text);
      late.throwIfAborted();
      await device.write(block, 0, BLOCK_BYTES, 0);
    } finally {
      await device.close();
    }
  });
  return written.ok ? undefined : written.errno;
}

/** Text at the start of a device, up to its first NUL. */
export async function readBlock(path: string): Promise<Attempt<string>> {
  return attempt(async () => {
    const device = await open(path, 'r');
    try {
      const block = Buffer.alloc(BLOCK_BYTES);
      await device.read(block, 0, BLOCK_BYTES, 0);
      return block.toString('utf8').replace(/\0[\s\S]*$/, '');
    } finally {
      await device.close();
    }
  });
}

/** Takes mounts away that somebody left, topmost first, lazily if need be: the namespace is our own. */
export async function forceUnmount(paths: readonly string[]): Promise<void> {
  for (const path of [...paths].reverse()) {
    const plain = await runTool({ tool: 'umount', argv: ['--', path], deadlineMs: TOOL_MS_MAX });
    if (plain.ok && plain.value.exitCode === 0) continue;
    await runTool({ tool: 'umount', argv: ['--lazy', '--', path], deadlineMs: TOOL_MS_MAX });
  }
}

/**
 * Takes away a directory of ours and all below it, unless something is mounted there, or nobody knows; what could not
 * be removed. A driver that runs elsewhere may mount late: each directory is looked at before it is emptied.
 */
export async function removeScratch(path: string): Promise<readonly string[]> {
  const mounts = tableNow();
  if (mounts === undefined || mounts.some(isAtOrBelow(path))) return [path];
  const left: string[] = [];
  for (const name of await namesIn(path)) {
    const child = join(path, name);
    if ((await kindOf(child)) === 'directory') left.push(...(await removeScratch(child)));
    else if (!(await attempt(() => unlink(child))).ok) left.push(child);
  }
  if (left.length === 0 && !(await attempt(() => rmdir(path))).ok) left.push(path);
  return left;
}

/**
 * A file of secrets for drivers: its text. Refused, by a sentence without a word of the file, when others may read it,
 * when it is no plain file, or when it is too large.
 */
export async function readSecretsFile(path: string): Promise<Result<string>> {
  const refuse = (message: string) =>
    fail({ code: 'permission-denied', message: `secrets file ${path}: ${message}`, effect: 'none' });
  const facts = await attempt(() => stat(path));
  if (!facts.ok) return refuse(`cannot be read: ${facts.errno}`);
  if (!facts.value.isFile()) return refuse('is not a plain file');
  if ((facts.value.mode & OTHERS) !== 0) return refuse('may be read by others than its owner; chmod 600 it');
  if (facts.value.size > SECRET_FILE_BYTES_MAX) return refuse(`has more than ${SECRET_FILE_BYTES_MAX} bytes`);
  const text = await attempt(() => readFile(path, 'utf8'));
  return text.ok ? ok(text.value) : refuse(`cannot be read: ${text.errno}`);
}
