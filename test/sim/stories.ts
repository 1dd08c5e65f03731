/** Seeds made to be about one thing: the faults of a story that seldom meet by chance. */
import { createRandom } from './random.ts';
import { aboutJournal, inJournal } from './records-plan.ts';
import { NO_ABSENCE } from './absence.ts';
import { NO_API_FAULTS } from './cluster/api-faults.ts';
import { NO_FEATURES } from './features.ts';
import { filling, NO_FILLS } from './filled-directories.ts';
import type { EventWeights, Plan } from './swarm.ts';
import { RESTLESS_CLOCK } from './wall-clock.ts';

/**
 * Disks that are wished otherwise while pods have them, as devices too. Drivers take one call of a volume at a time:
 * one that does not may set up late what nobody waits for any more, as something else than it is by then. A record is
 * all that tells what stands, so none is damaged.
 */
export function aboutChangedDisks(plan: Plan): Plan {
  return {
    ...plan,
    podsMax: Math.max(plan.podsMax, 3),
    drivers: plan.drivers.map((one) => ({ ...one, locks: true })),
    events: { ...plan.events, diskChanges: 3, recordDamaged: 0 },
  };
}

/**
 * Inline volumes of a driver that lies, in pods whose files come and go and whose mounts are in use. That a volume was
 * ended is in its record, so no records are damaged.
 */
export function aboutInlineVolumes(plan: Plan): Plan {
  return {
    ...plan,
    features: { ...plan.features, inlineShare: 1, blockShare: 0 },
    drivers: plan.drivers.map((driver) => ({
      ...driver,
      described: true,
      inline: true,
      fates: { lie: 0.3 },
    })),
    events: { ...plan.events, podComes: 4, podGoes: 0, fileDamaged: 8, mountHeld: 4, recordDamaged: 0 },
  };
}

/**
 * A disk that is full at every third write, drivers that take calls and do not answer, and an agent that is killed
 * meanwhile: what was begun must be known to the next one. No mount is taken by others, and records are not damaged.
 */
export function aboutFullDisks(plan: Plan): Plan {
  const effects = new Map(plan.weather.effects);
  effects.set('writeFile', { refused: 0.4, doubtful: 0, slow: 0, hung: 0 });
  return {
    ...plan,
    weather: { ...plan.weather, effects },
    // There are a few disks, which pods want again and again.
    disksMax: 2,
    csiDeadlineMs: 120_000,
    drivers: plan.drivers.map((driver) => ({
      ...driver,
      locks: true,
      nature: { ...driver.nature, stages: true, stageMounts: true },
      fates: { late: 0.5 },
    })),
    events: { ...plan.events, podComes: 4, podGoes: 6, agentCrashes: 4, mountTaken: 0, recordDamaged: 0 },
  };
}

/** As above, and what needs no room fails as often: the disk is sick, not full. */
export function aboutSickDisks(plan: Plan): Plan {
  const full = aboutFullDisks(plan);
  const effects = new Map(full.weather.effects);
  effects.set('overwriteFile', { refused: 0.5, doubtful: 0, slow: 0, hung: 0 });
  return { ...full, weather: { ...full.weather, effects } };
}

/** Attachments that are made anew all the time, of drivers of which they count. */
export function aboutReplacedAttachments(plan: Plan): Plan {
  return {
    ...plan,
    drivers: plan.drivers.map((driver) => ({
      ...driver,
      described: false,
      inline: false,
      republishes: false,
    })),
    events: { ...plan.events, attachmentReplaced: 6, recordDamaged: 0 },
  };
}

/** Pods of several groups that come and go on disks that we give away, by walks that take their time. */
export function aboutGroups(plan: Plan): Plan {
  return {
    ...plan,
    podsMax: 4,
    disksMax: 1,
    crashAtBoundary: plan.crashAtBoundary / 4,
    eventEveryMs: 2_000,
    safetyMs: 60_000,
    features: { ...plan.features, fsGroupShare: 1, blockShare: 0, onePodShare: 0 },
    weather: { ...plan.weather, walkMsMax: 500 },
    drivers: plan.drivers.map((driver) => ({
      ...driver,
      described: true,
      fsGroupPolicy: 'File',
      nature: { ...driver.nature, mountGroup: false },
    })),
    events: {
      ...plan.events,
      podComes: 4,
      podGoes: 0.3,
      podReplaced: 0,
      walkedPodGoes: 4,
      podWrites: 1,
      storageVanishes: 0,
      recordDamaged: 0,
    },
  };
}

/**
 * File systems that die under volumes that pods share and that are staged. No mount is taken by others, and nothing is
 * unplugged: what is gone is not dead.
 */
export function aboutDeadFileSystems(plan: Plan): Plan {
  return {
    ...plan,
    deathEveryMs: 3_000,
    disksMax: 2,
    podsMax: Math.max(plan.podsMax, 3),
    features: { ...plan.features, blockShare: 0 },
    drivers: plan.drivers.map((driver) => ({ ...driver, locks: true })),
    events: { ...plan.events, podComes: 5, podGoes: 5, podReplaced: 3, mountTaken: 0, diskUnplugged: 0 },
  };
}

/** The same, and the mounts are taken, too: a pod may lose its mount of what is dead. */
export function aboutDeadAndTaken(plan: Plan): Plan {
  const dead = aboutDeadFileSystems(plan);
  return {
    ...dead,
    safetyMs: 60_000,
    events: { ...dead.events, podGoes: 1, podReplaced: 0, mountTaken: 5 },
  };
}

/** The agent gives the loop back after every piece of its work: as on a node of many thousands of volumes. */
export function aboutSlices(plan: Plan): Plan {
  return { ...plan, slices: { piecesMax: 1, pauseMsMax: 20 } };
}

/** Volumes that are given to groups, and die meanwhile. */
export function aboutDeadAndWalked(plan: Plan): Plan {
  const walked = aboutGroups(plan);
  return { ...walked, deathEveryMs: 3_000, events: { ...walked.events, mountTaken: 0, diskUnplugged: 0 } };
}

/**
 * Drivers whose calls are given up and take effect later, and pods that come and go meanwhile. They keep what they can
 * do, and records are not damaged: who knows of the call is the record.
 */
export function aboutStragglers(plan: Plan): Plan {
  return {
    ...plan,
    csiDeadlineMs: 10_000,
    drivers: plan.drivers.map((driver) => ({
      ...driver,
      flips: false,
      locks: true,
      fates: { straggler: 0.2 },
    })),
    events: { ...plan.events, podComes: 4, podGoes: 4, agentCrashes: 2, mountTaken: 0, recordDamaged: 0 },
  };
}

/** Volumes whose drivers are asked often how they are, and do not always answer. */
export function aboutQuestions(plan: Plan): Plan {
  return {
    ...plan,
    safetyMs: Math.max(plan.safetyMs, 60_000),
    features: { ...plan.features, statisticsMs: 5_000 },
    drivers: plan.drivers.map((driver) => ({
      ...driver,
      nature: { ...driver.nature, statistics: true },
      fates: { ...driver.fates, hung: 0.1, late: 0.1 },
    })),
    events: { ...plan.events, podGoes: 1, driverStops: 0 },
  };
}

/**
 * File systems that hang for minutes under volumes that are asked about, republished and given to groups, while pods
 * come and go. All else goes well: what waits, waits for them.
 */
export function aboutHung(plan: Plan): Plan {
  return {
    ...plan,
    weather: { ...plan.weather, effects: new Map(), latencyMsMax: 3, hintLost: 0 },
    hangEveryMs: 10_000,
    judgesQuestions: true,
    deathEveryMs: 0,
    strangers: false,
    absence: NO_ABSENCE,
    disksMax: 4,
    podsMax: 4,
    crashAtBoundary: 0,
    csiDeadlineMs: 10_000,
    eventEveryMs: 4_000,
    safetyMs: 400_000,
    features: { ...plan.features, blockShare: 0, statisticsMs: 5_000 },
    drivers: plan.drivers.map((driver) => ({
      ...driver,
      locks: true,
      late: false,
      flips: false,
      latencyMsMax: 5,
      fates: {},
      nature: { ...driver.nature, statistics: true },
    })),
    events: {
      ...plan.events,
      podComes: 4,
      podGoes: 3,
      driverStops: 0,
      driverRestarts: 0,
      mountTaken: 0,
      diskUnplugged: 0,
      recordDamaged: 0,
      reboots: 0,
    },
  };
}

/** Manifests that are gone, covered or replaced all the time, mostly while no agent looks. */
export function aboutAbsentManifests(plan: Plan): Plan {
  const absence = { holdMs: 30_000, everyMs: 10_000, whileDown: 0.6, accepted: 0.5 };
  return { ...plan, podsMax: 4, safetyMs: Math.max(plan.safetyMs, 60_000), absence };
}

/**
 * Pods that move from one manifest to another all the time. None is damaged: a pod that is in one that cannot be read
 * by the time that the one before has lost it is lost.
 */
export function aboutMovedPods(plan: Plan): Plan {
  return {
    ...plan,
    podsMax: 4,
    movesEveryMs: 500,
    // An agent that starts between the two writes finds the pod in neither.
    absence: { ...NO_ABSENCE, holdMs: 30_000 },
    events: { ...plan.events, podComes: 6, podGoes: 1, fileDamaged: 2 },
  };
}

/**
 * As `absent-manifests`, while somebody's mount hides what was noted of the directory, or the disk does not let anybody
 * read it.
 */
export function aboutHiddenNotes(plan: Plan): Plan {
  const absent = aboutAbsentManifests(plan);
  const { effects } = absent.weather;
  const faults = { refused: 0.5, doubtful: 0, slow: 0, hung: 0 };
  return {
    ...absent,
    strangers: 'root',
    weather: { ...absent.weather, effects: new Map([...effects, ['readFile', faults]]) },
    events: { ...absent.events, podComes: 4, recordDamaged: 0 },
  };
}

/** As `absent-manifests`, and the records are damaged, or all gone: what is at stake then is told by the disk alone. */
export function aboutLostRecords(plan: Plan): Plan {
  const absent = aboutAbsentManifests(plan);
  return { ...absent, events: { ...absent.events, recordDamaged: 6 } };
}

/** One disk, wanted and not wanted in turn, drivers that are late or lie, and agents that are killed meanwhile. */
export function aboutUndoing(plan: Plan): Plan {
  const none: Partial<EventWeights> = Object.fromEntries(Object.keys(plan.events).map((event) => [event, 0]));
  return {
    ...plan,
    weather: { ...plan.weather, effects: new Map(), latencyMsMax: 3, hintLost: 0, hintDoubled: 0 },
    features: NO_FEATURES,
    // Without features nobody is asked how full anything is.
    fills: NO_FILLS,
    crashAtBoundary: 0,
    deathEveryMs: 0,
    disksMax: 1,
    podsMax: 1,
    eventEveryMs: 2_000,
    safetyMs: 120_000,
    drivers: plan.drivers.slice(0, 1).map((driver) => ({
      ...driver,
      locks: true,
      late: false,
      flips: false,
      nature: { ...driver.nature, stages: true, stageMounts: true },
      fates: { lie: 0.2, late: 0.2 },
    })),
    events: { ...plan.events, ...none, podComes: 6, podGoes: 6, agentCrashes: 6 },
  };
}

/**
 * Drivers that attach, call the machine otherwise again and again and come back without their controller service, under
 * pods that come and go. A record is all that tells what is attached under which name, so none is damaged.
 */
export function aboutNodeIds(plan: Plan): Plan {
  const { events } = plan;
  return {
    ...plan,
    safetyMs: Math.max(plan.safetyMs, 60_000),
    nodeIds: { ...plan.nodeIds, everyMs: 8_000, renamed: 0.6, withoutController: 0.3 },
    drivers: plan.drivers.map((one) => ({ ...one, nature: { ...one.nature, attaches: true } })),
    events: {
      ...events,
      podComes: Math.max(events.podComes, 4),
      podGoes: Math.max(events.podGoes, 4),
      agentCrashes: Math.max(events.agentCrashes, 1),
      reboots: Math.max(events.reboots, 0.7),
      recordDamaged: 0,
    },
  };
}

/** Somebody mounts file systems of his own over our places, in every seed. */
export function aboutStrangers(plan: Plan): Plan {
  return { ...plan, strangers: 'anything' };
}

/** Containers hold what their pods have had, in every seed. */
export function aboutRuntimes(plan: Plan): Plan {
  const { events } = plan;
  return { ...plan, runtimesEveryMs: 3_000, events: { ...events, podGoes: Math.max(events.podGoes, 4) } };
}

/** Devices, in every seed, and what holds them for their pods is ended now and then. */
export function aboutLostHolds(plan: Plan): Plan {
  return {
    ...plan,
    locals: { ...plan.locals, share: Math.max(plan.locals.share, 0.3), devices: 0.5 },
    features: { ...plan.features, blockShare: 1 },
    podsMax: Math.max(plan.podsMax, 3),
    events: { ...plan.events, podComes: 5, podGoes: 1, podReplaced: 0, reboots: 0, holdLost: 6 },
  };
}

/** Looks at devices may take a minute, in which disks are pulled out, and others get their numbers. */
export function aboutRecycledNumbers(plan: Plan): Plan {
  const slow = { refused: 0, doubtful: 0, slow: 0.3, hung: 0 };
  return {
    ...plan,
    features: { ...plan.features, blockShare: 1 },
    podsMax: Math.max(plan.podsMax, 4),
    events: { ...plan.events, podComes: 6, podGoes: 2, podReplaced: 2, reboots: 0, diskUnplugged: 6 },
    weather: { ...plan.weather, effects: new Map(plan.weather.effects).set('deviceOf', slow) },
  };
}

/** Parts of most volumes are bound; volumes lose their mounts, and agents their lives and their records. */
export function aboutSubpaths(plan: Plan): Plan {
  const { events } = plan;
  return {
    ...plan,
    subpathShare: 0.8,
    events: {
      ...events,
      podComes: Math.max(events.podComes, 4),
      agentCrashes: Math.max(events.agentCrashes, 2),
      mountTaken: Math.max(events.mountTaken, 2),
      recordDamaged: Math.max(events.recordDamaged, 1),
    },
  };
}

/** Looks at the kernel may take a minute; who lies over what pods have, parts too, leaves then; records get lost. */
export function aboutLeavingStrangers(plan: Plan): Plan {
  const slow = { refused: 0, doubtful: 0, slow: 0.2, hung: 0 };
  const effects = new Map(plan.weather.effects).set('readMountTable', slow).set('lookUpMount', slow);
  const parts = aboutSubpaths(plan);
  const events = { ...parts.events, agentCrashes: 5, recordDamaged: 5 };
  return { ...parts, events, strangers: 'mounts', weather: { ...plan.weather, effects } };
}

/** Directories of the machine that several pods have, with groups; pods come and go, agents die, records are lost. */
export function aboutLocals(plan: Plan): Plan {
  const { events, features } = plan;
  return {
    ...plan,
    podsMax: Math.max(plan.podsMax, 3),
    locals: { share: 0.9, devices: 0.4 },
    features: { ...features, fsGroupShare: 0.7 },
    events: comingAndDying(events),
  };
}

/** Pods come and go, agents die, mounts and records are lost. */
function comingAndDying(events: EventWeights): EventWeights {
  return {
    ...events,
    podComes: Math.max(events.podComes, 4),
    podGoes: Math.max(events.podGoes, 3),
    agentCrashes: Math.max(events.agentCrashes, 2),
    mountTaken: Math.max(events.mountTaken, 1),
    recordDamaged: Math.max(events.recordDamaged, 1),
  };
}

/** An NFS server that refuses and falls silent, while pods come and go, agents die and records are lost. */
export function aboutNfs(plan: Plan): Plan {
  const { events } = plan;
  return {
    ...plan,
    podsMax: Math.max(plan.podsMax, 3),
    nfs: { share: 0.9, everyMs: 10_000 },
    features: { ...plan.features, statisticsMs: 20_000 },
    events: comingAndDying(events),
  };
}

/** Targets of iSCSI that refuse and fall silent, disks that come late, while pods come and go and agents die. */
export function aboutIscsi(plan: Plan): Plan {
  return {
    ...plan,
    podsMax: Math.max(plan.podsMax, 3),
    iscsi: { share: 0.9, everyMs: 10_000 },
    features: { ...plan.features, fsGroupShare: 0.4 },
    events: comingAndDying(plan.events),
  };
}

/** Pods that write more into their emptyDirs than they may, and less, while agents die and records are lost. */
export function aboutFilledDirectories(plan: Plan): Plan {
  const { events } = plan;
  return {
    ...filling(plan, 1),
    events: {
      ...events,
      podComes: Math.max(events.podComes, 4),
      podWrites: Math.max(events.podWrites, 4),
      agentCrashes: Math.max(events.agentCrashes, 2),
      recordDamaged: Math.max(events.recordDamaged, 1),
    },
  };
}

/** A node of a cluster, with all that goes wrong there; what goes wrong with drivers and disks is as it was drawn. */
export function aboutCluster(plan: Plan): Plan {
  return {
    ...plan,
    podsMax: Math.max(plan.podsMax, 3),
    disksMax: Math.max(plan.disksMax, 2),
    drivers: plan.drivers.map((one) => ({ ...one, late: false })),
    cluster: { ...plan.cluster, isOn: true },
    events: { ...plan.events, podGoes: Math.max(plan.events.podGoes, 3) },
  };
}

/** One disk that is wanted again while a slow controller is about to detach it. Nothing else goes wrong. */
export function aboutDetaching(plan: Plan): Plan {
  const quiet = aboutUndoing(aboutCluster(plan));
  const { cluster } = quiet;
  return {
    ...quiet,
    drivers: quiet.drivers.map((one) => ({ ...one, fates: {} })),
    cluster: {
      ...cluster,
      faults: NO_API_FAULTS,
      forced: 1,
      troubleEveryMs: 0,
      attachmentTroubleEveryMs: 0,
      nodeDeletedEveryMs: 0,
      nodeDeadEveryMs: 0,
      controllerLagMsMax: 4_000,
      attachMsMax: 50,
    },
    events: { ...quiet.events, agentCrashes: 0.5 },
  };
}

/** Attachments that say something else of their volumes, again and again, under pods that come and go. */
export function aboutContexts(plan: Plan): Plan {
  const quiet = aboutDetaching(plan);
  return {
    ...quiet,
    safetyMs: Math.max(quiet.safetyMs, 60_000),
    cluster: { ...quiet.cluster, reach: 'watch', contextChangesEveryMs: 15_000 },
    events: { ...quiet.events, podComes: 4, podGoes: 4 },
  };
}

/** The same, beside all that goes wrong with a cluster, its drivers and disks. */
export function aboutClusterContexts(plan: Plan): Plan {
  const about = aboutCluster(plan);
  return {
    ...about,
    safetyMs: Math.max(about.safetyMs, 60_000),
    cluster: { ...about.cluster, reach: 'watch', contextChangesEveryMs: 15_000 },
    events: { ...about.events, podComes: 4, podGoes: 4 },
  };
}

/** The Node is deleted and made anew, and taken for dead, again and again, under pods that come and go. */
export function aboutLostNodes(plan: Plan): Plan {
  const about = aboutCluster(plan);
  return {
    ...about,
    safetyMs: Math.max(about.safetyMs, 60_000),
    cluster: { ...about.cluster, nodeDeletedEveryMs: 10_000, nodeDeadEveryMs: 10_000 },
    events: { ...about.events, podComes: 4, podGoes: 5 },
  };
}

/** Backups are restored whose versions are of long before: only who lists learns of it. */
export function aboutRestoredBackups(plan: Plan): Plan {
  const about = aboutCluster(plan);
  return {
    ...about,
    safetyMs: Math.max(about.safetyMs, 60_000),
    cluster: { ...about.cluster, restoredEveryMs: 40_000 },
    events: { ...about.events, podComes: 4, podGoes: 5 },
  };
}

/** Attachments that are replaced in a moment, on a node that may only read them by name and whose watches stall. */
export function aboutUnseenAttachments(plan: Plan): Plan {
  const about = aboutCluster(plan);
  return {
    ...about,
    safetyMs: Math.max(about.safetyMs, 60_000),
    cluster: {
      ...about.cluster,
      faults: { ...about.cluster.faults, watchStall: 0.1 },
      reach: 'get',
      troubleEveryMs: 4_000,
      attachmentTroubleEveryMs: 5_000,
      controllerLagMsMax: 20,
      attachMsMax: 50,
    },
  };
}

/** Records that are lost, and Nodes made anew, while somebody's mount hides what is staged. */
export function aboutHiddenStages(plan: Plan): Plan {
  const about = aboutLostNodes(plan);
  return {
    ...about,
    strangers: 'stages',
    features: { ...about.features, blockShare: Math.max(about.features.blockShare, 0.3) },
    events: { ...about.events, recordDamaged: 8, agentCrashes: Math.max(about.events.agentCrashes, 1) },
  };
}

/** The same, while it hides what pods have of drivers that do not stage. */
export function aboutHiddenPlaces(plan: Plan): Plan {
  const about = aboutHiddenStages(plan);
  const doNotStage = plan.drivers.map((driver) => ({
    ...driver,
    flips: false,
    nature: { ...driver.nature, stages: false },
  }));
  return { ...about, strangers: 'places', drivers: doNotStage };
}

/** Pods of which one alone fills a page of a list, and of which some say more than a line of a watch may have. */
export function aboutLargeObjects(plan: Plan): Plan {
  const about = aboutCluster(plan);
  const faults = { ...about.cluster.faults, pageObjectsMax: 1, largeEvent: 0.1 };
  return { ...about, cluster: { ...about.cluster, faults } };
}

/** Pods that show a token of their own, of a server whose tokens do not live long. */
export function aboutTokens(plan: Plan): Plan {
  const about = aboutCluster(plan);
  return {
    ...about,
    safetyMs: Math.max(about.safetyMs, 60_000),
    podFields: { share: 0.9 },
    cluster: { ...about.cluster, tokenLifeMsMax: 10_000 },
    events: { ...about.events, podComes: 4 },
  };
}

/**
 * Claims that are deleted whenever they can be, and pods that come meanwhile; whoever holds claims back is slow.
 * Nothing else goes wrong.
 */
export function aboutClaims(plan: Plan): Plan {
  const quiet = aboutDetaching(plan);
  return {
    ...quiet,
    disksMax: 2,
    safetyMs: Math.max(quiet.safetyMs, 60_000),
    features: { ...quiet.features, blockShare: 0 },
    cluster: { ...quiet.cluster, claimsDeletedEveryMs: 3_000 },
    events: { ...quiet.events, podComes: 4, podGoes: 6 },
  };
}

/** Volumes that grow under pods that come and go, on a node of a cluster. A record is all that knows of a refusal. */
export function aboutClusterGrowth(plan: Plan): Plan {
  const about = aboutCluster(plan);
  return {
    ...about,
    drivers: about.drivers.map((one) => ({
      ...one,
      nature: { ...one.nature, expands: one.nature.expands === 'no' ? 'online' : one.nature.expands },
    })),
    events: { ...about.events, podComes: 4, volumeGrows: 6, recordDamaged: 0 },
  };
}

/** Most volumes are given to their pods in parts, too. */
export function aboutPartsOfChangedDisks(plan: Plan): Plan {
  return { ...aboutChangedDisks(plan), subpathShare: 0.8 };
}

/** The clock on the wall is set again and again, while agents die, machines boot and what was given up comes late. */
export function aboutClock(plan: Plan): Plan {
  const about = aboutStragglers(plan);
  const events = { ...about.events, agentCrashes: 4, reboots: 0.5 };
  return { ...about, safetyMs: Math.max(about.safetyMs, 60_000), clock: RESTLESS_CLOCK, events };
}

/** So it is on a node of a cluster, whose pods show tokens of a server with the right time. */
export function aboutClusterClock(plan: Plan): Plan {
  return { ...aboutTokens(plan), clock: RESTLESS_CLOCK };
}

type Story = (plan: Plan, seed: number) => Plan;

const MIX_SEED = 0x6d_69_78;
const MIXED_MAX = 3;
/** In these all else goes well: their judges ask who holds up whom. */
const TOLD_ALONE: ReadonlySet<string> = new Set(['mixed', 'hung', 'questions']);

/** The names of a few stories that are told as one, drawn from the seed. */
function storiesIn(seed: number): readonly string[] {
  const random = createRandom(seed + MIX_SEED);
  return random
    .shuffled(Object.keys(STORIES).filter((name) => !TOLD_ALONE.has(name)))
    .slice(0, random.between(2, MIXED_MAX));
}

/** What is rare by itself meets what else is rare: seeds as drawn have that once in many thousands. */
function aboutMixed(plan: Plan, seed: number): Plan {
  const told = storiesIn(seed).reduce((one, name) => STORIES[name]?.(one, seed) ?? one, plan);
  const { events } = told;
  // What a disk was before it was changed is in no place once every record of it is lost.
  return events.diskChanges > 0 ? { ...told, events: { ...events, recordDamaged: 0 } } : told;
}

/** By the name that a run of many is told with `--about`. */
export const STORIES: Readonly<Record<string, Story | undefined>> = {
  mixed: aboutMixed,
  cluster: aboutCluster,
  detaching: aboutDetaching,
  claims: aboutClaims,
  clock: aboutClock,
  'cluster-clock': aboutClusterClock,
  contexts: aboutContexts,
  'cluster-contexts': aboutClusterContexts,
  'cluster-growth': aboutClusterGrowth,
  'lost-nodes': aboutLostNodes,
  'restored-backups': aboutRestoredBackups,
  'unseen-attachments': aboutUnseenAttachments,
  'hidden-stages': aboutHiddenStages,
  'hidden-places': aboutHiddenPlaces,
  'cluster-tokens': aboutTokens,
  'large-objects': aboutLargeObjects,
  'changed-disks': aboutChangedDisks,
  'parts-of-changed-disks': aboutPartsOfChangedDisks,
  'dead-file-systems': aboutDeadFileSystems,
  'dead-and-taken': aboutDeadAndTaken,
  'dead-and-walked': aboutDeadAndWalked,
  slices: aboutSlices,
  'full-disk': aboutFullDisks,
  'sick-disk': aboutSickDisks,
  undoing: aboutUndoing,
  groups: aboutGroups,
  hung: aboutHung,
  'inline-volumes': aboutInlineVolumes,
  stragglers: aboutStragglers,
  questions: aboutQuestions,
  'node-id': aboutNodeIds,
  'journal-node-id': (plan) => inJournal(aboutNodeIds(plan)),
  strangers: aboutStrangers,
  'leaving-strangers': aboutLeavingStrangers,
  'sub-paths': aboutSubpaths,
  'local-volumes': aboutLocals,
  'filled-directories': aboutFilledDirectories,
  nfs: aboutNfs,
  iscsi: aboutIscsi,
  runtimes: aboutRuntimes,
  'lost-holds': aboutLostHolds,
  'recycled-numbers': aboutRecycledNumbers,
  'replaced-attachments': aboutReplacedAttachments,
  'absent-manifests': aboutAbsentManifests,
  'hidden-notes': aboutHiddenNotes,
  'moved-pods': aboutMovedPods,
  'lost-records': aboutLostRecords,
  journal: aboutJournal,
  'in-journal': inJournal,
  'journal-full-disk': (plan) => inJournal(aboutFullDisks(plan)),
  'journal-sick-disk': (plan) => inJournal(aboutSickDisks(plan)),
  'journal-lost-records': (plan) => inJournal(aboutLostRecords(plan)),
  'journal-undoing': (plan) => inJournal(aboutUndoing(plan)),
  'journal-stragglers': (plan) => inJournal(aboutStragglers(plan)),
  'journal-cluster': (plan) => inJournal(aboutCluster(plan)),
};
