/** The real `Host`: system tools and path calls in broker children, mountinfo in this process. */
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { createBrokerPool } from './broker-pool.ts';
import type { PathCallKind, PathCalls } from '../broker/broker-protocol.ts';
import { createDeviceHold } from './device-hold.ts';
import { type DeviceUsersParts, findDeviceUsers } from './device-users.ts';
import { done, fail, type Failure, ok, type Result } from '../failure.ts';
import {
  type AbsolutePath,
  type Clock,
  type Host,
  type MountRequest,
  REMOVE_TREE_DEADLINE_MS,
} from '../host.ts';
import type { LoopDeviceParts } from '../broker/device/loop-device.ts';
import { aboutPath } from '../mount-lines.ts';
import { createFileSystemQuestion } from './file-system-question.ts';
import { createOwnership } from './fs-group-walk.ts';
import { readMountTable } from '../broker/path/mount-lookup.ts';
import { printable } from '../text/printable.ts';
import { endOf, type ToolRequest } from '../tool.ts';
import { createToolBroker, type ToolBroker } from './tool-broker.ts';

export interface LinuxHostParts {
  /** The gRPC client of the plugins floor. */
  readonly remote: Host['call'];
  /** The directory watcher of the agent floor. */
  readonly watch: Host['watch'];
  /** How a broker is started, without its kind: `[process.execPath, bundle, 'broker']`. */
  readonly brokerCommand: readonly string[];
  readonly deadlinesMs?: Partial<HostDeadlines>;
  readonly pathBrokersMax?: number;
  /** How long ago a file was last written, at least, before its times tell a later write from this one. */
  readonly stampAgeMs?: number;
  /** The lock of waitForHelpers, which every broker and tool then holds. */
  readonly helpersDescriptor?: number;
}

/** From the start of the effect until it is killed. */
export interface HostDeadlines {
  readonly path: number;
  readonly removeTree: number;
  readonly mount: number;
  readonly unmount: number;
  readonly notify: number;
  /** Of one look at a file system, once a broker takes it. */
  readonly probe: number;
  /** One run of losetup(8). */
  readonly loop: number;
  /** For findHolders, which only finds a reason: nothing is done later for it. */
  readonly holders: number;
}

export interface LinuxHost extends Host {
  /** Ends the brokers; settles within about a second. Unmounts nothing. Later calls are `broker-lost`. */
  close(): Promise<void>;
  /** Calls past their deadline that the kernel does not let go of: each holds its key. */
  abandonedCalls(): number;
  /** Pids of all brokers, for tests and status. */
  brokers(): readonly number[];
}

const DEADLINES_MS: HostDeadlines = {
  path: 30_000,
  removeTree: REMOVE_TREE_DEADLINE_MS,
  mount: 60_000,
  unmount: 60_000,
  // A ping every 10 s that takes this long still feeds the shipped unit's watchdog, which waits for 30 s.
  notify: 15_000,
  loop: 30_000,
  holders: 5_000,
  probe: 10_000,
};
/** The coarsest clocks of file systems count in two seconds. */
const STAMP_AGE_MS = 3_000;
const WALK_BROKERS_MAX = 4;
/** So many file systems may hang before the look at another one waits. */
const PROBE_BROKERS_MAX = 16;
const TIMER_MS_MAX = 2 ** 31 - 1;
const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id';

export async function createLinuxHost(parts: LinuxHostParts): Promise<LinuxHost> {
  const deadlines = { ...DEADLINES_MS, ...parts.deadlinesMs };
  const start = { command: parts.brokerCommand, helpersDescriptor: parts.helpersDescriptor };
  const tools = createToolBroker(start);
  const paths = createBrokerPool({
    ...start,
    deadlineMs: deadlines.path,
    removeTreeDeadlineMs: deadlines.removeTree,
    deadlinesMs: { findHolders: deadlines.holders },
    ...(parts.pathBrokersMax === undefined ? {} : { pathBrokersMax: parts.pathBrokersMax }),
  });
  // Of their own: a walk takes as long as the volume is large, and other calls do not wait for it.
  const walks = createBrokerPool({
    ...start,
    deadlineMs: deadlines.path,
    removeTreeDeadlineMs: deadlines.removeTree,
    pathBrokersMax: WALK_BROKERS_MAX,
    waitsForEver: true,
    idleBrokersMin: 0,
  });
  // Of their own, too: whoever hangs here was asked because it may.
  const probes = createBrokerPool({
    ...start,
    deadlineMs: deadlines.probe,
    removeTreeDeadlineMs: deadlines.probe,
    pathBrokersMax: PROBE_BROKERS_MAX,
    waitsForEver: true,
    idleBrokersMin: 0,
  });
  const ask = <Kind extends PathCallKind>(kind: Kind, args: PathCalls[Kind]['args']) =>
    paths.call(kind, args);
  const stampAgeMs = parts.stampAgeMs ?? STAMP_AGE_MS;
  const inTurn = createTurns();
  const effects = createMountEffects(tools, ask, deadlines);
  return {
    ...CLOCK,
    random: Math.random,
    bootId: readFileSync(BOOT_ID_FILE, 'utf8').trim(),
    inspect: (path) => ask('inspect', { path }),
    inspectWay: (path) => ask('inspectWay', { path }),
    makeDirectory: (path, mode) => ask('makeDirectory', { path, mode }),
    removeEmptyDirectory: (path) => ask('removeEmptyDirectory', { path }),
    removeTree: (path) => ask('removeTree', { path }),
    listDirectory: (path, entriesMax) => ask('listDirectory', { path, entriesMax }),
    identifyDirectory: (path) => ask('identifyDirectory', { path }),
    readDirectoryFiles: (path, reading) => ask('readDirectoryFiles', { path, stampAgeMs, ...reading }),
    readFile: (path, bytesMax) => ask('readFile', { path, bytesMax }),
    writeFile: (path, content, options) => inTurn(path, () => ask('writeFile', { path, content, options })),
    overwriteFile: (path, offsetBytes, content) =>
      inTurn(path, () => ask('overwriteFile', { path, offsetBytes, content })),
    removeFile: (path) => ask('removeFile', { path }),
    rename: (from, to) => ask('rename', { from, to }),
    makeLink: (path, text) => ask('makeLink', { path, text }),
    readLink: (path) => ask('readLink', { path }),
    // What is kept of the table is what was asked about, however many mounts others have.
    readMountTable: async (about) => readMountTable(aboutPath(about)),
    mountIdOf: (path) => ask('mountIdOf', { path }),
    mountPlaceOf: (path) => ask('mountPlaceOf', { path }),
    lookUpMount: (path) => ask('lookUpMount', { path }),
    probeFileSystem: createFileSystemQuestion({
      clock: CLOCK,
      ask: (path) => probes.call('probeFileSystem', { path }),
      // The brokers that hang are killed first.
      deadlineMs: 2 * deadlines.probe,
    }),
    findHolders: (target) => ask('findHolders', { target }),
    ...createDeviceCalls(tools, ask, deadlines),
    changeOwnership: createOwnership({
      clock: CLOCK,
      change: (part, company) => walks.call('changeOwnershipPart', part, company),
    }),
    ...effects,
    call: parts.remote,
    watch: parts.watch,
    abandonedCalls: () => paths.abandoned() + walks.abandoned() + probes.abandoned() + tools.abandoned(),
    brokers: () => [...paths.pids(), ...walks.pids(), ...probes.pids(), ...tools.pids()],
    close: async () => {
      await Promise.all([paths.close(), walks.close(), probes.close(), tools.close()]);
    },
  };
}

const CLOCK: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  timer: (delayMs, fire) => {
    const timer = setTimeout(fire, Math.min(Math.max(delayMs, 0), TIMER_MS_MAX));
    return () => clearTimeout(timer);
  },
};

/** Runs tasks of one key one after the other: two writes of one file would share their temporary file. */
function createTurns(): <T>(key: string, task: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return async (key, task) => {
    const turn = (last.get(key) ?? Promise.resolve()).then(task);
    last.set(key, turn);
    try {
      return await turn;
    } finally {
      if (last.get(key) === turn) last.delete(key);
    }
  };
}

type MountEffects = Pick<Host, 'mount' | 'unmount' | 'notify'>;

type Ask = <Kind extends PathCallKind>(
  kind: Kind,
  args: PathCalls[Kind]['args'],
) => Promise<PathCalls[Kind]['result']>;

function createMountEffects(tools: ToolBroker, ask: Ask, deadlines: HostDeadlines): MountEffects {
  /** mount(8) and umount(8) resolve links in a target; a target of ours has none. */
  async function refuseLinks(target: AbsolutePath): Promise<Result<void>> {
    const seen = await ask('mountIdOf', { path: target });
    return seen.ok ? done : seen;
  }
  async function act(
    request: ToolRequest,
    code: Failure['code'],
    target: AbsolutePath,
  ): Promise<Result<void>> {
    const straight = await refuseLinks(target);
    return straight.ok ? runOrFail(tools, request, code) : straight;
  }
  return {
    mount: async (request) => {
      const argv = mountArguments(request);
      if (!argv.ok) return argv;
      return act(
        { tool: 'mount', argv: argv.value, deadlineMs: deadlines.mount },
        'mount-failed',
        request.target,
      );
    },
    unmount: (target) =>
      act({ tool: 'umount', argv: ['--', target], deadlineMs: deadlines.unmount }, 'unmount-failed', target),
    notify: async (state) => {
      const socket = process.env['NOTIFY_SOCKET'];
      if (socket === undefined || socket === '') return done;
      // As the agent, not as the broker: NotifyAccess=main looks at the sender.
      const argv = [`--pid=${process.pid}`, '--', ...state.split('\n').filter((line) => line !== '')];
      const environment = { NOTIFY_SOCKET: socket };
      return runOrFail(
        tools,
        { tool: 'systemd-notify', argv, deadlineMs: deadlines.notify, environment },
        'input-output',
      );
    },
  };
}

type DeviceCalls = Pick<Host, 'deviceOf' | 'holdDevice' | 'releaseDevice' | 'findDeviceUsers'>;

function createDeviceCalls(tools: ToolBroker, ask: Ask, deadlines: HostDeadlines): DeviceCalls {
  const inTurn = createTurns();
  const nodeOf = (path: AbsolutePath) => ask('deviceNodeOf', { path });
  const losetup: LoopDeviceParts = {
    runTool: (request) => tools.run(request),
    deadlineMs: deadlines.loop,
  };
  const { holdDevice, releaseDevice } = createDeviceHold({
    ...losetup,
    clock: CLOCK,
    nodeOf,
    loopsOf: (path) => ask('findLoopsOf', { path }),
  });
  const userParts: DeviceUsersParts = {
    ...losetup,
    scan: (device) => ask('scanForDeviceUsers', { device }),
    deviceByNode: (node) => ask('findDeviceByNode', node),
  };
  return {
    deviceOf: async (path) => {
      const node = await nodeOf(path);
      return node.ok ? ok(node.value?.device) : node;
    },
    holdDevice: (path) => inTurn(path, () => holdDevice(path)),
    releaseDevice: (path) => inTurn(path, () => releaseDevice(path)),
    findDeviceUsers: (device) => findDeviceUsers(userParts, device),
  };
}

const CONTROL = /[\u0000-\u001f\u007f]/;
/** mount(8) reads `LABEL=` and the like as a search for a device. */
const TMPFS_LABEL = /^[A-Za-z0-9][-A-Za-z0-9_.:/]*$/;

function mountArguments({ fsType, source, target, options }: MountRequest): Result<readonly string[]> {
  const wrong = options.find((option) => option === '' || option.includes(',') || CONTROL.test(option));
  if (wrong !== undefined) return refuse(`not a mount option: ${JSON.stringify(wrong)}`);
  const sourceIsGood =
    fsType === 'bind' ? source.startsWith('/') && !source.includes('\0') : TMPFS_LABEL.test(source);
  if (!sourceIsGood) return refuse(`not a ${fsType} source: ${JSON.stringify(source)}`);
  const kind = fsType === 'bind' ? ['--bind'] : ['-t', fsType];
  const chosen = options.length === 0 ? [] : ['-o', options.join(',')];
  return ok([...kind, ...chosen, '--', source, target]);
}

function refuse(message: string): Result<never> {
  return fail({ code: 'mount-failed', message: printable(message, 256), effect: 'none' });
}

/** The exit code is a hint, the words behind it are for people: the caller asks the kernel. */
async function runOrFail(
  tools: ToolBroker,
  request: ToolRequest,
  code: Failure['code'],
): Promise<Result<void>> {
  const report = await tools.run(request);
  if (!report.ok) return report;
  const { exitCode, deadlinePassed } = report.value;
  if (exitCode === 0 && !deadlinePassed) return done;
  const message = endOf(request.tool, report.value);
  return fail({ code: deadlinePassed ? 'deadline-passed' : code, message, effect: 'unknown' });
}
