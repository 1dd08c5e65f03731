/** Is there nothing to lose on a device? Answered by its bytes. Path brokers only. */
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { isZero, tellingRanges } from '../../device/telling-bytes.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, fail, ok, type Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';
import { formatDevice } from '../path/mount-lookup.ts';
import { withChild } from '../path/path-walk.ts';

const MEBIBYTE = 1024 * 1024;
const SECTOR_BYTES = 512;
const EXCLUSIVE = constants.O_RDONLY | constants.O_EXCL | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const CHUNK = Buffer.alloc(MEBIBYTE);

/** As `DeviceFileSystems.proveBlank`. */
export function proveBlank(device: AbsolutePath): Result<void> {
  const proven = withExclusive(device, (descriptor) => readZeros(descriptor, device));
  if (!proven.ok || proven.value !== 'in use') return proven.ok ? done : proven;
  const message = `${device} is in use: it is mounted somewhere, or another program has it`;
  return fail({ code: 'device-in-use', message, effect: 'none', blocker: device });
}

/** No mount of any namespace and no careful tool holds the device, and it can be written. */
export function isDeviceChangeable(device: AbsolutePath): Result<boolean> {
  let isProtected = false;
  const opened = withExclusive(device, (descriptor) => {
    const { rdev } = fstatSync(descriptor, { bigint: true });
    isProtected = readFileSync(`/sys/dev/block/${formatDevice(rdev)}/ro`, 'utf8').trim() === '1';
    return done;
  });
  return opened.ok ? ok(opened.value !== 'in use' && !isProtected) : opened;
}

/** The kernel gives out one exclusive claim (open(2), O_EXCL on a device). */
function withExclusive(
  device: AbsolutePath,
  use: (descriptor: number) => Result<void>,
): Result<'in use' | undefined> {
  return withChild(device, (child): Result<'in use' | undefined> => {
    let descriptor: number;
    try {
      descriptor = openSync(child.path, EXCLUSIVE);
    } catch (error) {
      return errnoOf(error) === 'EBUSY' ? ok('in use') : failErrno(error, `open ${device}`, 'none');
    }
    try {
      const used = use(descriptor);
      return used.ok ? ok(undefined) : used;
    } catch (error) {
      return failErrno(error, `read ${device}`, 'none');
    } finally {
      closeSync(descriptor);
    }
  });
}

function readZeros(descriptor: number, device: AbsolutePath): Result<void> {
  const facts = fstatSync(descriptor, { bigint: true });
  if (!facts.isBlockDevice())
    return fail({ code: 'path-wrong-kind', message: `${device} is no block device`, effect: 'none' });
  const sectors = readFileSync(`/sys/dev/block/${formatDevice(facts.rdev)}/size`, 'utf8');
  const sizeBytes = Number(sectors) * SECTOR_BYTES;
  if (!(sizeBytes > 0)) {
    const message = `${device} has no bytes: its disk or medium may come yet, and nothing is known of what is on it`;
    return fail({ code: 'input-output', message, effect: 'none', blocker: device });
  }
  for (const [from, to] of tellingRanges(sizeBytes)) {
    for (let at = from; at < to; ) {
      const read = readSync(descriptor, CHUNK, 0, Math.min(CHUNK.length, to - at), at);
      if (read === 0)
        return fail({ code: 'input-output', message: `${device} ends at byte ${at}`, effect: 'none' });
      if (!isZero(CHUNK.subarray(0, read))) {
        const message = `${device} is not blank, so it is not formatted: there is data within 1 MiB after byte ${at}`;
        return fail({ code: 'device-content', message, effect: 'none', blocker: device });
      }
      at += read;
    }
  }
  return done;
}
