/** The real `Host`: system tools and path calls in broker children, mountinfo in this process. */
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { createHostBrokers, type HostBrokers } from './host-brokers.ts';
import { createDeviceHold } from './device-hold.ts';
import { type DeviceUsersParts, findDeviceUsers } from './device-users.ts';
import type { BlockDevices, DeviceFileSystems } from '../block-devices.ts';
import { createDeviceFileSystems } from './device-file-systems.ts';
import { createFileSystemQuestion } from './file-system-question.ts';
import { createOwnership } from './fs-group-walk.ts';
import { DEADLINES_MS, type HostDeadlines } from './host-deadlines.ts';
import { type Ask, createMountEffects } from './mount-effects.ts';
import { createIscsi } from './tools/iscsi-effects.ts';
import type { ToolBroker } from './tool-broker.ts';
import type { BrokerPrograms, PathCallKind, PathCalls } from '../broker/broker-protocol.ts';
import type { LoopDeviceParts } from '../broker/device/loop-device.ts';
import { readMountTable } from '../broker/path/mount-lookup.ts';
import { ok, type Result } from '../failure.ts';
import type { AbsolutePath, Cancel, Clock, Host } from '../host.ts';
import { aboutPath } from '../mount-lines.ts';
import { createTurns } from '../process/turns.ts';
import { createUsageQuestion } from './usage-question.ts';

export interface LinuxHostParts {
  /** The gRPC client of the plugins floor. */
  readonly remote: Host['call'];
  /** The directory watcher of the agent floor. */
  readonly watch: Host['watch'];
  /** How a broker is started, without its kind: `[process.execPath, bundle, 'broker']`. */
  readonly brokerCommand: readonly string[];
  readonly brokerPrograms?: BrokerPrograms | undefined;
  readonly deadlinesMs?: Partial<HostDeadlines>;
  readonly pathBrokersMax?: number;
  /** By default bare mount points are directories as others are. */
  readonly immutableMountPoints?: boolean | undefined;
  /** How long ago a file was last changed, at least, before its times tell a later change from this one. */
  readonly stampAgeMs?: number;
  /** How often a walk of ownership tells how far it is, and looks whether it is wanted still. */
  readonly walkLookMs?: number;
  /** The lock of waitForHelpers, which every broker and tool then holds. */
  readonly helpersDescriptor?: number;
  /** What a broker said on standard error that is gone; without it they write to that of this process. */
  readonly onLastWords?: ((words: string) => void) | undefined;
}

export interface LinuxHost extends Host {
  /** Ends the brokers; settles within about a second. Unmounts nothing. Later calls are `broker-lost`. */
  close(): Promise<void>;
  /** Does a helper answer, asked about `/`? However many calls wait or hang: it waits for none of them. */
  answers(): Promise<Result<void>>;
  /** Calls past their deadline that the kernel does not let go of: each holds its key. */
  abandonedCalls(): number;
  /** Pids of all brokers, for tests and status. */
  brokers(): readonly number[];
}

/** The coarsest clocks of file systems count in two seconds. */
const STAMP_AGE_MS = 3_000;
const TIMER_MS_MAX = 2 ** 31 - 1;
/** What is told when the look is lost. */
const ISCSI_SYSFS = '/sys/class/iscsi_session' as AbsolutePath;
/** Whoever sets up a volume waits for it. */
const PROBE_TURN_MS = 30_000;
const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id';

export async function createLinuxHost(parts: LinuxHostParts): Promise<LinuxHost> {
  const deadlines = { ...DEADLINES_MS, ...parts.deadlinesMs };
  const brokers = createHostBrokers(parts, deadlines);
  const { deviceTools, paths, walks } = brokers;
  const ask = <Kind extends PathCallKind>(kind: Kind, args: PathCalls[Kind]['args']) =>
    paths.call(kind, args);
  const stampAgeMs = parts.stampAgeMs ?? STAMP_AGE_MS;
  // Two writes of one file would share their temporary file.
  const inTurn = createTurns();
  return {
    ...CLOCK,
    random: Math.random,
    bootId: readFileSync(BOOT_ID_FILE, 'utf8').trim(),
    inspect: (path) => ask('inspect', { path }),
    inspectWay: (path) => ask('inspectWay', { path }),
    makeDirectory: (path, mode, use) =>
      ask('makeDirectory', { path, mode, ...(use === undefined ? {} : { use }) }),
    removeEmptyDirectory: (path) => ask('removeEmptyDirectory', { path }),
    removeTree: (path) => ask('removeTree', { path }),
    listDirectory: (path, entriesMax) => ask('listDirectory', { path, entriesMax }),
    identifyDirectory: (path) => ask('identifyDirectory', { path }),
    readDirectoryFiles: (path, reading) => ask('readDirectoryFiles', { path, stampAgeMs, ...reading }),
    readFile: (path, bytesMax) => ask('readFile', { path, bytesMax }),
    writeFile: (path, content, options) => inTurn(path, () => ask('writeFile', { path, content, options })),
    overwriteFile: (path, at, content, within) =>
      inTurn(path, () => ask('overwriteFile', { path, at, content, within })),
    synchronise: (path) => ask('synchronise', { path }),
    removeFile: (path) => ask('removeFile', { path }),
    rename: (from, to) => ask('rename', { from, to }),
    makeLink: (path, text) => ask('makeLink', { path, text }),
    readLink: (path) => ask('readLink', { path }),
    perform: ({ name, changesTheWorld, removesTrees, program: _ }, input) => {
      const { path } = input;
      const call = () => ask('transition', { name, path, input, changesTheWorld, removesTrees });
      return (changesTheWorld ? inTurn(path, call) : call()) as Promise<Result<never>>;
    },
    // What is kept of the table is what was asked about, however many mounts others have.
    readMountTable: async (about) => readMountTable(aboutPath(about)),
    mountIdOf: (path) => ask('mountIdOf', { path }),
    mountPlaceOf: (path) => ask('mountPlaceOf', { path }),
    lookUpMount: (path) => ask('lookUpMount', { path }),
    bindPart: (request) => inTurn(request.target, () => ask('bindPart', request)),
    ...createQuestions(brokers, deadlines),
    findHolders: (target) => ask('findHolders', { target }),
    findPlaceHolders: (places, within) => ask('findPlaceHolders', { places, within, except: brokers.pids() }),
    ...createDeviceCalls(deviceTools, ask, deadlines),
    ...createIscsi({
      runTool: (request) => brokers.remoteTools.run(request),
      readSessions: () => ask('readIscsiSessions', { path: ISCSI_SYSFS }),
      writeRecord: (record) => ask('writeIscsiRecord', record),
      ownerOfQuestion: (record) => ask('ownerOfQuestion', record),
      inTurn: createTurns(),
    }),
    changeOwnership: createOwnership({
      ...{ clock: CLOCK, lookMs: parts.walkLookMs, ageMs: stampAgeMs },
      change: (part, company) => walks.call('changeOwnershipPart', part, company),
    }),
    ...createMountEffects(brokers, ask, deadlines),
    call: parts.remote,
    watch: parts.watch,
    answers: () => paths.answers(),
    abandonedCalls: brokers.abandoned,
    brokers: brokers.pids,
    close: brokers.close,
  };
}

function createQuestions(
  { paths, probes, measures }: Pick<HostBrokers, 'paths' | 'probes' | 'measures'>,
  deadlines: HostDeadlines,
): Pick<Host, 'probeFileSystem' | 'measureUsage'> {
  return {
    probeFileSystem: createFileSystemQuestion({
      clock: CLOCK,
      ask: (path, onBegin) => probes.call('probeFileSystem', { path }, { onBegin }),
      mountIdOf: (path) => paths.call('mountIdOf', { path }),
      // The brokers that hang are killed first.
      deadlineMs: 2 * deadlines.probe,
      turnMs: PROBE_TURN_MS,
    }),
    measureUsage: createUsageQuestion({
      clock: CLOCK,
      ask: (request, company) => measures.call('measureUsage', request, company),
      silentMs: deadlines.probe,
    }),
  };
}

const NS_PER_MS = 1_000_000;
/** When this process began, by CLOCK_MONOTONIC: of that `performance.now()` tells what has passed since. */
const BEGAN_MS = Number(process.hrtime.bigint()) / NS_PER_MS - performance.now();

const CLOCK: Clock = {
  nowMs: () => BEGAN_MS + performance.now(),
  wallMs: () => Date.now(),
  timer: startTimer,
};

/** Node.js counts in whole milliseconds, from the beginning of a turn: by itself a timer is up to two of them early. */
function startTimer(delayMs: number, fire: () => void): Cancel {
  if (delayMs <= 0) {
    const immediate = setImmediate(fire);
    return () => clearImmediate(immediate);
  }
  const dueMs = performance.now() + delayMs;
  const begin = (leftMs: number): NodeJS.Timeout =>
    setTimeout(
      () => {
        const restMs = dueMs - performance.now();
        if (restMs > 0 && delayMs <= TIMER_MS_MAX) timer = begin(restMs);
        else fire();
      },
      Math.min(Math.ceil(leftMs), TIMER_MS_MAX),
    );
  let timer = begin(delayMs);
  return () => clearTimeout(timer);
}

function createDeviceCalls(
  tools: ToolBroker,
  ask: Ask,
  deadlines: HostDeadlines,
): BlockDevices & DeviceFileSystems {
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
    loopsOf: (path, mark) => ask('findLoopsOf', { path, mark }),
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
    identifyDisk: (path) => ask('identifyDisk', { path }),
    holdDevice: (path) => inTurn(path, () => holdDevice(path)),
    releaseDevice: (path) => inTurn(path, () => releaseDevice(path)),
    heldPaths: (within) => ask('findHeldPaths', { within }),
    findDeviceUsers: (device) => findDeviceUsers(userParts, device),
    ...createDeviceFileSystems({
      runTool: (request) => tools.run(request),
      proveBlank: (path) => ask('proveBlank', { path }),
      isDeviceChangeable: (path) => ask('isDeviceChangeable', { path }),
    }),
  };
}
