/** What was measured as named figures with targets: the rows of the table and of the JSON document. */
import { arch, availableParallelism, cpus, release, totalmem } from 'node:os';
import type { Baseline } from './measure-baseline.ts';
import type { Beside } from './measure-foreign.ts';
import type { LoopStop } from './measure-manifests.ts';
import type { Mounting } from './measure-mounting.ts';
import type { FullNode, Idle, Loopfile } from './measure-node.ts';
import type { Restart, Scale } from './measure-scale.ts';
import type { Spread } from './statistics.ts';

export interface Measured {
  readonly product: unknown;
  readonly short: boolean;
  readonly seconds: number;
  readonly baseline: Baseline;
  readonly mounting: Mounting;
  readonly node: FullNode;
  readonly idle: Idle;
  readonly loopfile: Loopfile;
  readonly scale: readonly Scale[];
  readonly restart: Restart;
  readonly loopStop: LoopStop;
  readonly beside: Beside;
  /** Lines of the agents' logs about operations that failed and were tried again. */
  readonly failures: readonly string[];
}

export interface Target {
  readonly text: string;
  readonly met: boolean;
  /** `count`: the same on every machine, so missing it fails the bench. `time`: told, and also the machine's doing. */
  readonly kind: 'count' | 'time';
}

export interface Figure {
  readonly id: string;
  readonly title: string;
  readonly unit: 'ms' | 's' | 'MB' | 'calls' | 'times' | 'mounts' | 'wake-ups' | 'passes';
  /** With `p99`: the median. */
  readonly value: number;
  readonly p99?: number;
  readonly target?: Target;
}

export interface Group {
  readonly title: string;
  readonly figures: readonly Figure[];
}

export function machineFacts(): object {
  const [cpu] = cpus();
  return {
    kernel: release(),
    architecture: arch(),
    cpu: cpu?.model.trim(),
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    node: process.versions.node,
  };
}

export function groupsOf(measured: Measured): readonly Group[] {
  return [
    mountingGroup(measured),
    manyGroup(measured),
    nodeGroup(measured),
    idleGroup(measured),
    scaleGroup(measured),
    restartGroup(measured),
    loopStopGroup(measured),
    besideGroup(measured),
    baselineGroup(measured),
  ];
}

function below(value: number, limit: number, unit: string): Target {
  return { text: `< ${limit} ${unit}`, met: value < limit, kind: 'time' };
}

function exactly(value: number, wanted: number): Target {
  return { text: `= ${wanted}`, met: value === wanted, kind: 'count' };
}

function spread(id: string, title: string, { p50, p99 }: Spread, target?: Target): Figure {
  return { id, title, unit: 'ms', value: p50, p99, ...(target === undefined ? {} : { target }) };
}

function mountingGroup({ mounting: { single, secret }, baseline }: Measured): Group {
  return {
    title: `One pod: manifest renamed -> volume published, ${single.total.samples} times (p50, p99)`,
    figures: [
      spread('single.total', 'one CSI volume, no-op driver', single.total),
      spread('single.driver', "  the driver's own time (two mount(8))", single.driver),
      spread(
        'single.overhead',
        '  the rest: overhead',
        single.overhead,
        below(single.overhead.p50, 10, 'ms p50'),
      ),
      spread('single.before', '    until the first CSI call', single.before),
      spread('single.between', '    between the two calls', single.between),
      spread('single.after', '    after the last call', single.after),
      {
        id: 'single.ratio',
        title: '  overhead / one mount(8) alone',
        unit: 'times',
        value: single.overhead.p50 / baseline.mount.p50,
      },
      spread('single.removal', 'manifest removed -> nothing mounted', single.removal),
      spread('single.takingDown', '  of that, since the first CSI call', single.takingDown),
      spread('secret.total', 'one secret', secret, below(secret.p50, 20, 'ms p50')),
    ],
  };
}

function manyGroup({ mounting: { many } }: Measured): Group {
  return {
    title: 'Many pods in one manifest, one CSI volume each (per pod p50, p99)',
    figures: many.flatMap(({ pods, perPod, allMs, overheadMs }) => [
      spread(`pods${pods}.total`, `${pods} pods at once`, perPod),
      { id: `pods${pods}.all`, title: '  until the last one', unit: 'ms', value: allMs },
      {
        id: `pods${pods}.overhead`,
        title: '  of that with the driver idle: overhead',
        unit: 'ms',
        value: overheadMs,
      },
    ]),
  };
}

function nodeGroup({ node, loopfile, baseline }: Measured): Group {
  const perMount = (node.setUpSeconds * 1_000) / node.mounts;
  return {
    title: `${node.pods} pods x 4 volumes (CSI, secret, configMap, emptyDir in memory), ${node.mounts} mounts in all`,
    figures: [
      { id: 'node.setUp', title: 'set up', unit: 's', value: node.setUpSeconds },
      {
        id: 'node.ratio',
        title: '  per mount / one mount(8) alone',
        unit: 'times',
        value: perMount / baseline.mount.p50,
      },
      { id: 'node.drain', title: 'drained', unit: 's', value: node.drainSeconds },
      {
        id: 'node.callsPerMount',
        title: 'CSI calls per mount',
        unit: 'calls',
        value: node.callsPerMount,
        target: exactly(node.callsPerMount, 2),
      },
      {
        id: 'node.callsPerUnmount',
        title: 'CSI calls per unmount',
        unit: 'calls',
        value: node.callsPerUnmount,
        target: exactly(node.callsPerUnmount, 2),
      },
      {
        id: 'loopfile.setUp',
        title: `${loopfile.volumes} new loopfile volumes (losetup, mkfs.ext4, mount): set up`,
        unit: 's',
        value: loopfile.setUpSeconds,
      },
      { id: 'loopfile.drain', title: '  drained', unit: 's', value: loopfile.drainSeconds },
    ],
  };
}

function idleGroup({ idle, node }: Measured): Group {
  return {
    title: `Idle for ${idle.seconds} s with ${node.volumes} volumes (the resync, once a minute, is one pass)`,
    figures: [
      { id: 'idle.cpu', title: 'CPU time of the agent', unit: 'ms', value: idle.cpuMs },
      { id: 'idle.wakeUps', title: 'wake-ups of its event loop', unit: 'wake-ups', value: idle.wakeUps },
      {
        id: 'idle.passes',
        title: 'reconcile passes at most (status revisions)',
        unit: 'passes',
        value: idle.passes,
        target: { text: '= 0, or 1', met: idle.passes <= 1, kind: 'count' },
      },
    ],
  };
}

function scaleGroup({ scale }: Measured): Group {
  return {
    title: 'Memory (RSS) with many volumes of a driver that does not stage',
    figures: scale.flatMap(
      (
        { volumes, agentMb, brokers, brokersMb, perVolumeMs, driverPerVolumeMs },
        index,
      ): readonly Figure[] => {
        const last = index === scale.length - 1;
        return [
          {
            id: `scale${volumes}.agent`,
            title: `agent, ${volumes} volumes`,
            unit: 'MB',
            value: agentMb,
            ...(last ? { target: below(agentMb, 150, 'MB') } : {}),
          },
          {
            id: `scale${volumes}.brokers`,
            title: `  its ${brokers} broker processes together (proportional share)`,
            unit: 'MB',
            value: brokersMb,
          },
          ...(index === 0
            ? []
            : ([
                {
                  id: `scale${volumes}.perVolume`,
                  title: '  mounting one of those added, on average',
                  unit: 'ms',
                  value: perVolumeMs,
                },
                {
                  id: `scale${volumes}.driver`,
                  title: "  the driver's own time of it, 16 at once",
                  unit: 'ms',
                  value: driverPerVolumeMs,
                },
              ] as const)),
        ];
      },
    ),
  };
}

function restartGroup({ restart }: Measured): Group {
  const { volumes, healthySeconds, provenSeconds, calls, mountsChanged, agentMb } = restart;
  return {
    title: `SIGKILL and restart with ${volumes} volumes mounted`,
    figures: [
      {
        id: 'restart.healthy',
        title: 'process started -> healthy',
        unit: 's',
        value: healthySeconds,
        target: below(healthySeconds, 2, 's'),
      },
      {
        id: 'restart.proven',
        title: 'process started -> all volumes proven, nothing under way',
        unit: 's',
        value: provenSeconds,
      },
      {
        id: 'restart.calls',
        title: 'CSI calls for them',
        unit: 'calls',
        value: calls,
        target: exactly(calls, 0),
      },
      {
        id: 'restart.changed',
        title: 'mounts changed',
        unit: 'mounts',
        value: mountsChanged,
        target: exactly(mountsChanged, 0),
      },
      { id: 'restart.agent', title: 'RSS of the agent afterwards', unit: 'MB', value: agentMb },
    ],
  };
}

function loopStopGroup({ loopStop }: Measured): Group {
  const { hostile, good, goodSeconds, judgedSeconds, longestMs, longestCpuMs } = loopStop;
  return {
    title: `Started upon ${hostile} hostile manifests of the largest size beside ${good} good ones`,
    figures: [
      { id: 'hostile.good', title: 'until the good pods are ready', unit: 's', value: goodSeconds },
      { id: 'hostile.all', title: 'until all files were judged', unit: 's', value: judgedSeconds },
      {
        id: 'hostile.stop',
        title: "longest stop of the agent's loop",
        unit: 'ms',
        value: longestMs,
        target: below(longestMs, 50, 'ms'),
      },
      { id: 'hostile.cpu', title: '  its own CPU time in one turn', unit: 'ms', value: longestCpuMs },
    ],
  };
}

function besideGroup({ beside }: Measured): Group {
  const { pods, foreign, aloneSeconds, besideSeconds, aloneAgentMb, besideAgentMb } = beside;
  const ratio = besideSeconds / aloneSeconds;
  return {
    title: `${pods} emptyDirs in memory taken down beside ${foreign} mounts of others, and without them`,
    figures: [
      { id: 'beside.alone', title: 'without', unit: 's', value: aloneSeconds },
      { id: 'beside.down', title: 'beside', unit: 's', value: besideSeconds },
      { id: 'beside.ratio', title: '  ratio', unit: 'times', value: ratio, target: below(ratio, 2, 'times') },
      { id: 'beside.aloneAgent', title: 'RSS of the agent without', unit: 'MB', value: aloneAgentMb },
      {
        id: 'beside.agent',
        title: 'RSS of the agent beside',
        unit: 'MB',
        value: besideAgentMb,
        target: below(besideAgentMb, 150, 'MB'),
      },
    ],
  };
}

function baselineGroup({ baseline }: Measured): Group {
  return {
    title: `This machine, measured beside it, ${baseline.mount.samples} times (p50, p99)`,
    figures: [
      spread('baseline.mount', 'mount(8) of a bind alone, by runTool', baseline.mount),
      spread('baseline.umount', 'umount(8) alone', baseline.umount),
      spread(
        'baseline.durableWrite',
        'a durable record alone: write, fsync, rename, fsync',
        baseline.durableWrite,
      ),
    ],
  };
}
