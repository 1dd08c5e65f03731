/** The text of mountinfo, read so that no line of a mount that stays is lost. Touches no file system but proc. */
import { closeSync, openSync, readSync } from 'node:fs';
import { release } from 'node:os';
import { errnoOf } from '../errno.ts';
import { fail, ok, type Result } from '../failure.ts';
import type { LineFilter } from '../mount-lines.ts';

const MOUNTINFO = '/proc/self/mountinfo';
/** `fs.mount-max` is 100,000 mounts of at most some 8 KiB a line; a real table of that size has 15 MiB. */
const MOUNTINFO_BYTES_MAX = 128 * 1_024 * 1_024;
/** The kernel gives at most a page a time whatever the buffer (measured, 6.18). */
const CHUNK_BYTES = 65_536;
const LINE_END = 0x0a;
/** Before 5.8 a table that changes while it is read may lose lines (k/k#103754). */
const STEADY_TABLE_SINCE = [5, 8] as const;
const TABLE_READS_MAX = 4;

/** This process's, with the lines that `keep` asks for; on an old kernel read until it stays the same. */
export function readOwnMountInfo(keep?: LineFilter): Result<string> {
  let text = readMountInfo(MOUNTINFO, keep);
  if (isTableSteady(release())) return text;
  for (let reads = 1; reads < TABLE_READS_MAX && text.ok; reads += 1) {
    const again = readMountInfo(MOUNTINFO, keep);
    if (again.ok && again.value === text.value) break;
    text = again;
  }
  return text;
}

function isTableSteady(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map(Number);
  const [sinceMajor, sinceMinor] = STEADY_TABLE_SINCE;
  return major > sinceMajor || (major === sinceMajor && minor >= sinceMinor);
}

/**
 * The lines of mountinfo that `keep` asks for, all unless it is given; through one descriptor, so that lines of mounts
 * that stay are neither lost nor doubled (809 reads under churn, Linux 6.18).
 */
export function readMountInfo(file: string, keep: LineFilter = () => true): Result<string> {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'r');
    const kept: string[] = [];
    let buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    let filled = 0;
    let bytes = 0;
    for (;;) {
      if (filled === buffer.length) buffer = Buffer.concat([buffer], 2 * filled);
      const read = readSync(descriptor, buffer, filled, buffer.length - filled, null);
      if (read === 0) break;
      bytes += read;
      if (bytes > MOUNTINFO_BYTES_MAX) {
        const message = `${file} has more than ${MOUNTINFO_BYTES_MAX} bytes`;
        return fail({ code: 'table-unreadable', message, effect: 'none' });
      }
      filled = takeLines(buffer, filled + read, keep, kept);
    }
    return ok(kept.join(''));
  } catch (error) {
    return fail({ code: 'table-unreadable', message: `${file}: ${errnoOf(error)}`, effect: 'none' });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Moves the lines that are kept to `kept`, and the beginning of one to the front; answers its length. */
function takeLines(buffer: Buffer, filled: number, keep: LineFilter, kept: string[]): number {
  let start = 0;
  for (;;) {
    const end = buffer.indexOf(LINE_END, start);
    if (end < 0 || end >= filled) break;
    if (keep(buffer, start, end)) kept.push(buffer.toString('utf8', start, end + 1));
    start = end + 1;
  }
  buffer.copy(buffer, 0, start, filled);
  return filled - start;
}
