/**
 * A mount namespace of its own with a pool in it, and the real driver as a process that can be killed and started
 * again. What the tests look at is the kernel's table, the loop devices and the files, not the driver's words.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAbsolutePath, type RemoteMethod, type RemoteReply } from '../../../mount/host.ts';
import { type MountEntry, parseMountTable } from '../../../mount/mount-table.ts';
import {
  ControllerService,
  CreateVolumeRequest,
  NodePublishVolumeRequest,
  NodeService,
  NodeStageVolumeRequest,
  type VolumeCapability,
  VolumeCapability_AccessMode_Mode as Mode,
} from '../../../plugins/csi/generated/csi.ts';
import { createGrpcRemote } from '../../../plugins/csi/grpc.ts';

const MAIN = fileURLToPath(new URL('../../../plugins/loopfile/main.ts', import.meta.url));
const DEADLINE_MS = 60_000;

export const CODE = {
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
  if (process.getuid?.() !== 0) return 'SKIPPED: needs root for mounts and loop devices';
  if (!existsSync('/dev/loop-control')) return 'SKIPPED: no /dev/loop-control here';
  const missing = tools.find(
    (tool) => !['/usr/sbin', '/sbin', '/usr/bin'].some((one) => existsSync(join(one, tool))),
  );
  return missing === undefined ? false : `SKIPPED: ${missing} is not installed`;
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
  close(): Promise<void>;
}

export async function createWorld(): Promise<World> {
  const directory = mkdtempSync(join(tmpdir(), 'mooring-loopfile-'));
  const pool = join(directory, 'pool');
  const socket = join(directory, 'csi.sock');
  mkdirSync(join(directory, 'stage'));
  mkdirSync(join(directory, 'pods'));
  const keeper = spawn('unshare', [
    '-m',
    '--propagation',
    'private',
    'sh',
    '-c',
    'echo ready; exec sleep infinity',
  ]);
  await once(keeper.stdout, 'data');
  const pid = keeper.pid ?? 0;
  const remote = createGrpcRemote();
  const drivers = new Set<ChildProcess>();

  async function start(...flags: readonly string[]): Promise<Driver> {
    const node = [process.execPath, '--import', import.meta.resolve('tsx'), MAIN];
    const argv = ['--pool', pool, '--endpoint', `unix://${socket}`, '--node-id', 'node-1', ...flags];
    const inNamespace = ['-m', '-t', String(pid), '--'];
    const child = spawn('nsenter', [...inNamespace, ...node, ...argv], { stdio: ['ignore', 'pipe', 'pipe'] });
    drivers.add(child);
    const exited = once(child, 'exit');
    let log = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr.on('data', (chunk) => {
        log += String(chunk);
        if (log.includes('"event":"started"')) resolve();
      });
      void exited.then(() => reject(new Error(`the driver ended at once: ${log}`)));
    });
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
    if (reply.kind !== 'ok') assert.fail(`${method.path}: ${JSON.stringify(reply)}`);
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
    return readdirSync('/sys/block').filter((name) => {
      const file = `/sys/block/${name}/loop/backing_file`;
      return existsSync(file) && readFileSync(file, 'utf8').startsWith(directory);
    });
  }

  async function close(): Promise<void> {
    remote.close();
    for (const child of drivers) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    keeper.kill('SIGKILL');
    await once(keeper, 'exit');
    for (const name of loops()) execFileSync('losetup', ['--detach', `/dev/${name}`]);
    rmSync(directory, { recursive: true });
  }

  return {
    pid,
    directory,
    pool,
    start,
    call,
    must,
    run,
    mounts,
    loops,
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
    remove: () => world.call(ControllerService.deleteVolume, { volumeId, secrets: {} }),
  };
}

export function assertOk(reply: RemoteReply<unknown>): void {
  assert.equal(reply.kind, 'ok', JSON.stringify(reply));
}

export function assertStatus(reply: RemoteReply<unknown>, name: keyof typeof CODE): void {
  assert.equal(reply.kind, 'status', JSON.stringify(reply));
  assert.equal(
    reply.kind === 'status' && reply.status,
    CODE[name],
    `${name} expected: ${JSON.stringify(reply)}`,
  );
}
