/** The life of the agent process: lock, checks, host, agent, API, and the way out. */
import { done, type Failure, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Cancel } from '../../mount/host.ts';
import { createGathered } from '../../mount/process/gathered.ts';
import { collectAtRest } from '../../mount/process/heap-at-rest.ts';
import { takeInstanceLock, waitForHelpers } from '../../mount/process/instance-lock.ts';
import type { LinuxHost } from '../../mount/agent-side/linux-host.ts';
import { createLayout } from '../../plugins/layout/layout.ts';
import type { Log } from '../../mount/process/log.ts';
import type { Agent } from '../node/agent.ts';
import type { AgentView } from '../node/agent-view.ts';
import { createApiServer } from '../api/api-server.ts';
import type { Config } from '../config/config.ts';
import type { LoadParse } from '../source/cluster/read-kubeconfig-file.ts';
import { EXIT_CODES } from '../config/exit-code.ts';
import { type AgentHost, createAgentHost } from './agent-host.ts';
import { checkHost, checkKubeletRoot } from './check-host.ts';
import { type ComposedAgent, composeAgent } from './compose-agent.ts';
import { besideWhom, lookForKubelet } from './kubelet-beside.ts';
import { watchForKubelet } from './kubelet-watch.ts';
import { formatMetrics } from '../metrics/metrics.ts';
import { withRootAdvised } from './process-facts.ts';
import { listenForMetrics } from './listen-for-metrics.ts';
import { createNotifier } from '../../mount/process/notify.ts';
import { type SlowStart, tellSlowStart } from '../../mount/process/slow-start.ts';
import { statusOf } from '../status/status.ts';
import type { PodStatus, StatusDocument } from '../status/status-document.ts';
import { mountsOf } from '../mounts/container-mounts.ts';
import type { MountsDocument } from '../mounts/mounts-document.ts';
import type { PodUid } from '../../plugins/volume.ts';
import { observeForMetrics } from '../metrics/metrics-facts.ts';
import { observe } from '../status/status-facts.ts';
import { BUILD } from '../config/version.ts';

/** What only the process itself can know. */
export interface Launch {
  readonly config: Config;
  readonly warnings: readonly string[];
  readonly log: Log;
  /** Starts a broker: the kind is appended. */
  readonly brokerCommand: readonly string[];
  /** WATCHDOG_USEC in milliseconds, when it is meant for us. */
  readonly watchdogMs: number | undefined;
  /** readlink of /proc/<process>/ns/mnt. */
  readonly mountNamespace: (process: 'self' | '1') => Result<string>;
  /** Makes the directory with its parents, 0750, and refuses a symbolic link on the way. */
  readonly makeStateDirectory: (path: AbsolutePath) => Result<void>;
  /** A kubeconfig is read by the parser of manifests, which runs in a process of its own for these. */
  readonly loadParse: LoadParse;
  /** A kubelet has worked with this root, and is not to come back: refused where none has. */
  readonly takesOver: boolean;
  /** Version of Node.js. */
  readonly runtime: string;
}

export interface RunningAgent {
  /** Unmounts nothing. Settles within about 4 s, unless something hangs, which the caller does not wait for. */
  stop(): Promise<void>;
  /** Settles when a kubelet works where this agent does: it is to end, and not to be started again. */
  readonly inTheWay: Promise<Failure>;
}

export type LaunchOutcome =
  | { readonly kind: 'running'; readonly agent: RunningAgent }
  | { readonly kind: 'refused'; readonly exitCode: number; readonly failure: Failure };

/** How long running operations may go on after a stop is asked for; INV-39 wants the whole exit within 5 s. */
const STOP_WAIT_MS = 2_500;
/** A hung broker must not keep the process only because it should have told systemd. */
const STOPPING_TOLD_MS = 500;
const STATUS_LINE_PACE_MS = 1_000;

export async function runAgent(launch: Launch): Promise<LaunchOutcome> {
  const { config, log } = launch;
  log.info('agent starting', { ...BUILD, node: config.nodeName, root: config.root });
  for (const warning of launch.warnings) log.warn('configuration', { warning });
  const layout = createLayout(config.root);
  const made = launch.makeStateDirectory(layout.own);
  if (!made.ok) {
    // Too long a name stays too long.
    const isForGood = isMisplaced(made.failure) || made.failure.code === 'too-large';
    return refused(withRootAdvised(made.failure), isForGood ? EXIT_CODES.configuration : EXIT_CODES.failure);
  }
  const lock = await takeInstanceLock(layout.agentLock);
  if (!lock.ok) {
    const { code } = lock.failure;
    const exitCode = code === 'already-running' ? EXIT_CODES.alreadyRunning : EXIT_CODES.failure;
    return refused(withRootAdvised(lock.failure), exitCode);
  }
  const kubelet = await lookForKubelet(besideWhom(config));
  if (kubelet !== undefined) return refused(kubelet, EXIT_CODES.configuration);
  const helpers = await waitForHelpers(layout.helpersLock);
  if (!helpers.ok) return refused(helpers.failure, EXIT_CODES.failure);
  if (helpers.value.lingering) log.warn('helpers of an earlier agent still run', { root: config.root });
  const hosted = await createAgentHost(launch, helpers.value.descriptor, (words) =>
    log.warn('helper gone with a word', { words }),
  );
  const slowStart = tellSlowStart({ host: hosted.host, log });
  try {
    return await begin(launch, hosted, slowStart);
  } finally {
    void slowStart.end();
  }
}

async function begin(
  launch: Launch,
  { host, parser, closeHost }: AgentHost,
  slowStart: SlowStart,
): Promise<LaunchOutcome> {
  const { config } = launch;
  const checked = await checkHost(launch, host);
  const composed = await composeAgent(launch, { host, parser, hasRoot: checked.ok });
  if (!composed.ok) {
    await closeHost();
    return refused(composed.failure, EXIT_CODES.configuration);
  }
  const { agent, issued } = composed.value;
  const kubeletRoot = launch.takesOver ? await checkKubeletRoot(host, config.root) : done;
  const started = checked.ok && kubeletRoot.ok ? await agent.start() : checked.ok ? kubeletRoot : checked;
  if (!started.ok) {
    await closeHost();
    return refused(
      started.failure,
      (isMisplaced(started.failure) && !isCovered(checked, started.failure)) || !kubeletRoot.ok
        ? EXIT_CODES.configuration
        : EXIT_CODES.failure,
    );
  }
  await slowStart.end();
  return serve(launch, host, agent, issued, closeHost);
}

/** Started where it cannot work: another try changes nothing. */
function isMisplaced({ code }: Failure): boolean {
  return code === 'mount-foreign' || code === 'path-wrong-kind' || code === 'path-unsafe';
}

/** Somebody's mount over the state root may go again: another try is worth it. */
function isCovered(checked: Result<void>, { code }: Failure): boolean {
  return checked.ok && code === 'mount-foreign';
}

function refused(failure: Failure, exitCode: number): LaunchOutcome {
  return { kind: 'refused', exitCode, failure };
}

async function serve(
  launch: Launch,
  host: LinuxHost,
  agent: Agent,
  issued: ComposedAgent['issued'],
  closeHost: () => Promise<void>,
): Promise<LaunchOutcome> {
  const { config, log } = launch;
  const observer = { nodeName: config.nodeName, clock: host, abandonedCalls: () => host.abandonedCalls() };
  const status = (revision: string): StatusDocument => {
    return statusOf(observe(agent.view(), observer), agent.view().layout, revision);
  };
  const mounts = (pod: PodStatus): MountsDocument | undefined => {
    const { desiredObjects, layout } = agent.view();
    const wanted = desiredObjects.pods.get(pod.uid as PodUid);
    if (wanted === undefined) return undefined;
    return mountsOf(observe(agent.view(), observer), layout, wanted, pod);
  };
  const metrics = (): string => {
    return formatMetrics(observeForMetrics(agent.view(), host)).concat(issued.cluster?.metrics() ?? '');
  };
  const api = createApiServer({
    socket: config.socket,
    status,
    mounts,
    quarantine: agent.view().reconciler,
    releases: agent.view().reconciler,
    manifests: agent.view().manifests,
    metrics,
    publicKeys: issued.publicKeys,
    onChange: (listener) => agent.onChange(listener),
    clock: host,
    watch: (directory, hint, concerns) => host.watch(directory, hint, concerns),
    log,
    runtime: launch.runtime,
    healthy: async () => (await host.inspect(config.root)).ok,
    instance: Math.floor(host.random() * 2 ** 32).toString(36),
  });
  const listening = await api.listen();
  if (!listening.ok) {
    await agent.stop(0);
    await closeHost();
    return refused(listening.failure, EXIT_CODES.failure);
  }
  const metricsServer = await listenForMetrics(config, metrics, host, log);
  const notifier = createNotifier({
    host,
    log,
    watchdogMs: config.watchdog ? launch.watchdogMs : 'off',
    turned: createTurnCheck(agent.view().reconciler),
  });
  await notifier.ready(statusLine(agent.view()));
  log.info('agent ready', { socket: config.socket });
  issued.cluster?.begin(agent);
  const cancelLine = paced(host, agent, () => notifier.status(statusLine(agent.view())));
  const isIdle = (): boolean => agent.view().reconciler.idle();
  const cancelCollection = collectAtRest({ clock: host, work: agent, isIdle });
  const kubelet = kubeletThatComes(host, config);
  return {
    kind: 'running',
    agent: {
      inTheWay: kubelet.found,
      async stop() {
        log.info('agent stopping', { operations: agent.view().reconciler.running().length });
        cancelLine();
        cancelCollection();
        kubelet.cancel();
        issued.stop();
        issued.cluster?.stop();
        const told = Promise.race([notifier.stopping(), after(host, STOPPING_TOLD_MS)]);
        await Promise.all([told, api.close(), metricsServer?.close(), agent.stop(STOP_WAIT_MS)]);
        await closeHost();
      },
    },
  };
}

interface KubeletThatComes {
  readonly found: Promise<Failure>;
  readonly cancel: Cancel;
}

function kubeletThatComes(host: LinuxHost, config: Config): KubeletThatComes {
  const look = (): Promise<Failure | undefined> => lookForKubelet(besideWhom(config));
  let cancel: Cancel = () => {};
  const found = new Promise<Failure>((onFound) => {
    cancel = watchForKubelet({ host, root: config.root, look, onFound });
  });
  return { found, cancel };
}

function after(clock: Pick<LinuxHost, 'timer'>, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.timer(delayMs, resolve);
  });
}

/** False when there was something to plan and since the last question nothing has been planned. */
function createTurnCheck(reconciler: AgentView['reconciler']): () => boolean {
  let passesBefore = -1;
  return () => {
    const passes = reconciler.passes();
    const turned = passes !== passesBefore || reconciler.idle() || reconciler.running().length > 0;
    passesBefore = passes;
    return turned;
  };
}

/** `systemctl status` shows it. Counts without building a status document: it is made at every change. */
function statusLine({ reconciler }: AgentView): string {
  let wanted = 0;
  let mounted = 0;
  for (const { publications } of reconciler.desired().volumes.values()) wanted += publications.size;
  for (const { publications } of reconciler.actual().values()) {
    for (const { presence } of publications.values()) mounted += presence.kind === 'present' ? 1 : 0;
  }
  return `${wanted} volumes wanted, ${mounted} mounted, ${reconciler.running().length} operations running`;
}

/** Calls `act` after changes, at most once in `STATUS_LINE_PACE_MS`. */
function paced(host: LinuxHost, agent: Agent, act: () => void): Cancel {
  const gathered = createGathered(host, STATUS_LINE_PACE_MS, act);
  const unsubscribe = agent.onChange(() => gathered.soon());
  return () => {
    unsubscribe();
    gathered.stop();
  };
}
