/**
 * Which faults a seed meets. Most are off in most seeds: a fault alone, again and again, finds more than all at once.
 */
import { type IscsiPlan, NO_ISCSI } from './iscsi-volumes.ts';
import { type NfsPlan, NO_NFS } from './nfs-volumes.ts';
import { type FillsPlan, NO_FILLS } from './filled-directories.ts';
import { type AbsencePlan, NO_ABSENCE } from './absence.ts';
import { type LocalsPlan, NO_LOCALS } from './local-volumes.ts';
import { NO_NODE_IDS, type NodeIdsPlan } from './node-ids.ts';
import { type MoreKindsPlan, NO_MORE_KINDS } from './more-kinds.ts';
import { NO_POD_FIELDS, type PodFieldsPlan } from './pod-fields.ts';
import { type ClusterPlan, NO_CLUSTER } from './cluster/cluster-plan.ts';
import type { FateKind, FateRates } from './driver-fates.ts';
import { type DriverNature, PLAIN_NATURE } from './driver-nature.ts';
import {
  drawFeatures,
  type Features,
  NO_FEATURES,
  NO_NOVEL_EVENTS,
  NOVEL_EFFECTS,
  novelEvents,
} from './features.ts';
import type { FsGroupPolicy } from '../../plugins/volume.ts';
import { withLateness } from './late-plan.ts';
import type { Random } from './random.ts';
import type { StrangersOver } from './strangers.ts';
import { RECORD_FILES, type RecordsPlan } from './records-plan.ts';
import { ONE_SLICE, type SlicePlan } from './sim-slices.ts';
import { type ClockPlan, NO_CLOCK } from './wall-clock.ts';
import { type EffectFaults, type EffectKind, EFFECTS, type Weather } from './weather.ts';

export interface DriverPlan {
  readonly name: string;
  readonly nature: DriverNature;
  /** By registration socket, or named in the configuration. */
  readonly registers: boolean;
  readonly locks: boolean;
  readonly echoesSecrets: boolean;
  readonly latencyMsMax: number;
  readonly fates: FateRates;
  /** Comes only after the pods that need it. */
  readonly late: boolean;
  /** There is a CSIDriver object of it. */
  readonly described: boolean;
  /** May be asked to publish one volume in two places at once (D-17). */
  readonly parallel: boolean;
  /** Loses its staging capability with a new version. */
  readonly flips: boolean;
  /** Its CSIDriver object lists Ephemeral, and wants to be told of the pod. */
  readonly inline: boolean;
  /** Its CSIDriver object has requiresRepublish. */
  readonly republishes: boolean;
  readonly fsGroupPolicy: FsGroupPolicy;
}

/** How often the user's side and the machine do something, as weights; 0 is never. */
export interface EventWeights {
  readonly podComes: number;
  readonly podGoes: number;
  readonly podReplaced: number;
  readonly fileDamaged: number;
  readonly storageVanishes: number;
  readonly contentChanges: number;
  readonly attributesChange: number;
  readonly driverStops: number;
  readonly driverRestarts: number;
  readonly agentCrashes: number;
  readonly agentStops: number;
  readonly reboots: number;
  readonly mountHeld: number;
  readonly mountTaken: number;
  readonly recordDamaged: number;
  readonly podWrites: number;
  readonly volumeGrows: number;
  readonly nodeMarked: number;
  readonly attachmentLost: number;
  readonly attachmentReplaced: number;
  readonly quarantined: number;
  readonly quarantineEnded: number;
  readonly deviceOpened: number;
  readonly diskUnplugged: number;
  readonly holdLost: number;
  readonly diskChanges: number;
  readonly walkedPodGoes: number;
}

export interface Plan {
  readonly weather: Weather;
  readonly drivers: readonly DriverPlan[];
  readonly events: EventWeights;
  /** Mean time between two events. */
  readonly eventEveryMs: number;
  readonly safetyMs: number;
  readonly podsMax: number;
  readonly disksMax: number;
  /** Probability per effect boundary. */
  readonly crashAtBoundary: number;
  readonly crashesMax: number;
  readonly csiDeadlineMs: number;
  readonly operationsPerDriverMax: number;
  readonly knowsNoswap: boolean;
  /** Requests and replies go through their bytes. */
  readonly wire: boolean;
  readonly features: Features;
  /** Mean time between two deaths of file systems; 0: none dies. */
  readonly deathEveryMs: number;
  /** Mean time between two file systems that begin to hang; 0: none does. */
  readonly hangEveryMs: number;
  /** Nothing but hung file systems keeps the agent from asking about a volume, or the driver from hearing it. */
  readonly judgesQuestions: boolean;
  readonly absence: AbsencePlan;
  /** Mean time between two pods that are moved from one manifest to another; 0: none is. */
  readonly movesEveryMs: number;
  readonly nodeIds: NodeIdsPlan;
  readonly podFields: PodFieldsPlan;
  readonly moreKinds: MoreKindsPlan;
  readonly locals: LocalsPlan;
  readonly fills: FillsPlan;
  readonly nfs: NfsPlan;
  readonly iscsi: IscsiPlan;
  /** Probability that a part of a volume is bound for its pod. */
  readonly subpathShare: number;
  /** Somebody mounts file systems of his own over our places. */
  readonly strangers: false | StrangersOver;
  /** Mean time between two holders of a place that a pod has; 0: nobody holds any. */
  readonly runtimesEveryMs: number;
  /** The root directory is bound onto itself on a shared `/`. */
  readonly doubledRoot: boolean;
  readonly slices: SlicePlan;
  readonly records: RecordsPlan;
  readonly clock: ClockPlan;
  /** Where this machine is a node of a cluster. */
  readonly cluster: ClusterPlan;
}

/** Many short stories find more than few long ones. */
const EVENTS_MAX = 80;

/** Half of the seeds are stories of file systems alone, as they were before devices, growth and quarantine. */
const FEATURES_SHARE = 0.5;
const ATTACHMENT_LOST_SHARE = 0.25;

/** `extra` and `late` are streams of their own, so that what is new does not make other stories of the old ones. */
export function swarm(random: Random, extra: Random, late: Random): Plan {
  return withLateness(withFeatures(drawPlan(random), extra), late);
}

function withFeatures(plan: Plan, extra: Random): Plan {
  if (!extra.chance(FEATURES_SHARE)) return plan;
  const features = drawFeatures(extra);
  const events = { ...plan.events, ...novelEvents(features, extra) };
  const drivers = plan.drivers.map((driver) => withNovelties(driver, extra));
  return {
    ...plan,
    features,
    weather: { ...plan.weather, effects: new Map([...plan.weather.effects, ...features.weather]) },
    events: { ...events, attachmentLost: extra.chance(ATTACHMENT_LOST_SHARE) ? 3 : 0 },
    drivers,
  };
}

function withNovelties(driver: DriverPlan, random: Random): DriverPlan {
  const maybe = (probability: number) => random.chance(probability);
  const inline = driver.described && maybe(0.4);
  return {
    ...driver,
    inline,
    republishes: driver.described && maybe(0.3),
    fsGroupPolicy: random.pick(['ReadWriteOnceWithFSType', 'File', 'None'] as const),
    nature: {
      ...driver.nature,
      expands: random.pick(['no', 'online', 'online', 'offline'] as const),
      multiWriter: maybe(0.4),
      controllerMultiWriter: maybe(0.4),
      mountGroup: maybe(0.25),
      statistics: maybe(0.5),
      health: maybe(0.3),
      bindsDevices: maybe(0.5),
    },
  };
}

function drawPlan(random: Random): Plan {
  const crashes = random.chance(0.7);
  const eventEveryMs = random.pick([300, 2_000, 8_000]);
  return {
    weather: drawWeather(random),
    drivers: Array.from({ length: random.between(1, 2) }, (_, index) => drawDriver(random, index)),
    events: drawEvents(random),
    eventEveryMs,
    safetyMs: Math.min(random.pick([20_000, 60_000, 200_000]), EVENTS_MAX * eventEveryMs),
    podsMax: random.between(1, 4),
    disksMax: random.between(1, 4),
    crashAtBoundary: crashes ? random.pick([0.002, 0.01, 0.04]) : 0,
    crashesMax: random.between(1, 6),
    csiDeadlineMs: random.pick([1_000, 10_000, 120_000]),
    operationsPerDriverMax: random.pick([1, 2, 16]),
    knowsNoswap: random.chance(0.7),
    wire: random.chance(0.1),
    features: NO_FEATURES,
    deathEveryMs: 0,
    hangEveryMs: 0,
    judgesQuestions: false,
    absence: NO_ABSENCE,
    movesEveryMs: 0,
    nodeIds: NO_NODE_IDS,
    podFields: NO_POD_FIELDS,
    moreKinds: NO_MORE_KINDS,
    locals: NO_LOCALS,
    fills: NO_FILLS,
    nfs: NO_NFS,
    iscsi: NO_ISCSI,
    subpathShare: 0,
    strangers: false,
    runtimesEveryMs: 0,
    doubledRoot: false,
    slices: ONE_SLICE,
    records: RECORD_FILES,
    clock: NO_CLOCK,
    cluster: NO_CLUSTER,
  };
}

/** They came later: drawn here, they would make other stories of the old seeds. */
const UNDRAWN_EFFECTS: ReadonlySet<EffectKind> = new Set([
  'readIscsi',
  'iscsi',
  'findPlaceHolders',
  'overwriteFile',
  'synchronise',
  'probeFileSystem',
  'measureUsage',
  'identifyDirectory',
]);

function drawWeather(random: Random): Weather {
  const effects = new Map<EffectKind, EffectFaults>();
  const calm = random.chance(0.35);
  for (const kind of EFFECTS) {
    if (NOVEL_EFFECTS.has(kind) || UNDRAWN_EFFECTS.has(kind)) continue;
    if (calm || !random.chance(0.3)) continue;
    const rate = () => (random.chance(0.4) ? random.pick([0.02, 0.1, 0.3]) : 0);
    effects.set(kind, {
      refused: rate(),
      doubtful: rate(),
      slow: rate() / 3,
      hung: random.chance(0.1) ? 0.05 : 0,
    });
  }
  return {
    effects,
    latencyMsMax: random.pick([0, 3, 40]),
    hintLost: random.chance(0.3) ? random.pick([0.1, 0.5, 1]) : 0,
    hintDoubled: random.chance(0.3) ? 0.3 : 0,
  };
}

function drawDriver(random: Random, index: number): DriverPlan {
  const stages = random.chance(0.75);
  const attaches = random.chance(0.25);
  const honest = random.chance(0.4);
  const rates: Partial<Record<Exclude<FateKind, 'plain'>, number>> = {};
  for (const kind of ['status', 'late', 'hung', 'lie', 'stack', 'crash'] as const) {
    if (!honest && random.chance(0.35)) rates[kind] = random.pick([0.03, 0.1, 0.3]);
  }
  if (rates.hung !== undefined) rates.hung = Math.min(rates.hung, 0.03);
  return {
    name: `sim${index + 1}.example.com`,
    nature: { ...PLAIN_NATURE, stages, attaches, stageMounts: random.chance(0.85) },
    registers: random.chance(0.85),
    locks: random.chance(0.85),
    echoesSecrets: random.chance(0.3),
    latencyMsMax: random.pick([0, 5, 300]),
    fates: rates,
    late: random.chance(0.2),
    described: random.chance(0.85),
    parallel: random.chance(0.15),
    flips: stages && random.chance(0.08),
    inline: false,
    republishes: false,
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
  };
}

function drawEvents(random: Random): EventWeights {
  const maybe = (probability: number, weight: number): number => (random.chance(probability) ? weight : 0);
  return {
    podComes: 4,
    podGoes: maybe(0.8, 4),
    podReplaced: maybe(0.4, 2),
    fileDamaged: maybe(0.3, 3),
    storageVanishes: maybe(0.3, 2),
    contentChanges: maybe(0.4, 2),
    attributesChange: maybe(0.08, 1),
    driverStops: maybe(0.3, 1),
    driverRestarts: maybe(0.3, 1),
    agentCrashes: maybe(0.3, 1),
    agentStops: maybe(0.2, 1),
    reboots: maybe(0.12, 0.7),
    mountHeld: maybe(0.25, 1),
    mountTaken: maybe(0.12, 1),
    recordDamaged: maybe(0.12, 1),
    podWrites: 2,
    ...NO_NOVEL_EVENTS,
  };
}
