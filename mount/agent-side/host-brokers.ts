/** The brokers of the real host: for tools, and pools of path brokers, that do not wait for each other. */
import { type BrokerPool, createBrokerPool } from './broker-pool.ts';
import type { HostDeadlines } from './host-deadlines.ts';
import { type BrokerPrograms, IMMUTABLE_MOUNT_POINTS } from '../broker/broker-protocol.ts';
import { createToolBroker, type ToolBroker } from './tool-broker.ts';

export interface HostBrokersParts {
  /** How a broker is started, without its kind: `[process.execPath, bundle, 'broker']`. */
  readonly brokerCommand: readonly string[];
  readonly brokerPrograms?: BrokerPrograms | undefined;
  readonly pathBrokersMax?: number;
  /** By default bare mount points are directories as others are. */
  readonly immutableMountPoints?: boolean | undefined;
  /** The lock of waitForHelpers, which every broker and tool then holds. */
  readonly helpersDescriptor?: number;
  /** What a broker said on standard error that is gone; without it they write to that of this process. */
  readonly onLastWords?: ((words: string) => void) | undefined;
}

export interface HostBrokers {
  /** Nothing keeps these tools waiting. */
  readonly tools: ToolBroker;
  /** Tools that wait for a device take no turn from the others. */
  readonly deviceTools: ToolBroker;
  /** Tools that wait for a server take none from either. */
  readonly remoteTools: ToolBroker;
  readonly paths: BrokerPool;
  /** A walk takes as long as the volume is large, and other calls do not wait for it. */
  readonly walks: BrokerPool;
  /** Whoever hangs here was asked because it may. */
  readonly probes: BrokerPool;
  /** A look takes as long as there are files. */
  readonly measures: BrokerPool;
  /** Calls past their deadline that the kernel does not let go of. */
  abandoned(): number;
  pids(): readonly number[];
  /** Ends all of them; settles within about a second. */
  close(): Promise<void>;
}

/** Tools that wait cost no processor, and so many devices, or servers, may hang before another one waits. */
export const WAITING_TOOLS_MAX = 64;
const WALK_BROKERS_MAX = 4;
/** So many file systems may hang before the look at another one waits. */
const PROBE_BROKERS_MAX = 16;
/** Files are counted by one at a time; more only while some hang. */
const MEASURE_BROKERS_MAX = 16;

export function createHostBrokers(parts: HostBrokersParts, deadlines: HostDeadlines): HostBrokers {
  const { brokerCommand: command, brokerPrograms: programs, helpersDescriptor, onLastWords } = parts;
  const words = parts.immutableMountPoints === true ? [IMMUTABLE_MOUNT_POINTS] : [];
  const start = { command, programs, helpersDescriptor, onLastWords };
  const pathStart = { ...start, words };
  const patient = { ...pathStart, waitsForEver: true, idleBrokersMin: 0 };
  const tools = createToolBroker(start);
  const deviceTools = createToolBroker({ ...start, runningMax: WAITING_TOOLS_MAX });
  const remoteTools = createToolBroker({ ...start, runningMax: WAITING_TOOLS_MAX });
  const paths = createBrokerPool({
    ...pathStart,
    deadlineMs: deadlines.path,
    removeTreeDeadlineMs: deadlines.removeTree,
    deadlinesMs: { findHolders: deadlines.holders },
    ...(parts.pathBrokersMax === undefined ? {} : { pathBrokersMax: parts.pathBrokersMax }),
  });
  const walks = createBrokerPool({
    ...patient,
    deadlineMs: deadlines.path,
    removeTreeDeadlineMs: deadlines.removeTree,
    pathBrokersMax: WALK_BROKERS_MAX,
  });
  const probes = createBrokerPool({
    ...patient,
    deadlineMs: deadlines.probe,
    removeTreeDeadlineMs: deadlines.probe,
    pathBrokersMax: PROBE_BROKERS_MAX,
    // All are asked at once, and each answers at once but for one that hangs.
    crowdBrokersMax: 1,
    // The next look comes in a minute: to start a process for each costs more than that one stays.
    idleBrokersMin: 1,
  });
  const measures = createBrokerPool({
    ...start,
    idleBrokersMin: 0,
    deadlineMs: deadlines.measure,
    removeTreeDeadlineMs: deadlines.measure,
    pathBrokersMax: MEASURE_BROKERS_MAX,
    crowdBrokersMax: 1,
  });
  const all = [paths, walks, probes, measures, tools, deviceTools, remoteTools];
  return {
    tools,
    deviceTools,
    remoteTools,
    paths,
    walks,
    probes,
    measures,
    abandoned: () => all.reduce((sum, one) => sum + one.abandoned(), 0),
    pids: () => all.flatMap((one) => one.pids()),
    close: async () => {
      await Promise.all(all.map((one) => one.close()));
    },
  };
}
