/**
 * A mount namespace of its own with a pool in it, and the real driver as a process that can be killed and started
 * again. What the tests look at is the kernel's table, the loop devices and the files, not the driver's words.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { parseAbsolutePath } from '../../../mount/host.ts';
import type { RemoteMethod, RemoteReply } from '../../../mount/remote-call.ts';
import { type MountEntry, parseMountTable } from '../../../mount/mount-table.ts';
import {
  ControllerService,
  CreateVolumeRequest,
  NodeExpandVolumeRequest,
  NodePublishVolumeRequest,
  NodeService,
  NodeStageVolumeRequest,
  type VolumeCapability,
  VolumeCapability_AccessMode_Mode as Mode,
  VolumeUsage_Unit as Unit,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { createGrpcRemote } from '../../../plugins/csi/wire/grpc.ts';
import { detachLoopDevices, loopDevicesBelow } from '../../demo/machine.ts';
import { programArguments } from '../../machine/program.ts';

const DEADLINE_MS = 300_000;

const CODE = {
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
} as const;

/** Why the real thing cannot be tested here; false when it can. */
export function cannotRun(...tools: readonly string[]): string | false {
  if (process.getuid?.() !== 0) return skipLoudly('needs root for mounts and loop devices');
  if (!existsSync('/dev/loop-control')) return skipLoudly('no /dev/loop-control here');
  const missing = tools.find(
    (tool) => !['/usr/sbin', '/sbin', '/usr/bin'].some((one) => existsSync(join(one, tool))),
  );
  return missing === undefined ? false : skipLoudly(`${missing} is not installed`);
}

export function skipLoudly(reason: string): string {
  process.stderr.write(`\n*** SKIPPED: ${reason} ***\n\n`);
  return `SKIPPED: ${reason}`;
}

/** `mooring-loopfile create|list|delete` and wrong starts: runs to its end. */
export function runLoopfile(...argv: readonly string[]) {
  const program = programArguments('plugins/loopfile/main.ts');
  return spawnSync(process.execPath, [...program, ...argv], { encoding: 'utf8', timeout: DEADLINE_MS });
}

export interface Driver {
  readonly process: ChildProcess;
  /** What it wrote on standard error. */
  readonly log: () => string;
  kill(): Promise<void>;
  /** SIGTERM; the exit code. */
  stop(): Promise<number | null>;
}

export interface World {
  readonly pid: number;
  readonly socket: string;
  readonly directory: string;
  readonly pool: string;
  start(...flags: readonly string[]): Promise<Driver>;
  call<Request, Reply>(method: RemoteMethod<Request, Reply>, request: Request): Promise<RemoteReply<Reply>>;
  /** The answer of a call that must succeed. */
  must<Request, Reply>(method: RemoteMethod<Request, Reply>, request: Request): Promise<Reply>;
  /** Runs a command in the namespace; its output. */
  run(command: string, ...argv: readonly string[]): string;
  mounts(): readonly MountEntry[];
  mountsAt(path: string): readonly MountEntry[];
  /** Loop devices whose file is (or was) in this world. */
  loops(): readonly string[];
  /** The same file, seen through the namespace. */
  inside(path: string): string;
  /** Takes away every mount and loop device of this world; what there was. One failed test must not fail the next. */
  sweep(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** What runs in the world dies with the test process, also when that is killed. */
const MORTAL = ['--pdeathsig', 'KILL', '--'];

/** A holder of a private mount namespace. */
async function createKeeper(): Promise<ChildProcess> {
  const unshare = ['unshare', '-m', '--propagation', 'private'];
  const keeper = spawn('setpriv', [...MORTAL, ...unshare, 'sh', '-c', 'echo ready; exec sleep infinity']);
  await once(keeper.stdout, 'data');
  return keeper;
}

/** `own`: in a mount namespace of its own. `here`: in that of the test process, which has to be private already. */
export async function createWorld(where: 'own' | 'here' = 'own'): Promise<World> {
  const directory = mkdtempSync(join(tmpdir(), 'mooring-loopfile-'));
  const pool = join(directory, 'pool');
  const socket = join(directory, 'csi.sock');
  mkdirSync(join(directory, 'stage'));
  mkdirSync(join(directory, 'pods'));
  const keeper = where === 'own' ? await createKeeper() : undefined;
  const pid = keeper?.pid ?? process.pid;
  const remote = createGrpcRemote();
  const drivers = new Set<ChildProcess>();

  async function start(...flags: readonly string[]): Promise<Driver> {
    const node = [process.execPath, ...programArguments('plugins/loopfile/main.ts')];
    const argv = ['--pool', pool, '--endpoint', `unix://${socket}`, '--node-id', 'node-1', ...flags];
    const inNamespace = ['-m', '-t', String(pid), '--'];
    const command = ['nsenter', ...inNamespace, ...node, ...argv];
    const child = spawn('setpriv', [...MORTAL, ...command], { stdio: ['ignore', 'ignore', 'pipe'] });
    drivers.add(child);
    const exited = once(child, 'exit');
    let log = '';
    child.stderr.on('data', (chunk) => {
      log += String(chunk);
      if (log.includes('"event":"started"')) child.emit('started');
    });
    await Promise.race([once(child, 'started'), exited]);
    if (child.exitCode !== null) throw new Error(`the driver ended at once: ${log}`);
    return {
      process: child,
      log: () => log,
      kill: async () => {
        child.kill('SIGKILL');
        await exited;
      },
      stop: async () => {
        child.kill('SIGTERM');
        await exited;
        return child.exitCode;
      },
    };
  }

  function call<Request, Reply>(
    method: RemoteMethod<Request, Reply>,
    request: Request,
  ): Promise<RemoteReply<Reply>> {
    const path = parseAbsolutePath(socket);
    assert.ok(path !== undefined);
    const { ino } = statSync(socket);
    return remote.call({ socket: { path, inode: ino }, method, request, deadlineMs: DEADLINE_MS });
  }

  async function must<Request, Reply>(
    method: RemoteMethod<Request, Reply>,
    request: Request,
  ): Promise<Reply> {
    const reply = await call(method, request);
    if (reply.kind !== 'ok') assert.fail(`${method.path}: ${inspect(reply)}`);
    return reply.reply;
  }

  function run(command: string, ...argv: readonly string[]): string {
    return execFileSync('nsenter', ['-m', '-t', String(pid), '--', command, ...argv], { encoding: 'utf8' });
  }

  function mounts(): readonly MountEntry[] {
    const table = parseMountTable(readFileSync(`/proc/${pid}/mountinfo`, 'utf8'));
    assert.ok(table.ok);
    return table.value.entries.filter((entry) => entry.target.startsWith(directory));
  }

  function loops(): readonly string[] {
    return loopDevicesBelow(directory);
  }

  async function sweep(): Promise<readonly string[]> {
    const left = [
      ...mounts().map((entry) => `mount ${entry.target}`),
      ...loops().map((device) => `device ${device}`),
    ];
    for (const entry of [...mounts()].reverse()) run('umount', '--', entry.target);
    await detachLoopDevices(directory, loops());
    return left;
  }

  async function close(): Promise<void> {
    remote.close();
    for (const child of drivers) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await sweep();
    if (keeper !== undefined) {
      keeper.kill('SIGKILL');
      await once(keeper, 'exit');
    }
    rmSync(directory, { recursive: true });
  }

  return {
    pid,
    socket,
    directory,
    pool,
    start,
    call,
    must,
    run,
    mounts,
    loops,
    sweep,
    close,
    mountsAt: (path) => mounts().filter((entry) => entry.target === path),
    inside: (path) => `/proc/${pid}/root${path}`,
  };
}

export const MEBIBYTE = 1024 * 1024;

export interface Shape {
  readonly kind?: 'mount' | 'block';
  readonly fsType?: string;
  readonly mode?: keyof typeof Mode;
  readonly flags?: string[];
}

export function capability({
  kind = 'mount',
  fsType = '',
  mode = 'SINGLE_NODE_WRITER',
  flags = [],
}: Shape = {}) {
  const accessType: VolumeCapability['accessType'] =
    kind === 'block'
      ? { $case: 'block', value: {} }
      : { $case: 'mount', value: { fsType, mountFlags: flags, volumeMountGroup: '' } };
  return { accessType, accessMode: { mode: Mode[mode] } };
}

/** One volume and the places it is used at, and each call about it. */
export async function createVolume(world: World, name: string, shape: Shape = {}, sizeBytes = 64 * MEBIBYTE) {
  const reply = await world.must(
    ControllerService.createVolume,
    CreateVolumeRequest.fromPartial({
      name,
      capacityRange: { requiredBytes: BigInt(sizeBytes) },
      volumeCapabilities: [capability(shape)],
    }),
  );
  const volumeId = reply.volume?.volumeId ?? '';
  const stagingTargetPath = join(world.directory, 'stage', name);
  mkdirSync(stagingTargetPath, { recursive: true });
  const target = join(world.directory, 'pods', name);

  const stageRequest = (as: Shape = shape) =>
    NodeStageVolumeRequest.fromPartial({ volumeId, stagingTargetPath, volumeCapability: capability(as) });
  const publishRequest = (targetPath = target, readonly = false, as: Shape = shape) =>
    NodePublishVolumeRequest.fromPartial({
      volumeId,
      stagingTargetPath,
      targetPath,
      readonly,
      volumeCapability: capability(as),
    });
  return {
    volumeId,
    stagingPath: stagingTargetPath,
    target,
    directory: join(world.pool, volumeId),
    data: join(world.pool, volumeId, 'data.img'),
    stageRequest,
    publishRequest,
    stage: (as?: Shape) => world.call(NodeService.nodeStageVolume, stageRequest(as)),
    unstage: () => world.call(NodeService.nodeUnstageVolume, { volumeId, stagingTargetPath }),
    publish: (targetPath?: string, readonly?: boolean, as?: Shape) =>
      world.call(NodeService.nodePublishVolume, publishRequest(targetPath, readonly, as)),
    unpublish: (targetPath = target) => world.call(NodeService.nodeUnpublishVolume, { volumeId, targetPath }),
    enlarge: (bytes: number) =>
      world.must(ControllerService.controllerExpandVolume, {
        volumeId,
        capacityRange: { requiredBytes: BigInt(bytes), limitBytes: 0n },
        secrets: {},
        volumeCapability: undefined,
      }),
    expand: () =>
      world.call(
        NodeService.nodeExpandVolume,
        NodeExpandVolumeRequest.fromPartial({ volumeId, volumePath: target }),
      ),
    /** To a size, where it is staged. */
    expandTo: (bytes: number) =>
      world.call(
        NodeService.nodeExpandVolume,
        NodeExpandVolumeRequest.fromPartial({
          volumeId,
          volumePath: stagingTargetPath,
          capacityRange: { requiredBytes: BigInt(bytes) },
        }),
      ),
    /** What the file system at a place of the volume holds in all, or the block device. */
    totalBytes: async (volumePath = target) => {
      const request = { volumeId, volumePath, stagingTargetPath: '' };
      const { usage } = await world.must(NodeService.nodeGetVolumeStats, request);
      return Number(usage.find(({ unit }) => unit === Unit.BYTES)?.total ?? 0n);
    },
    remove: () => world.call(ControllerService.deleteVolume, { volumeId, secrets: {} }),
  };
}

/** An answer for messages; capacities are BigInt, which JSON does not know. */
const shown = (reply: RemoteReply<unknown>): string => inspect(reply, { depth: 5 });

export function assertOk(reply: RemoteReply<unknown>): void {
  assert.equal(reply.kind, 'ok', shown(reply));
}

/** `because` is for statuses whose words an operator depends on. */
export function assertStatus(reply: RemoteReply<unknown>, name: keyof typeof CODE, because = /(?:)/): void {
  assert.equal(reply.kind === 'status' && reply.status, CODE[name], `${name} expected: ${shown(reply)}`);
  assert.match(reply.kind === 'status' ? reply.message : '', because);
}
