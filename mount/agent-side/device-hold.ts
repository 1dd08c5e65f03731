/** Holding a block device open through a loop device, with the kernel as judge before and after. */
import { createHash } from 'node:crypto';
import { done, type Failure, fail, ok, type Result } from '../failure.ts';
import type { AbsolutePath, Clock, Host } from '../host.ts';
import { inodeBehind, type LoopDeviceParts } from '../broker/device/loop-device.ts';
import type { DeviceNode } from '../broker/device/path-device.ts';
import { endOf, type ToolRequest } from '../tool.ts';

export interface DeviceHoldParts extends LoopDeviceParts {
  readonly clock: Clock;
  readonly nodeOf: (path: AbsolutePath) => Promise<Result<DeviceNode | undefined>>;
  /** Those that show the path; with `mark`, also those that have it, whatever they show. */
  readonly loopsOf: (path: AbsolutePath, mark?: string) => Promise<Result<readonly string[]>>;
}

/**
 * util-linux looks for a free loop device again when another has taken it, but not for ever; and who loses that race
 * may clear the one that we have just got.
 */
const ATTACH_TRIES_MAX = 3;
const LOOPS_MAX = 16;
/** A loop device that somebody has open, udev for instance, lets go of its file when that one closes it. */
const DETACH_LOOKS_MAX = 20;
const DETACH_LOOK_MS = 50;
/** Larger than any device, and a signed number of 64 bits still, as loop(4) has it. */
const BEYOND_DEVICES = 1n << 62n;
const SECTOR_BYTES = 512n;

/**
 * As `Host.holdDevice` and `Host.releaseDevice` say; calls for one path come one after the other. The loop device is
 * read-only, unlike the kubelet's: it keeps the number as well, takes a device that cannot be written, leaves no open
 * writer behind for udev to react to, and nobody can write past the pod through it.
 */
export function createDeviceHold(parts: DeviceHoldParts): Pick<Host, 'holdDevice' | 'releaseDevice'> {
  return { holdDevice: (path) => hold(parts, path), releaseDevice: (path) => release(parts, path) };
}

async function hold(parts: DeviceHoldParts, path: AbsolutePath): Promise<Result<void>> {
  const node = await parts.nodeOf(path);
  if (!node.ok) return node;
  if (node.value === undefined) {
    return fail({ code: 'path-wrong-kind', message: `no block device at ${path}`, effect: 'none' });
  }
  for (let tries = 1; ; tries += 1) {
    const before = await isHeld(parts, path, node.value);
    if (!before.ok) return tries === 1 ? before : fail({ ...before.failure, effect: 'unknown' });
    if (before.value) return done;
    const marked = ['--sizelimit', holdMark(path)];
    const attached = await runLosetup(parts, ['--find', '--read-only', ...marked, '--', path]);
    const after = await isHeld(parts, path, node.value);
    if (after.ok && after.value) return done;
    const mayCome = attached.ok || attached.failure.code === 'input-output';
    if (mayCome && tries < ATTACH_TRIES_MAX) continue;
    if (!attached.ok) return attached;
    if (!after.ok) return fail({ ...after.failure, effect: 'unknown' });
    const message = `losetup said done, but nothing holds ${path}`;
    return fail({ code: 'input-output', message, effect: 'unknown' });
  }
}

/**
 * Does one of the loop devices of this path hold the node that is there now? Another may hold what was there before:
 * the inode tells, because a path is reused (ST-17).
 */
async function isHeld(
  parts: DeviceHoldParts,
  path: AbsolutePath,
  node: DeviceNode,
): Promise<Result<boolean>> {
  const loops = await parts.loopsOf(path);
  if (!loops.ok) return loops;
  for (const name of loops.value) {
    const inode = await inodeBehind(parts, name);
    if (!inode.ok) return inode;
    if (inode.value === undefined) {
      // losetup says nothing of a loop device that has just gone, and then the next look does not find it either.
      const gone = await parts.loopsOf(path);
      if (gone.ok && !gone.value.includes(name)) continue;
      return fail({
        code: 'input-output',
        message: `losetup does not tell what ${name} holds`,
        effect: 'none',
      });
    }
    if (inode.value.fileSystem === node.fileSystem && inode.value.inode === node.inode) return ok(true);
  }
  return ok(false);
}

/** Also of what was held there when somebody took the bind away: the kernel shows `/` for it, as for everybody's. */
async function release(parts: DeviceHoldParts, path: AbsolutePath): Promise<Result<void>> {
  const mark = holdMark(path);
  let said: Failure | undefined;
  for (let looks = 0; looks < DETACH_LOOKS_MAX; looks += 1) {
    const loops = await parts.loopsOf(path, mark);
    if (!loops.ok) return looks === 0 ? loops : fail({ ...loops.failure, effect: 'unknown' });
    if (loops.value.length === 0) return done;
    if (looks > 0) await pause(parts.clock, DETACH_LOOK_MS);
    for (const name of loops.value.slice(0, LOOPS_MAX)) {
      const detached = await runLosetup(parts, ['--detach', `/dev/${name}`], { name, path, mark });
      // By now it shows something else, as one does that had lost its file and was given another: the next look tells.
      if (!detached.ok && detached.failure.code === 'path-missing') continue;
      if (!detached.ok) said = detached.failure;
      if (said !== undefined && said.code !== 'input-output') return fail(said);
    }
  }
  const message = `a loop device still holds ${path}${said === undefined ? '' : `: ${said.message}`}`;
  return fail({ code: 'device-in-use', message, effect: 'unknown', blocker: path });
}

/**
 * The size limit of a loop device that is made to hold what is at `path`, in bytes: it limits no device
 * (`get_loop_size` of the kernel), and is of this path alone. The kernel keeps and shows it, whoever mounts, moves or
 * unmounts what (D-132).
 */
function holdMark(path: AbsolutePath): string {
  const hash = createHash('sha256').update(path).digest().readBigUInt64BE() % BEYOND_DEVICES;
  return String(BEYOND_DEVICES + hash - (hash % SECTOR_BYTES));
}

async function runLosetup(
  { runTool, deadlineMs }: DeviceHoldParts,
  argv: readonly string[],
  onLoop?: ToolRequest['onLoop'],
): Promise<Result<void>> {
  const on = onLoop === undefined ? {} : { onLoop };
  const report = await runTool({ tool: 'losetup', argv, deadlineMs, ...on });
  if (!report.ok) return report;
  const { exitCode, deadlinePassed } = report.value;
  if (exitCode === 0 && !deadlinePassed) return done;
  const message = endOf('losetup', report.value);
  return fail({ code: deadlinePassed ? 'deadline-passed' : 'input-output', message, effect: 'unknown' });
}

function pause(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.timer(delayMs, resolve));
}
