/**
 * One seed: a machine, its neighbours, its user and as many lives of the agent as it takes.
 *
 * Safety phase: faults by the swarm; after every event the invariants hold. Liveness phase: everything is healed, and
 * within ten virtual minutes, and what slow walks take, the machine is what the user wishes, nothing runs, and it stays
 * so.
 * A violation ends the run; the same seed gives the same trace.
 */
import { drawAbsence, NO_ABSENCE } from './absence.ts';
import { Absences } from './absences.ts';
import { type Agent, type AgentParts, createAgent } from '../../agent/node/agent.ts';
import type { AgentView } from '../../agent/node/agent-view.ts';
import type { Config } from '../../agent/config/config.ts';
import { createTrustedManifests } from '../../agent/source/manifests/trusted-manifests.ts';
import { type Cluster, joinCluster } from '../../agent/process/cluster.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import type { Log, LogFields } from '../../mount/process/log.ts';
import { isBelow } from '../../mount/absolute-path.ts';
import type { AbsolutePath, DeviceNumber } from '../../mount/host.ts';
import type { PodUid } from '../../plugins/volume.ts';
import type { Reconciler } from '../../reconciler/reconciler.ts';
import { REMEMBERING_PARSER } from '../agent/in-process-parser.ts';
import { DesiredWithin } from './desired-within.ts';
import { differenceFromWish } from './final-state.ts';
import { ClusterWatch } from './cluster/cluster-watch.ts';
import { drawCluster, withCluster } from './cluster/cluster-plan.ts';
import { SimCluster } from './cluster/sim-cluster.ts';
import { checkRoots } from './final-groups.ts';
import { withDeaths } from './file-system-deaths.ts';
import { happen } from './happenings.ts';
import { checkEffect, checkStep, checkTeardown, type Listing } from './invariants.ts';
import { isRecordForgotten, recordedRefusal } from './recorded-refusal.ts';
import { Neighbours } from './neighbours.ts';
import { isOfLocalDevices, withLocalDevices, withLocals } from './local-volumes.ts';
import { withNodeIds } from './node-ids.ts';
import { withFills } from './filled-directories.ts';
import { withIscsi } from './iscsi-volumes.ts';
import { withNfs } from './nfs-volumes.ts';
import { withMoreKinds } from './more-kinds.ts';
import { CPU_THOUSANDTHS, withPodFields } from './pod-fields.ts';
import { drawSubpathShare } from './subpaths.ts';
import { createRandom, type Random } from './random.ts';
import { drawRecords, RECORD_FILES } from './records-plan.ts';
import type { RecordForm } from '../../reconciler/journal/record-forms.ts';
import { withLooks } from './runtimes.ts';
import { SimHost } from './sim-host.ts';
import { createSimSlices, drawSlices } from './sim-slices.ts';
import { createSimParser, drawParser, type ParserNature } from './sim-parser.ts';
import { SimKernel } from './sim-kernel.ts';
import { configOf } from './sim-config.ts';
import { MANIFESTS } from './sim-paths.ts';
import { NODE_NAME } from './manifests.ts';
import { SimTokens } from './sim-tokens.ts';
import { SimWorld } from './sim-world.ts';
import { type EventWeights, type Plan, swarm } from './swarm.ts';
import { withWalkTimes } from './walk-times.ts';
import { drawClock, WallClock } from './wall-clock.ts';
import { NO_TALLY, type Tally } from './tally.ts';
import { CANARY, createTrace, type Trace } from './trace.ts';
import { createVirtualTime, type VirtualTime } from './virtual-time.ts';
import { type EffectKind, FAIR, type Weather } from './weather.ts';

export interface Violation {
  readonly invariant: string;
  readonly text: string;
}

export interface Report {
  readonly seed: number;
  readonly violation: Violation | undefined;
  readonly traceHash: string;
  readonly tail: readonly string[];
  readonly steps: number;
  readonly virtualMs: number;
  readonly crashes: number;
  readonly driverCalls: number;
  readonly tally: Tally;
  /** `mount/before` and the like, for every boundary the agent died at. */
  readonly crashedAt: ReadonlySet<string>;
}

/** A planted bug: another policy for the agent, or another host under it. */
export interface Mutation {
  readonly policy?: NonNullable<AgentParts['policy']>;
  readonly wrapHost?: (host: SimHost) => AgentParts['host'];
  readonly wrapTransport?: (transport: ApiTransport, host: AgentParts['host']) => ApiTransport;
  readonly wrapCluster?: (cluster: Cluster, transport: ApiTransport) => Cluster;
  /** The faults that the bug needs, where they seldom meet. */
  readonly plan?: (plan: Plan) => Plan;
}

/** One process of the agent. */
export interface Life {
  readonly number: number;
  readonly host: SimHost;
  readonly agent: Agent;
  started: boolean;
  /** It was asked to end: it plans nothing any more and owes no explanation. */
  stopping: boolean;
  readonly listings: Listing[];
  /** What it could not list. */
  readonly unlisted: Set<AbsolutePath>;
  /** When a look at the layout came to its last directory first; a later one tells no less. */
  scannedMs: number | undefined;
  /** Volumes that an operator has let out of quarantine, and not heard of yet. */
  readonly unanswered: Set<string>;
}

const STEPS_MAX = 400_000;
const LIVENESS_MS = 600_000;
/** Steps of the walks for fsGroup that a machine may have before it: ten volumes of twelve each (seed 377432174). */
const WALK_STEPS = 120;
/** The agent may first have to hear what the user did last. */
const RESYNC_MS = 70_000;
/** A claim or volume of a cluster is read once in a minute and a half, give or take a fifth. */
const CLUSTER_RESYNC_MS = 120_000;
const STABLE_MS = 130_000;
/** In which the agent hears of what was listed last. */
const SCAN_END_MS = 1_000;
/** So long after a driver's answer its node is believed to be of its disk. */
const BELIEVED_MS = 10_000;
const LOOK_EVERY_MS = 1_000;
const LOOK_AGAIN_MS = 5_000;
const STOP_MS = 5_000;
const TAIL_LINES = 20_000;
/** Far from the seeds people use. */
const EXTRA_SEED = 1_000_000_007;
const PARSER_SEED = 2_000_000_011;
const LATE_SEED = 2_000_000_011;
const WALKS_SEED = 3_000_000_019;
const DEATHS_SEED = 4_000_000_007;
const ABSENCE_SEED = 5_000_000_029;
const HANGS_SEED = 7_000_000_003;
const STRANGERS_SEED = 6_000_000_023;
const TOKENS_SEED = 11_000_000_027;
const RUNTIMES_SEED = 10_000_000_019;
const SLICES_SEED = 7_000_000_033;
const FIELDS_SEED = 8_000_000_011;
const KINDS_SEED = 9_000_000_011;
const SUBPATHS_SEED = 9_000_000_041;
const LOCALS_SEED = 12_000_000_017;
const LOCAL_DEVICES_SEED = 16_000_000_057;
const FILLS_SEED = 14_000_000_029;
const NFS_SEED = 15_000_000_033;
const ISCSI_SEED = 18_000_000_041;
const CLUSTER_SEED = 13_000_000_021;
const CLAIMS_SEED = 16_000_000_037;
const NODE_SEED = 17_000_000_023;
const NODE_IDS_SEED = 21_000_000_023;
const MOVES_SEED = 20_000_000_089;
const RECORDS_SEED = 14_000_000_029;
const CLOCK_SEED = 21_000_000_019;
/** The shares of the seeds that have each of these. */
const STRANGERS_SHARE = 0.25;
const DOUBLED_ROOT_SHARE = 0.2;
const RUNTIMES_SHARE = 0.2;
const RUNTIMES_EVERY_MS = 8_000;

export function simulate(seed: number, mutation: Mutation = {}): Promise<Report> {
  return new Simulation(seed, mutation).run();
}

export class Simulation {
  readonly seed: number;
  readonly plan: Plan;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly wallClock: WallClock;
  readonly kernel: SimKernel;
  readonly world: SimWorld;
  /** Undefined on a machine that is no node of one. */
  readonly cluster: SimCluster | undefined;
  readonly clusterWatch: ClusterWatch | undefined;
  readonly config: Config;
  readonly absences: Absences;
  readonly tokens: SimTokens;
  readonly desiredWithin = new DesiredWithin();
  stormy = true;
  life: Life | undefined;
  violation: Violation | undefined;
  /** It has come to what the documents tell as a limit. */
  #isAtLimit = false;
  readonly tally: Tally = { ...NO_TALLY };
  readonly #mutation: Mutation;
  readonly #random: Random;
  readonly #neighbours: Neighbours;
  readonly #parserRandom: Random;
  readonly #parser: ParserNature | undefined;
  readonly #slicesRandom: Random;
  readonly #recordsRandom: Random;
  #recordForm: RecordForm;
  readonly #crashedAt = new Set<string>();
  /** When the storm is over. */
  readonly #calm: Weather;
  #lives = 0;
  #crashes = 0;
  /** What records do not say was not asked, because somebody had mounted over them. */
  #owesRefusals = false;

  constructor(seed: number, mutation: Mutation) {
    this.seed = seed;
    this.#mutation = mutation;
    const random = createRandom(seed);
    const deathsRandom = createRandom(seed + DEATHS_SEED);
    const absence = createRandom(seed + ABSENCE_SEED);
    const drawn = swarm(random.fork(), createRandom(seed + EXTRA_SEED), createRandom(seed + LATE_SEED));
    const timed = withDeaths(withWalkTimes(drawn, createRandom(seed + WALKS_SEED)), deathsRandom);
    const extra = createRandom(seed - STRANGERS_SEED);
    const strangers = extra.chance(STRANGERS_SHARE) ? ('anything' as const) : (false as const);
    const doubledRoot = extra.chance(DOUBLED_ROOT_SHARE);
    this.#slicesRandom = createRandom(seed + SLICES_SEED);
    this.#recordsRandom = createRandom(seed + RECORDS_SEED);
    const slices = drawSlices(this.#slicesRandom.fork());
    const fieldsRandom = createRandom(seed + FIELDS_SEED);
    const runtimesRandom = createRandom(seed + RUNTIMES_SEED);
    const runtimesEveryMs = runtimesRandom.chance(RUNTIMES_SHARE) ? RUNTIMES_EVERY_MS : 0;
    const rest = { strangers, doubledRoot, slices, runtimesEveryMs };
    const plain = { ...timed, absence: drawAbsence(absence.fork()), ...rest };
    const kindsRandom = createRandom(seed + KINDS_SEED);
    const subpathsRandom = createRandom(seed + SUBPATHS_SEED);
    const localsRandom = createRandom(seed + LOCALS_SEED);
    const localDevicesRandom = createRandom(seed + LOCAL_DEVICES_SEED);
    const more = withMoreKinds(withPodFields(plain, fieldsRandom), kindsRandom);
    const kinds = withLocalDevices(withLocals(more, localsRandom), localDevicesRandom);
    const clusterRandom = createRandom(seed + CLUSTER_SEED);
    const cluster = drawCluster(clusterRandom.fork());
    const fillsRandom = createRandom(seed + FILLS_SEED);
    const nfsRandom = createRandom(seed + NFS_SEED);
    const iscsiRandom = createRandom(seed + ISCSI_SEED);
    const nodeIdsRandom = createRandom(seed + NODE_IDS_SEED);
    const named = {
      ...withIscsi(withNfs(withFills(kinds, fillsRandom), nfsRandom), iscsiRandom),
      subpathShare: drawSubpathShare(subpathsRandom),
      cluster,
    };
    const plan = withNodeIds(named, nodeIdsRandom.fork());
    // A story is of a machine alone, but when it is about its cluster.
    const alone = { ...plan, cluster: { ...cluster, isOn: false } };
    const records = drawRecords(this.#recordsRandom.fork());
    const clockRandom = createRandom(seed + CLOCK_SEED);
    const clock = drawClock(clockRandom.fork());
    // What a seed is made to be about was found with files, and with a clock that nobody sets.
    const isPlain = Object.keys(mutation).length === 0;
    this.plan = withLooks(
      withCluster(mutation.plan?.(alone) ?? (isPlain ? { ...plan, records, clock } : plan)),
    );
    this.#recordForm = this.plan.records.form;
    this.#calm = { ...FAIR, walkMsMax: this.plan.weather.walkMsMax ?? 0 };
    this.#parserRandom = createRandom(seed + PARSER_SEED);
    this.#parser = drawParser(this.#parserRandom);
    this.time = createVirtualTime(random.fork());
    this.trace = createTrace(() => this.time.nowMs());
    this.wallClock = new WallClock({
      random: clockRandom,
      time: this.time,
      trace: this.trace,
      plan: this.plan.clock,
      stormy: () => this.stormy,
      onSet: () => {
        this.tally.clocksSet += 1;
      },
    });
    this.kernel = new SimKernel(random.fork(), () => this.wallClock.wallMs());
    this.#random = random.fork();
    this.#neighbours = new Neighbours(this.kernel, this.plan.wire);
    this.cluster = this.plan.cluster.isOn ? this.#makeCluster(clusterRandom) : undefined;
    this.world = new SimWorld({
      plan: this.plan,
      random: random.fork(),
      absence: absence.fork(),
      kernel: this.kernel,
      time: this.time,
      trace: this.trace,
      neighbours: this.#neighbours,
      violate: (invariant, text) => this.violate(invariant, text),
      onTeardown: (what, path, handle) => checkTeardown(this, what, path, handle),
      cluster: this.cluster,
      onClimb: (call, handle) => this.clusterWatch?.judgeClimb(call, handle),
      strangersRandom: createRandom(seed + STRANGERS_SEED),
      runtimesRandom: runtimesRandom.fork(),
      isWantedThere: (key) => this.#isWantedThere(key),
      released: (uid) => this.#released(uid),
      isAgentBusy: () => this.#isAgentBusy(),
      stormy: () => this.stormy,
      deathsRandom,
      hangsRandom: createRandom(seed + HANGS_SEED),
      fieldsRandom: fieldsRandom.fork(),
      kindsRandom,
      localsRandom,
      localDevicesRandom,
      fillsRandom,
      nfsRandom,
      iscsiRandom,
      subpathsRandom: subpathsRandom.fork(),
      nodeIdsRandom,
      agentLife: () => this.life?.number ?? 0,
      hasReadDiskOf: (pod) => this.#hasReadDiskOf(pod),
      isThoughtHad: (handle) => this.#isThoughtHad(handle),
      nodeIdHeard: (driver) => {
        return this.earlyView()
          ?.drivers.list()
          .find(({ name }) => name === driver)?.nodeId;
      },
    });
    this.config = configOf(this.plan);
    this.tokens = new SimTokens({
      random: createRandom(seed + TOKENS_SEED),
      time: this.time,
      rotates: this.plan.podFields.share > 0,
      stormy: () => this.stormy,
    });
    this.absences = new Absences(this, absence.fork());
    this.clusterWatch = this.cluster === undefined ? undefined : new ClusterWatch(this, this.cluster);
  }

  #isKnownIn(uid: string, file: string): boolean {
    const places = [...(this.view()?.reconciler.desired().volumes.values() ?? [])].flatMap(
      ({ publications }) => [...publications.values()],
    );
    return places.some(({ spec }) => spec.pod.uid === uid && spec.origin === file);
  }

  /** From a stream of its own, and only where pods are moved at all. */
  #moveNext(random: Random): void {
    const { movesEveryMs } = this.plan;
    if (movesEveryMs === 0) return;
    this.time.after(Math.ceil(-Math.log(1 - random.next()) * movesEveryMs), () => {
      if (!this.stormy) return;
      this.world.movePod(random, (uid, file) => this.#isKnownIn(uid, file));
      this.#moveNext(random);
    });
  }

  /** Nothing after it is judged. */
  #isDecided(): boolean {
    return this.violation !== undefined || this.#isAtLimit;
  }

  violate(invariant: string, text: string): void {
    if (this.#isAtLimit) return;
    this.violation ??= { invariant, text };
    this.trace.add(`VIOLATION ${invariant}: ${text}`);
  }

  async run(): Promise<Report> {
    const onRejection = (reason: unknown): void => this.violate('assert', describe(reason));
    process.on('unhandledRejection', onRejection);
    try {
      this.wallClock.boot();
      this.#boot();
      this.#scheduleEvent();
      this.absences.begin();
      this.#moveNext(createRandom(this.seed + MOVES_SEED));
      await this.time.settle();
      await this.#stepUntil(() => this.time.nowMs() >= this.plan.safetyMs);
      await this.#liveness();
    } finally {
      await this.time.settle();
      this.life?.host.kill();
      process.off('unhandledRejection', onRejection);
    }
    return {
      seed: this.seed,
      violation: this.violation,
      traceHash: this.trace.hash(),
      tail: this.trace.tail(TAIL_LINES),
      steps: this.time.steps(),
      virtualMs: this.time.nowMs(),
      crashes: this.#crashes,
      driverCalls: this.world.oracle.calls,
      tally: this.#wholeTally(),
      crashedAt: this.#crashedAt,
    };
  }

  /** The view of the present life, once there is one. */
  view(): AgentView | undefined {
    return this.life?.started === true ? this.life.agent.view() : undefined;
  }

  /** Also while it has not read the wish yet, but acts on its records already. */
  earlyView(): AgentView | undefined {
    if (this.life?.started === true) return this.life.agent.view();
    try {
      return this.life?.agent.view();
    } catch {
      return undefined;
    }
  }

  pick<T>(choices: readonly T[]): T {
    return this.#random.pick(choices);
  }

  isPublished(key: string): boolean {
    for (const volume of this.view()?.reconciler.actual().values() ?? []) {
      for (const [publication, { presence }] of volume.publications) {
        if (publication === key) return presence.kind === 'present';
      }
    }
    return false;
  }

  /** Down counts as idle: what it had asked of drivers is theirs by then, and told by them. */
  #isAgentBusy(): boolean {
    const { life } = this;
    if (life === undefined) return false;
    return !life.started || life.host.pendingCount > 0 || (this.view()?.reconciler.running().length ?? 0) > 0;
  }

  /** Published, and wanted by the agent as well as by the user. */
  #isWantedThere(key: string): boolean {
    const desired = this.view()?.reconciler.desired();
    const isWanted = [...(desired?.volumes.values() ?? [])].some(({ publications }) =>
      [...publications.keys()].some((one) => one === key),
    );
    return isWanted && this.isPublished(key);
  }

  /**
   * Whose disk a driver means is what has its number when it is looked at soon after the answer (docs/ARCHITECTURE.md,
   * limits): where that is another's by then, the story ends here (seed 112663730 about recycled-numbers).
   */
  #identified(path: AbsolutePath): void {
    const { storage } = this.world;
    const published = storage.backings().find(({ resources }) => resources.has(path));
    const device = this.kernel.deviceOf(path);
    if (published === undefined || device === undefined || !device.includes(':')) return;
    const owner = this.kernel.devices.lastLabelOf(device as DeviceNumber);
    const answeredMs = this.life?.host.work.heard(published.handle, 'NodePublishVolume')?.okAtMs;
    const isSoon = answeredMs !== undefined && this.time.nowMs() - answeredMs <= BELIEVED_MS;
    if (owner === published.handle || !isSoon) return;
    this.trace.add(`at a limit: ${path} of ${published.handle} has the number of ${owner}`);
    this.#isAtLimit = true;
  }

  /** What this life could not read may be the pod's, unless it is in another pod's directory (D-136). */
  #hasReadDiskOf(pod: PodUid): boolean {
    const { scannedMs } = this.life ?? {};
    if (scannedMs === undefined || this.time.nowMs() < scannedMs + SCAN_END_MS) return false;
    const { layout } = this.world;
    const own = layout.podDirectory(pod);
    return [...(this.life?.unlisted ?? [])].every(
      (path) => isBelow(path, layout.pods) && path !== own && !isBelow(path, own),
    );
  }

  #isThoughtHad(handle: string): boolean {
    return [...(this.earlyView()?.reconciler.actual().values() ?? [])].some(({ spec, publications }) => {
      const isIt = spec.kind === 'csi' && spec.volumeHandle === handle;
      return isIt && [...publications.values()].some(({ untold }) => untold !== true);
    });
  }

  #released(uid: string): void {
    this.trace.add(`the runtime of ${uid} says that it has ended`);
    const reconciler = this.view()?.reconciler as Reconciler | undefined;
    reconciler?.released(uid as PodUid);
  }

  #wholeTally(): Tally {
    const { expansions, questions, republished } = this.world.oracle;
    return { ...this.tally, expansions, questions, republished };
  }

  async #liveness(): Promise<void> {
    if (this.#isDecided()) return;
    this.stormy = false;
    this.trace.add('the storm is over');
    this.world.heal();
    this.cluster?.heal();
    this.wallClock.heal();
    const walksMs = ((this.#calm.walkMsMax ?? 0) * WALK_STEPS) / this.plan.operationsPerDriverMax;
    const untilMs = this.time.nowMs() + LIVENESS_MS + walksMs;
    const resyncMs = this.cluster === undefined ? RESYNC_MS : CLUSTER_RESYNC_MS;
    let difference: string | undefined = 'not looked yet';
    let lookAtMs = this.time.nowMs();
    let rightSinceMs = lookAtMs;
    await this.#stepUntil(() => {
      const nowMs = this.time.nowMs();
      if (nowMs < lookAtMs) return false;
      this.world.removeDead();
      difference = differenceFromWish(this) ?? this.#straggler();
      lookAtMs = nowMs + (difference === undefined ? LOOK_AGAIN_MS : LOOK_EVERY_MS);
      if (difference !== undefined) rightSinceMs = nowMs;
      return difference === undefined ? nowMs - rightSinceMs >= resyncMs : nowMs >= untilMs;
    });
    if (this.#isDecided()) return;
    if (difference !== undefined) return this.violate('liveness', difference);
    await this.#stability();
  }

  /** What was given up long ago may yet undo what has converged; that costs a call (seed 61826232). */
  #straggler(): string | undefined {
    const driver = this.world.storage.drivers.find(({ isStraggling }) => isStraggling);
    return driver === undefined ? undefined : `${driver.name} is at work on what everybody has given up`;
  }

  /** What has converged stays so, and costs nobody a call. */
  async #stability(): Promise<void> {
    if (this.violation !== undefined) return;
    this.trace.add('converged');
    const before = this.#unexpectedCalls();
    const stableMs = this.time.nowMs() + STABLE_MS;
    await this.#stepUntil(() => this.time.nowMs() >= stableMs);
    const difference = differenceFromWish(this);
    if (difference !== undefined) this.violate('stability', difference);
    if (this.#unexpectedCalls() !== before)
      this.violate('stability', 'drivers were called though nothing was to do');
  }

  /** Questions, and what is published again because its driver wishes it, go on for ever. */
  #unexpectedCalls(): number {
    const { calls, republished } = this.world.oracle;
    return calls - republished;
  }

  async #stepUntil(done: () => boolean): Promise<void> {
    while (!this.#isDecided()) {
      if (this.time.steps() > STEPS_MAX) return this.violate('bound', `more than ${STEPS_MAX} events`);
      try {
        const settled = this.time.step();
        if (settled === undefined) return this.violate('bound', 'nothing is left to happen');
        await settled;
      } catch (error) {
        return this.violate('assert', describe(error));
      }
      checkStep(this);
      checkRoots(this);
      this.world.strangers.look();
      this.clusterWatch?.look();
      if (done()) return;
    }
  }

  #boot(): void {
    this.#lives += 1;
    if (this.#owesRefusals) this.forgetLostRefusals();
    const number = this.#lives;
    const listings: Listing[] = [];
    const unlisted = new Set<AbsolutePath>();
    const noteListed = (path: string): void => {
      if (path === this.world.layout.blockStages && this.life !== undefined)
        this.life.scannedMs ??= this.time.nowMs();
    };
    const host = new SimHost({
      kernel: this.kernel,
      time: this.time,
      random: this.#random.fork(),
      neighbours: this.#neighbours,
      trace: this.trace,
      strangers: this.plan.strangers !== false,
      holdersAt: this.plan.runtimesEveryMs > 0 ? (path) => this.world.runtimes.holdersAt(path) : undefined,
      doubledRoot: this.plan.doubledRoot,
      weather: () => (this.stormy ? this.plan.weather : this.#calm),
      boundary: (kind, moment) => this.#diesAt(kind, moment),
      onEffect: (kind, what) => checkEffect(this, kind, what),
      onWrite: (path, content) => {
        if (
          !this.world.trouble.mountsTaken &&
          !this.kernel.isInMemory(path) &&
          Buffer.from(content.buffer, content.byteOffset, content.length).includes(CANARY)
        ) {
          this.violate('INV-25', `a secret is written to ${path}`);
        }
      },
      isQuiet: (kind, path) =>
        (this.plan.absence === NO_ABSENCE &&
          (kind === 'identifyDirectory' || path === this.world.layout.source)) ||
        (this.plan.locals.share === 0 && path === this.world.layout.localStages) ||
        (this.plan.locals.devices === 0 && isOfLocalDevices(this.world.layout, path)) ||
        (this.plan.iscsi.share === 0 && path === this.world.layout.iscsiStages) ||
        (this.plan.events.holdLost === 0 && kind === 'deviceOf' && path === this.world.layout.root) ||
        (this.plan.records === RECORD_FILES &&
          kind === 'listDirectory' &&
          path === this.world.layout.records),
      onIdentify: (path) => this.#identified(path),
      onFailed: (kind, path, code) => {
        if (kind !== 'listDirectory') return;
        if (code === 'path-missing') noteListed(path);
        else unlisted.add(path as AbsolutePath);
      },
      onListing: (path) => {
        noteListed(path);
        if (path === MANIFESTS && this.cluster === undefined) {
          const { world } = this;
          const shown = world.shownUids();
          const kept = this.absences.noteListing() ? shown : world.keptUids();
          listings.push({ atMs: this.time.nowMs(), kept, shown });
        }
      },
    });
    this.tokens.beginLife();
    this.absences.beginLife();
    this.trace.add(`agent life ${number} begins`);
    const { policy, wrapHost } = this.#mutation;
    const agentHost = wrapHost?.(host) ?? host;
    const log = this.#log(host);
    const manifests = createTrustedManifests({
      host: agentHost,
      parser:
        this.#parser === undefined
          ? REMEMBERING_PARSER
          : createSimParser({
              parser: REMEMBERING_PARSER,
              host,
              random: this.#parserRandom.fork(),
              nature: this.#parser,
              stormy: () => this.stormy,
            }),
      config: this.config,
      log,
    });
    const cluster = this.#joinCluster(host, agentHost, log);
    const agent = createAgent({
      host: agentHost,
      sources: cluster === undefined ? [manifests] : [manifests, cluster.source],
      attachment: cluster?.attachment,
      standing: cluster?.attachment,
      tokens: cluster?.tokens ?? this.tokens,
      capacity: { cpu: CPU_THOUSANDTHS },
      config: { ...this.config, recordStore: this.#nextRecordForm() },
      journalBytes: this.plan.records.journalBytes,
      log,
      slices: createSimSlices(host, this.plan.slices, this.#slicesRandom.fork()),
      ...(policy === undefined ? {} : { policy }),
    });
    const life: Life = {
      number,
      host,
      agent,
      started: false,
      stopping: false,
      listings,
      unlisted,
      scannedMs: undefined,
      unanswered: new Set(),
    };
    this.life = life;
    agent.onChange(() => {
      const view = this.earlyView();
      this.desiredWithin.note(view?.reconciler.desired());
      this.absences.noteDesired(view);
    });
    void agent.start().then((result) => {
      if (this.life !== life) return;
      this.trace.add(
        `agent life ${number} ${result.ok ? 'started' : `failed to start: ${result.failure.code}`}`,
      );
      if (result.ok) {
        life.started = true;
        cluster?.begin(agent);
      } else this.killAgent('start failed');
    });
  }

  /** The operator may have written the other one into the configuration. */
  #nextRecordForm(): RecordForm {
    if (this.#recordsRandom.chance(this.plan.records.changes))
      this.#recordForm = this.#recordForm === 'files' ? 'journal' : 'files';
    return this.#recordForm;
  }

  #joinCluster(host: SimHost, agentHost: AgentParts['host'], log: Log): Cluster | undefined {
    const transport = this.cluster?.beginLife(() => host.alive);
    if (transport === undefined) return undefined;
    const { wrapTransport, wrapCluster } = this.#mutation;
    const cluster = joinCluster({
      host: agentHost,
      transport: wrapTransport?.(transport, agentHost) ?? transport,
      nodeName: NODE_NAME,
      log,
    });
    return wrapCluster?.(cluster, transport) ?? cluster;
  }

  #makeCluster(random: Random): SimCluster {
    return new SimCluster({
      plan: this.plan.cluster,
      random,
      claimsRandom: createRandom(this.seed + CLAIMS_SEED),
      nodeRandom: createRandom(this.seed + NODE_SEED),
      time: this.time,
      trace: this.trace,
      stormy: () => this.stormy,
      kill: (why) => this.killAgent(why),
      attach: ({ driver, handle }) => this.world.storage.driverOf(driver)?.attach(handle) ?? {},
      move: ({ driver, handle }) => {
        const context = this.world.storage.driverOf(driver)?.moveAttachment(handle);
        if (context !== undefined) this.tally.moved += 1;
        return context;
      },
      detach: (volume, isByHand) => this.clusterWatch?.detach(volume, isByHand),
      growsOnNode: (driver) =>
        this.plan.drivers.some(({ name, nature }) => name === driver && nature.expands !== 'no'),
      onAnswer: (isGood) => {
        this.tally.requests += 1;
        if (!isGood) this.tally.unanswered += 1;
      },
      onPods: (told) => this.life?.listings.push({ atMs: this.time.nowMs(), ...told }),
    });
  }

  /** The process is gone; systemd starts it again. */
  killAgent(why: string): void {
    const life = this.life;
    if (life === undefined) return;
    this.trace.add(`agent life ${life.number} ends: ${why}`);
    this.life = undefined;
    life.host.kill();
    this.#forgetUnanswered(life);
    this.world.told.lifeEnded();
    this.wallClock.agentEnded();
    this.forgetLostRefusals();
    this.time.after(this.#random.between(50, 5_000), () => {
      if (this.life === undefined) this.#boot();
    });
  }

  #forgetUnanswered({ unanswered }: Life): void {
    for (const handle of unanswered) {
      const backing = this.world.backingOfHandle(handle);
      if (backing !== undefined) this.world.quarantine.end(backing, this.time.nowMs());
      this.world.attachmentWatch.forget(handle);
    }
  }

  /**
   * What a dead life heard and no record says: the crash came first, or the record was damaged. Under somebody's mount
   * the records are as they were: that is asked when they can be read again (seed 743608531).
   */
  forgetLostRefusals(): void {
    this.#owesRefusals = this.kernel.isUnderStranger(this.world.layout.records);
    if (this.#owesRefusals) return;
    this.world.oracle.forgetUnrecorded(
      (handle) => recordedRefusal(this, handle),
      (handle, sinceMs) => isRecordForgotten(this, handle, sinceMs),
    );
  }

  #diesAt(kind: EffectKind, moment: 'before' | 'after'): boolean {
    if (!this.stormy || this.#crashes >= this.plan.crashesMax) return false;
    if (!this.#random.chance(this.plan.crashAtBoundary)) return false;
    this.#crashes += 1;
    this.#crashedAt.add(`${kind}/${moment}`);
    this.killAgent(`killed ${moment} ${kind}`);
    return true;
  }

  #scheduleEvent(): void {
    const waitMs = Math.ceil(-Math.log(1 - this.#random.next()) * this.plan.eventEveryMs);
    this.time.after(waitMs, () => {
      if (!this.stormy) return;
      happen(this, drawEvent(this.plan.events, this.#random));
      this.#scheduleEvent();
    });
  }

  /** SIGTERM: the agent ends within five seconds, whatever it is doing, and takes nothing down (INV-39). */
  stopAgent(): void {
    const life = this.life;
    if (life?.started !== true) return;
    this.trace.add(`agent life ${life.number} is asked to stop`);
    life.stopping = true;
    const late = this.time.after(STOP_MS + 1, () => {
      if (this.life === life) this.violate('INV-39', `stop takes longer than ${STOP_MS} ms`);
    });
    void life.agent.stop(STOP_MS).then(() => {
      late();
      if (this.life === life) this.killAgent('stopped');
    });
  }

  reboot(): void {
    this.trace.add('power cut');
    const life = this.life;
    this.life = undefined;
    life?.host.kill();
    this.world.losePower();
    this.kernel.reboot();
    this.kernel.bootedMs = this.time.nowMs();
    this.wallClock.boot();
    this.forgetLostRefusals();
    this.world.mountManifests();
    this.time.after(this.#random.between(100, 10_000), () => {
      if (this.life === undefined) this.#boot();
    });
  }

  #log(host: SimHost): Log {
    const write = (level: string, event: string, fields: LogFields = {}): void => {
      if (!host.alive) return;
      const line = `log ${level} ${event} ${JSON.stringify(fields)}`;
      if (line.includes(CANARY)) this.violate('INV-25', `a secret in the log: ${line}`);
      this.trace.add(line);
      if (event.startsWith('manifests vanished while nobody looked'))
        this.tally.kept += Number(fields['vanished']);
    };
    return {
      debug: (event, fields) => write('debug', event, fields),
      info: (event, fields) => write('info', event, fields),
      warn: (event, fields) => write('warn', event, fields),
      error: (event, fields) => write('error', event, fields),
    };
  }
}

function drawEvent(weights: EventWeights, random: Random): keyof EventWeights {
  const entries = Object.entries(weights) as [keyof EventWeights, number][];
  let left = random.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [event, weight] of entries) {
    left -= weight;
    if (left < 0) return event;
  }
  return 'podComes';
}

function describe(error: unknown): string {
  return error instanceof Error
    ? (error.stack ?? error.message).split('\n').slice(0, 6).join(' | ')
    : String(error);
}
