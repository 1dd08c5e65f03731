/** The composition root: main, the tests on the real kernel and the simulation all build the agent here. */
import { assert, done, type Result } from '../../mount/failure.ts';
import type { Cancel, Host } from '../../mount/host.ts';
import { createGround } from '../../mount/ground.ts';
import { createSlices, type Slices } from '../../mount/process/slices.ts';
import type { GrantedAttachment } from '../../plugins/csi/attach/attachment.ts';
import {
  createDriverRegistry,
  type RunningDriverRegistry,
} from '../../plugins/csi/driver/driver-registry.ts';
import { createLayout, type Layout } from '../../plugins/layout/layout.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import { type ActualState, type ActualVolume, podsOf } from '../../reconciler/model/actual-state.ts';
import { mayHavePods } from '../../reconciler/recovery/reconstruct.ts';
import type { Log } from '../../mount/process/log.ts';
import type { DesiredState } from '../../reconciler/model/desired-state.ts';
import { createReconciler, type Reconciler } from '../../reconciler/reconciler.ts';
import type { Policy } from '../../reconciler/reconciler-parts.ts';
import { createRecordStore, type UnreadableRecord } from '../../reconciler/recovery/record.ts';
import type { Config } from '../config/config.ts';
import { unwantedSecrets } from '../resolve/csi-secrets.ts';
import { desire } from '../resolve/desired-state-populator.ts';
import {
  createManifestKeeper,
  type ManifestKeeper,
  podsStanding,
  reasonsOf,
} from '../source/manifest-keeper.ts';
import { createMergedSources } from '../source/merged-sources.ts';
import type { ObjectsSource } from '../source/objects-source.ts';
import { createPlugins } from './create-plugins.ts';
import { createLayoutScan, type LayoutScan } from './layout-scan.ts';
import { rebuildState } from './rebuild-state.ts';
import { hasSeLinux } from './se-linux.ts';
import { createRepublisher } from './republisher.ts';
import { createStatisticsCollector, type StatisticsCollector } from './statistics-collector.ts';
import type { TokenSource } from '../source/token-source.ts';
import { createUnresolvedBook, type UnresolvedBook } from '../resolve/unresolved-book.ts';
import { createVanishedHold } from '../source/vanished-hold.ts';
import { createVanishedLog } from '../source/vanished-log.ts';
import { createMassRemovalLog } from '../source/mass-removal-log.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';
import { createDesiredObjectsReader } from './desired-objects-reader.ts';

export interface AgentParts {
  readonly host: Host;
  /** Where the wish comes from. The first source comes first where two contradict each other. */
  readonly sources: readonly ObjectsSource[];
  readonly tokens: TokenSource;
  /** Who lets CSI volumes be here; by default this node calls their drivers itself. */
  readonly attachment?: GrantedAttachment | undefined;
  readonly config: Config;
  readonly log: Log;
  /** For tests that plant a bug; the product never passes it. */
  readonly policy?: Partial<Policy>;
  /** In which the wish is put together and read; by default such that nobody waits long for it. */
  readonly slices?: Slices;
}

/** All there is to see, as it is at this moment; status and explain are made from it. */
export interface AgentView {
  readonly layout: Layout;
  /** What is desired is made of it. */
  readonly wish: DesiredObjects;
  readonly reconciler: Pick<
    Reconciler,
    'actual' | 'desired' | 'obstacles' | 'running' | 'idle' | 'passes' | 'quarantine' | 'endQuarantine'
  >;
  readonly manifests: ManifestKeeper;
  readonly drivers: Pick<RunningDriverRegistry, 'list' | 'refused'>;
  readonly unreadableRecords: readonly UnreadableRecord[];
  readonly statistics: Pick<StatisticsCollector, 'of' | 'ofStorage' | 'owedBy'>;
  readonly unresolvedSinceMs: UnresolvedBook['sinceMs'];
  readonly startedMs: number;
}

export interface Agent {
  /**
   * Rebuilds the state from records and mount table, then begins to work. Settles when the wish has been read once;
   * a failure means that the state root cannot be used, and nothing was started.
   */
  start(): Promise<Result<void>>;
  /** Only after a successful start. */
  view(): AgentView;
  onChange(listener: () => void): Cancel;
  /** Starts nothing new, waits at most `waitMs` for what runs, and takes nothing down. */
  stop(waitMs: number): Promise<void>;
}

export function createAgent(parts: AgentParts): Agent {
  const { host, config, log, slices = createSlices({ clock: parts.host }) } = parts;
  const layout = createLayout(config.root);
  const listeners = new Set<() => void>();
  const notify = (): void => {
    for (const listener of listeners) listener();
  };
  const drivers = createDriverRegistry({
    host,
    layout,
    staticSockets: config.staticDrivers.map(({ socket }) => socket),
    resyncMs: config.resyncMs,
  });
  const hold = createVanishedHold({
    clock: host,
    holdMs: config.vanishedHoldMs,
    onDue: () => {
      if (running !== undefined && !stopped) reader.read();
    },
  });
  const source = createMergedSources({ host, sources: parts.sources, slices });
  const manifests = createManifestKeeper({ sources: parts.sources, hold, wish: source.current });
  const ground = createGround(host, layout.root, [layout.pods, layout.plugins]);
  const { plugins, storageHealth } = createPlugins(parts, layout, drivers, ground);
  const unresolved = createUnresolvedBook(host);
  const republisher = createRepublisher(host, config.republishIntervalMs);
  let seLinux = false;
  let running:
    | { readonly reconciler: Reconciler; readonly view: AgentView; readonly statistics: StatisticsCollector }
    | undefined;
  let stopped = false;
  let isDiskRead = false;
  let scan: LayoutScan | undefined;
  const cancels: Cancel[] = [];

  function begin(recovered: ActualState, unreadableRecords: readonly UnreadableRecord[]): Reconciler {
    const reconciler = createReconciler({
      host,
      layout,
      ground,
      plugins,
      records,
      recovered,
      log,
      backOff: config.backOff,
      laneWidth: (lane) => config.drivers.get(lane)?.operationsMax ?? config.operationsPerDriverMax,
      resyncMs: config.resyncMs,
      effectDeadlineMs: config.pathDeadlineMs,
      lateEffectMs: config.csiDeadlineMs + config.lateEffectMs,
      unwantedSecrets: (spec) => unwantedSecrets(source.current(), spec),
      ...(parts.policy === undefined ? {} : { policy: parts.policy }),
    });
    const statistics = createStatisticsCollector({
      clock: host,
      actual: reconciler.actual,
      plugins,
      secretsOf: ({ spec }) =>
        reconciler.desired().volumes.get(spec.id)?.secrets ?? unwantedSecrets(source.current(), spec),
      periodMs: config.statisticsIntervalMs,
      storage: { drivers: () => drivers.list().map(({ name }) => name), health: storageHealth },
      log,
    });
    cancels.push(statistics.onChange(notify));
    statistics.start();
    const view: AgentView = {
      layout,
      get wish() {
        return reader.current();
      },
      reconciler,
      manifests,
      drivers,
      unreadableRecords,
      statistics,
      unresolvedSinceMs: unresolved.sinceMs,
      startedMs: host.nowMs(),
    };
    running = { reconciler, view, statistics };
    return reconciler;
  }

  const records = createRecordStore(host, layout, ground);
  const vanishingLog = createMassRemovalLog(log, host);
  const vanishedLog = createVanishedLog(log, host);

  const reader = createDesiredObjectsReader({
    slices,
    newest: source.current,
    desire: (wish) =>
      desire(wish, {
        deniedHostPaths: [layout.root, ...config.hostPathDenied],
        nodeName: config.nodeName,
        tokens: parts.tokens,
        seLinux,
        holdersOf: (volume) => {
          const known = running?.reconciler.actual().get(volume);
          return new Set(known === undefined ? [] : podsOf(known));
        },
        republishEpoch: republisher.epochFor(wish, () => reader.read()),
      }),
    take,
  });

  /** `found` is about to join what stands: who is to be kept of it is decided before. */
  function take(wish: DesiredObjects, desired: DesiredState, found: readonly ActualVolume[]): void {
    assert(running !== undefined, 'the wish is read when there is something to work on it');
    const { reconciler } = running;
    vanishingLog.note(wish);
    const held = hold.look(wish, podsStanding([...reconciler.actual().values(), ...found]));
    vanishedLog.note(wish, held);
    unresolved.note(desired.unresolved);
    reconciler.setDesired({ ...desired, heldPods: reasonsOf(held, host) });
    notify();
  }

  return {
    async start() {
      const rebuilt = await rebuildState({ host, layout, ground, records, log });
      if (!rebuilt.ok) return rebuilt;
      const { recovered, unreadable } = rebuilt.value;
      seLinux = config.seLinux === 'auto' && (await hasSeLinux(host));
      const reconciler = begin(recovered, unreadable);
      log.info('state rebuilt', { volumes: recovered.size, unreadableRecords: unreadable.length });
      cancels.push(reconciler.onChange(notify));
      const cancelDrivers = drivers.onChange(({ kind, driver }) => {
        log.info(`driver ${kind}`, { driver });
        if (kind !== 'gone') reconciler.wake({ kind: 'driver', driver });
        if (kind !== 'gone') running?.statistics.driverChanged(driver);
        notify();
      });
      cancels.push(cancelDrivers, ...[source, parts.tokens].map((one) => one.onChange(() => reader.read())));
      const onGrant = (volume: VolumeId): void => reconciler.wake({ kind: 'attachment', volume });
      cancels.push(parts.attachment?.onChange(onGrant) ?? (() => {}));
      void drivers.start();
      isDiskRead = !(await mayHavePods(host, layout));
      await source.start({
        isAnythingAtStake: () =>
          !isDiskRead || source.current().pods.size + reconciler.actual().size + unreadable.length > 0,
        missing: () => hold.held().size,
      });
      await new Promise<void>((join) => reader.read({ found: [], join }));
      scan = createLayoutScan({
        ...{ host, layout, ground, reader, reconciler },
        resyncMs: config.resyncMs,
        onWhole: () => {
          isDiskRead = true;
        },
      });
      scan.start();
      return done;
    },
    view() {
      if (running === undefined) throw new Error('broken invariant: the agent is viewed before it started');
      return running.view;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async stop(waitMs) {
      stopped = true;
      scan?.stop();
      republisher.stop();
      hold.stop();
      running?.statistics.stop();
      source.stop();
      reader.stop();
      drivers.stop();
      await running?.reconciler.stop(waitMs);
      for (const cancel of cancels) cancel();
    },
  };
}
