/** The composition root: main, the tests on the real kernel and the simulation all build the agent here. */
import { done, type Result } from '../../mount/failure.ts';
import type { Cancel, Host } from '../../mount/host.ts';
import type { NodeResources } from '../../kubernetes/fields/node-resource.ts';
import { createGround, type Ground } from '../../mount/ground.ts';
import { createSlices, type Slices } from '../../mount/process/slices.ts';
import type { GrantedAttachment } from '../../plugins/csi/attach/attachment.ts';
import {
  createDriverRegistry,
  type RunningDriverRegistry,
} from '../../plugins/csi/driver/driver-registry.ts';
import type { CsiPlugin } from '../../plugins/csi/csi-plugin.ts';
import { createLayout, type Layout } from '../../plugins/layout/layout.ts';
import type { PluginRegistry } from '../../plugins/plugin.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import { mayHavePods } from '../../reconciler/recovery/reconstruct.ts';
import type { Log } from '../../mount/process/log.ts';
import { createReconciler, type Reconciler } from '../../reconciler/reconciler.ts';
import type { Policy } from '../../reconciler/reconciler-parts.ts';
import { createRecords } from '../../reconciler/journal/record-forms.ts';
import type { RecordStore } from '../../reconciler/recovery/record-store.ts';
import type { Config } from '../config/config.ts';
import { unwantedSecrets } from '../resolve/csi-secrets.ts';
import type { ObjectsSource } from '../source/objects-source.ts';
import { laneWidthIn } from './lane-width.ts';
import type { AgentView } from './agent-view.ts';
import { createPlugins } from './create-plugins.ts';
import { createDesiredFeed, type DesiredFeed } from './desired-feed.ts';
import { createLayoutScan, type LayoutScan } from './layout-scan.ts';
import { createNodeSight } from './node-sight.ts';
import { rebuildState, type RebuiltState } from './rebuild-state.ts';
import { hasSeLinux } from './se-linux.ts';
import { createStatisticsCollector, type StatisticsCollector } from './statistics-collector.ts';
import { createVolumesHere, type VolumesHere } from './volumes-here.ts';
import type { StandingWatch } from '../attachment/standing-watch.ts';
import { createOperationTimes, type OperationTimes } from '../timing/operation-times.ts';
import type { TokenSource } from '../source/token-source.ts';
import { ownTrustBundles, type TrustBundleSource } from '../source/trust-bundle-source.ts';

export interface AgentParts {
  readonly host: Host;
  /** Where the wish comes from. The first source comes first where two contradict each other. */
  readonly sources: readonly ObjectsSource[];
  readonly tokens: TokenSource;
  /** Who has certificates for volumes; by default nobody, and in a cluster nobody knows. */
  readonly trustBundles?: TrustBundleSource;
  /** What the machine has; by default that is not known. */
  readonly capacity?: NodeResources;
  /** Who lets CSI volumes be here; by default this node calls their drivers itself. */
  readonly attachment?: GrantedAttachment | undefined;
  /** Who is told what stands of CSI volumes, and says whether it may; by default nobody. */
  readonly standing?: StandingWatch | undefined;
  readonly config: Config;
  readonly log: Log;
  /** Tests pass it to plant a bug; the product never does. */
  readonly policy?: Partial<Policy>;
  /** Nothing is set up or taken down: what would be is asked of the reconciler. */
  readonly plansOnly?: boolean;
  /** In which the wish is put together and read; by default such that nobody waits long for it. */
  readonly slices?: Slices;
  /** What the smallest journal of records has; for tests. */
  readonly journalBytes?: number;
}

export interface Agent {
  /**
   * Rebuilds the state from records and mount table, then begins to work. Settles when the wish has been read once;
   * a failure means that the state root cannot be used, and nothing was started.
   */
  start(): Promise<Result<void>>;
  /** May be called after a successful start only. */
  view(): AgentView;
  /** The layout on disk was looked at once, whether or not all of it could be read. */
  hasScanned(): boolean;
  onChange(listener: () => void): Cancel;
  /** Starts nothing new, waits at most `waitMs` for what runs, and takes nothing down. */
  stop(waitMs: number): Promise<void>;
}

/** What an agent is built on, from its beginning to its end. */
interface Foundation extends AgentParts {
  readonly trustBundles: TrustBundleSource;
  readonly layout: Layout;
  readonly ground: Ground;
  readonly drivers: RunningDriverRegistry;
  readonly plugins: PluginRegistry;
  readonly csi: Pick<CsiPlugin, 'storageHealth' | 'hidden'>;
  readonly volumesHere: VolumesHere;
  readonly operationTimes: OperationTimes;
  readonly records: RecordStore;
  readonly feed: DesiredFeed;
}

/** What works from the moment the state was rebuilt. */
interface Work {
  readonly reconciler: Reconciler;
  readonly statistics: StatisticsCollector;
  readonly view: AgentView;
}

export function createAgent(parts: AgentParts): Agent {
  return new NodeAgent(parts);
}

class NodeAgent implements Agent {
  readonly #foundation: Foundation;
  readonly #listeners = new Set<() => void>();
  readonly #cancels: Cancel[] = [];
  #hasSeLinux = false;
  #work: Work | undefined;
  #isDiskRead = false;
  #isScanned = false;
  #scan: LayoutScan | undefined;

  constructor(parts: AgentParts) {
    const { config, slices = createSlices({ clock: parts.host }) } = parts;
    const operationTimes = createOperationTimes(parts.host, parts.attachment !== undefined);
    const host = operationTimes.onHost(parts.host);
    const attachment = parts.attachment === undefined ? 'called' : 'granted';
    const { trustBundles = ownTrustBundles(attachment), tokens, capacity = {}, standing } = parts;
    const layout = createLayout(config.root);
    const deniedHostPaths = [layout.root, ...config.hostPathDenied];
    const drivers = createDriverRegistry({
      ...{ host, layout, resyncMs: config.resyncMs },
      staticSockets: config.staticDrivers.map(({ socket }) => socket),
      hidden: (driver) => this.#foundation.csi.hidden(driver),
    });
    const ground = createGround(host, layout.root, [layout.pods, layout.plugins]);
    const feed = createDesiredFeed({
      ...{ host, config, slices, deniedHostPaths },
      sources: parts.sources,
      answers: { tokens, trustBundles, capacity, standing, attachment },
      log: parts.log,
      hasSeLinux: () => this.#hasSeLinux,
      reconciler: () => this.#work?.reconciler,
      onTaken: (desired, actual) => {
        operationTimes.wanted(desired, actual);
        this.#notify();
      },
    });
    const records = createRecords({ ...parts, layout, ground, form: config.recordStore });
    const volumesHere = createVolumesHere(feed, () => this.#work?.reconciler);
    const own = { host, operationTimes, deniedHostPaths, volumesHere };
    const kinds = createPlugins({ ...parts, ...own }, layout, drivers, ground);
    const counted = { ...kinds, operationTimes, volumesHere };
    this.#foundation = { ...parts, trustBundles, layout, ground, drivers, ...counted, records, feed };
  }

  async start(): Promise<Result<void>> {
    const { host, config, log, layout, feed } = this.#foundation;
    const rebuilt = await rebuildState(this.#foundation);
    if (!rebuilt.ok) return rebuilt;
    const { recovered, unreadable } = rebuilt.value;
    this.#hasSeLinux = config.seLinux === 'auto' && (await hasSeLinux(host));
    const { reconciler } = this.#begin(rebuilt.value);
    this.#foundation.standing?.begin(() => reconciler.actual(), this.#foundation.drivers);
    log.info('state rebuilt', { volumes: recovered.size, unreadableRecords: unreadable.length });
    this.#listen(reconciler);
    void this.#foundation.drivers.start();
    this.#isDiskRead = !(await mayHavePods(host, layout));
    const isDiskRead = (): boolean => this.#isDiskRead;
    const unreadableRecords = unreadable.length;
    const sight = createNodeSight({ ...this.#foundation, reconciler, unreadableRecords, isDiskRead });
    await feed.source.start(sight);
    await new Promise<void>((join) => feed.reader.read({ found: [], join }));
    this.#scan = createLayoutScan({
      ...this.#foundation,
      reader: feed.reader,
      reconciler,
      resyncMs: config.resyncMs,
      onScanned: () => {
        if (this.#isScanned) return;
        this.#isScanned = true;
        this.#notify();
      },
      onPlaces: (read) => this.#foundation.standing?.diskRead(read),
      onWhole: () => {
        this.#isDiskRead = true;
        // A record that cannot be read may be of something that stands.
        if (unreadable.length === 0) this.#foundation.standing?.diskRead('all');
      },
    });
    this.#scan.start();
    return done;
  }

  view(): AgentView {
    if (this.#work === undefined) throw new Error('broken invariant: the agent is viewed before it started');
    return this.#work.view;
  }

  hasScanned(): boolean {
    return this.#isScanned;
  }

  onChange(listener: () => void): Cancel {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async stop(waitMs: number): Promise<void> {
    this.#scan?.stop();
    this.#foundation.feed.stop();
    this.#work?.statistics.stop();
    this.#foundation.drivers.stop();
    await this.#work?.reconciler.stop(waitMs);
    for (const cancel of this.#cancels) cancel();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  #begin({ recovered, unreadable }: RebuiltState): Work {
    const reconciler = beginReconciler(this.#foundation, recovered);
    const statistics = statisticsFor(this.#foundation, reconciler);
    this.#cancels.push(statistics.onChange(() => this.#notify()));
    statistics.start();
    const view = viewOf(this.#foundation, { reconciler, statistics }, { recovered, unreadable });
    this.#work = { reconciler, statistics, view };
    return this.#work;
  }

  /** To all that changes what is seen, or what is to be done. */
  #listen(reconciler: Reconciler): void {
    const { log, drivers, feed, tokens, trustBundles, attachment, standing } = this.#foundation;
    this.#cancels.push(
      reconciler.onChange(() => {
        standing?.look();
        this.#notify();
      }),
    );
    const cancelDrivers = drivers.onChange(({ kind, driver }) => {
      log.info(`driver ${kind}`, { driver });
      if (kind !== 'gone') reconciler.wake({ kind: 'driver', driver });
      const instance = drivers.get(driver);
      if (instance !== undefined) this.#work?.statistics.driverChanged(instance);
      this.#notify();
    });
    const onGrant = (volume: VolumeId): void => reconciler.wake({ kind: 'attachment', volume });
    this.#cancels.push(
      cancelDrivers,
      ...[feed.source, tokens, trustBundles].map((one) => one.onChange(() => feed.reader.read())),
      attachment?.onChange(onGrant) ?? (() => {}),
      standing?.onWord(() => feed.reader.read()) ?? (() => {}),
    );
  }
}

function beginReconciler(foundation: Foundation, recovered: ActualState): Reconciler {
  const { host, layout, ground, plugins, records, log, config, feed, policy, plansOnly } = foundation;
  return createReconciler({
    ...{ host, layout, ground, plugins, records, recovered, log },
    backOff: config.backOff,
    laneWidth: laneWidthIn(config),
    resyncMs: config.resyncMs,
    effectDeadlineMs: config.pathDeadlineMs,
    lateEffectMs: config.csiDeadlineMs + config.lateEffectMs,
    unwantedSecrets: (spec) => unwantedSecrets(feed.source.current(), spec),
    ...(policy === undefined ? {} : { policy }),
    ...(plansOnly === undefined ? {} : { plansOnly }),
  });
}

function statisticsFor(foundation: Foundation, reconciler: Reconciler): StatisticsCollector {
  const { host, plugins, config, drivers, csi, log, volumesHere } = foundation;
  return createStatisticsCollector({
    clock: host,
    actual: () => reconciler.actual(),
    isChanging: (volume) =>
      reconciler.running().some((one) => one.operation.volume === volume && one.phase === 'running'),
    plugins,
    secretsOf: ({ spec }) => volumesHere.secretsOf(spec),
    periodMs: config.statisticsIntervalMs,
    storage: { drivers: () => drivers.list().map(({ name }) => name), health: csi.storageHealth },
    log,
  });
}

function viewOf(
  { host, layout, drivers, feed, operationTimes }: Foundation,
  { reconciler, statistics }: Omit<Work, 'view'>,
  { recovered, unreadable: unreadableRecords }: RebuiltState,
): AgentView {
  return {
    layout,
    get desiredObjects() {
      return feed.reader.current();
    },
    reconciler,
    manifests: feed.manifests,
    drivers,
    recoveredVolumes: recovered.size,
    ...{ statistics, operationTimes, unreadableRecords },
    unresolvedSinceMs: feed.unresolvedSinceMs,
    ...{ startedMs: host.nowMs(), startedWallMs: host.wallMs() },
  };
}
